"""Superpixels against scikit-image's SLIC: explained variation, compactness, time and memory.

`python -m benchmarks.speed.superpixels [FOLDER] [--small | --all]`: photographs of a folder (else of the shared data, or of
examples/) as they are, enlarged or tiled to 6 and 24 megapixels (--small: not these; --all: every number and compactness at
every size). scikit-image gives fewer segments than asked, which lowers what they explain: each row has ours with as many as
scikit-image gave, and as people call them. Every figure of quality is computed here, with NumPy and skimage.measure, and ours
must agree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import foldwise as fw
from benchmarks.common import show, timed
from benchmarks.data import SHARED
from foldwise import kernels
from foldwise.data.image_file import read_image
from foldwise.kernels import superpixels as kernel
from foldwise.models.images.colour import rgb_to_lab
from foldwise.models.images.planes import as_planes
from foldwise.models.images.slic import Slic

ROOT = Path(__file__).parents[2]
OPERATIONS = 13  # of a vector, for one candidate: 3 differences, 3 squares, 5 additions, comparison, selections


def explained(values: Any, labels: Any) -> float:
    """Explained variation, from its definition."""
    flat, sizes = labels.reshape(-1), np.bincount(labels.reshape(-1))
    between = total = 0.0
    for c in range(values.shape[2]):
        x = values[..., c].reshape(-1).astype(np.float64)
        x -= x.mean()
        between += float((np.bincount(flat, x) ** 2 / sizes).sum())
        total += float((x * x).sum())
    return between / total


def compact(labels: Any) -> float:
    """Isoperimetric quotient with outlines counted in sides of pixels, from its definition."""
    framed, sides = np.pad(labels, 1, constant_values=-1), np.zeros(labels.max() + 1)
    h, w = labels.shape
    for y, x in ((0, 1), (2, 1), (1, 0), (1, 2)):
        sides += np.bincount(labels[framed[y : y + h, x : x + w] != labels], minlength=len(sides))
    sizes = np.bincount(labels.reshape(-1))
    return float((sizes / labels.size * 4 * np.pi * sizes / sides**2).sum())


def round_(labels: Any) -> float:
    """The same with the lengths of outlines estimated by skimage.measure.perimeter."""
    from skimage.measure import regionprops

    quotients = [(r.area, 4 * np.pi * r.area / max(r.perimeter, 1.0) ** 2) for r in regionprops(np.pad(labels + 1, 1))]
    return sum(area * quotient for area, quotient in quotients) / labels.size


def quality(image: Any, lab: Any, labels: Any) -> tuple[float, float, float, float]:
    return explained(lab, labels), explained(image, labels), compact(labels), round_(labels)


def sized(image: Any, megapixels: int | None, how: str) -> Any:
    """RGB, enlarged or tiled to 3:2 with so many pixels."""
    from PIL import Image

    rgb = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    rgb = np.ascontiguousarray(rgb[..., :3])
    if megapixels is None:
        return rgb
    height, width = {6: (2000, 3000), 24: (4000, 6000)}[megapixels]
    if how == "enlarged":
        return np.asarray(Image.fromarray(rgb).resize((width, height), Image.Resampling.LANCZOS))
    times = (-(-height // rgb.shape[0]), -(-width // rgb.shape[1]), 1)
    return np.ascontiguousarray(np.tile(rgb, times)[:height, :width])


def compare(name: str, image: Any, cases: list[tuple[int, int]]) -> tuple[list[list[str]], float]:
    """A row for each number and compactness, and the least ratio of times."""
    from skimage.segmentation import slic

    lab = rgb_to_lab(image / 255).astype(np.float32)
    rows, least = [], float("inf")
    for n, compactness in cases:
        kept: dict[str, Any] = {}

        def theirs(n: int = n, m: int = compactness, kept: Any = kept) -> None:
            kept["theirs"] = slic(image, n, compactness=m, max_num_iter=10, start_label=0, enforce_connectivity=True)

        def ours(n: int = n, m: int = compactness, kept: Any = kept) -> None:
            kept["ours"] = fw.superpixels(image, n, m, max_iter=10, tol=0.0)

        best = {theirs: float("inf"), ours: float("inf")}
        for _ in range(5 if image.size < 3e6 else 2):  # in turns
            best = {run: min(so_far, timed(run)) for run, so_far in best.items()}
        them, asked = kept["theirs"], kept["ours"]
        got = int(them.max()) + 1
        same = fw.superpixels(image, got, compactness, max_iter=10, tol=0.0)
        figures = [quality(image, lab, labels) for labels in (them, same.labels, asked.labels)]
        assert abs(figures[1][1] - same.explained_variation) < 1e-9, "explained_variation"
        assert abs(figures[1][2] - same.isoperimetric_quotient) < 1e-9, "isoperimetric_quotient"
        ratio = best[theirs] / best[ours]
        least = min(least, ratio)
        worse = [i for i, (t, s) in enumerate(zip(figures[0], figures[1], strict=True)) if s < t]
        worse += [i for i, (t, s) in enumerate(zip(figures[0], figures[2], strict=True)) if s < t]
        rows.append(
            [
                name,
                f"{n:,}",
                str(compactness),
                f"{got:,} / {same.n_segments:,} / {asked.n_segments:,}",
                *(" / ".join(f"{each[i]:.3f}" for each in figures) for i in range(4)),
                f"{best[theirs]:.2f} / {best[ours]:.2f}",
                f"{ratio:.1f}",
                "WORSE" if worse else "",
            ]
        )
        print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows, least


_PEAK = """
import sys, numpy as np
image = np.load(sys.argv[1])
def status(what):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(what)))
if sys.argv[2] == "ours":
    import foldwise as fw
    fw.superpixels(image[:64, :64].copy(), 4)
    def run(): return fw.superpixels(image, 10_000)
else:
    from skimage.segmentation import slic
    slic(image[:64, :64].copy(), 4, start_label=0)
    def run(): return slic(image, 10_000, compactness=10, max_num_iter=10, start_label=0)
before = status("VmRSS")
run()
print((status("VmHWM") - before) / 1024)
"""


def peaks(image: Any) -> dict[str, float]:
    """Megabytes of resident memory beyond the image and the libraries, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "image.npy")
        np.save(path, image)
        found = {}
        for who in ("ours", "scikit-image"):
            done = subprocess.run([sys.executable, "-c", _PEAK, path, who], capture_output=True, text=True, check=True)
            found[who] = float(done.stdout)
        return found


def kernel_speed(image: Any, n: int) -> list[str]:
    """The assignment alone, in one thread, against the vector operations that a product of matrices reaches."""
    planes, _ = as_planes(image, "auto", "", 2)
    descent = Slic(planes, n, 10.0, 0.0, 1)
    state = descent.start()
    for _ in range(3):
        state, _figures = descent.step(state)
    centres = state["centres"].astype(np.float32)
    sums = np.zeros((len(centres), 6), np.int64)
    rows, best, compared = range(planes.bounds.shape[0]), float("inf"), 0
    for _ in range(5):
        began = time.perf_counter()
        compared = kernel.assign(planes.values, planes.bounds, centres, descent.search, rows, planes.width, sums=sums)
        best = min(best, time.perf_counter() - began)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        a = np.ones((1024, 1024), np.float32)
        seconds = min(_once(lambda: a @ a) for _ in range(10))
    peak = 1024**3 / seconds  # fused multiplications and additions of one lane
    pixels = image.shape[0] * image.shape[1]
    share = compared * OPERATIONS / best / peak
    return [
        f"{pixels / 1e6:.1f}",
        f"{n:,}",
        f"{best / pixels * 1e9:.1f}",
        f"{compared / pixels:.1f}",
        f"{compared / best / 1e9:.2f}",
        f"{share:.0%}",
    ]


def _once(run: Any) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main(arguments: list[str]) -> int:
    everything = "--all" in arguments
    given = [a for a in arguments if not a.startswith("--")]
    photographs = SHARED / "images"
    folder = Path(given[0]) if given else photographs if photographs.is_dir() else ROOT / "examples"
    files = sorted(p for p in folder.iterdir() if p.suffix in (".jpg", ".png"))
    full = [(n, m) for n in (100, 400, 1600) for m in (5, 10, 20)]
    some = full if everything else [(400, 5), (100, 10), (1600, 10), (400, 20)]
    large = [(n, m) for n in (100, 400, 1600, 10_000) for m in (5, 10, 20)] if everything else [(400, 10), (10_000, 10)]
    head = [
        "photograph",
        "n",
        "compactness",
        "segments",
        "EV Lab",
        "EV RGB",
        "IQ sides",
        "IQ length",
        "seconds",
        "ratio",
        "",
    ]
    rows, least = [], float("inf")
    for number, file in enumerate(files):
        image = read_image(file)
        ways = ("enlarged", "tiled") if everything else (("enlarged", "tiled")[number % 2],)
        plan = [(file.stem, sized(image, None, ""), full)]
        if "--small" not in arguments:
            plan += [(f"{file.stem} 6 MP {how}", sized(image, 6, how), some) for how in ways]
            plan += [(f"{file.stem} 24 MP {how}", sized(image, 24, how), large) for how in ways]
        for name, pixels, cases in plan:
            found, ratio = compare(name, pixels, cases)
            rows += found
            least = min(least, ratio)
    show("scikit-image / ours with as many segments / ours as asked", head, rows)
    worse = sum(bool(row[-1]) for row in rows)
    print(f"rows in which a figure is worse: {worse} of {len(rows)}; least ratio of times: {least:.1f}", flush=True)
    first = read_image(files[0])
    table = [kernel_speed(sized(first, size, "tiled"), n) for size, n in ((None, 400), (24, 400), (24, 10_000))]
    table += [kernel_speed(sized(first, 24, "enlarged"), n) for n in (400, 10_000)]
    head = ["megapixels", "n", "ns/pixel", "candidates/pixel", "G candidates/s", "of vector peak"]
    show(f"One assignment in one thread ({kernels.instruction_set()})", head, table)
    if "--small" not in arguments:
        for who, much in peaks(sized(first, 24, "tiled")).items():
            print(f"24 megapixels, 10,000 segments, {who}: {much:,.0f} MB beyond the image")
    return int(worse > 0 or least < 2)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
