"""Palettes of photographs of 0.3, 6 and 24 megapixels: time and memory, against Pillow, libimagequant and scikit-learn.

Photographs are enlarged by bicubic interpolation, which makes new colours. Two threads; each in turn, best of several; ratios
are of CPU time. From pixels in memory to pixels in memory; scikit-learn's KMeans gets all pixels as float32, one start.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import foldwise as fw
from benchmarks.common import machine, show
from benchmarks.data import SHARED

SIZES = {"0.3": (640, 427), "6": (3000, 2000), "24": (6000, 4000)}


def photograph(size: str) -> Image.Image:
    """china.jpg in this size."""
    with Image.open(SHARED / "images" / "china.jpg") as opened:
        return opened.convert("RGB").resize(SIZES[size], Image.Resampling.BICUBIC)


def scikit_learn(pixels: np.ndarray, k: int) -> np.ndarray:
    """As in its example: centres of a fit to all pixels."""
    from sklearn.cluster import KMeans

    flat = pixels.reshape(-1, 3).astype(np.float32)
    model = KMeans(k, n_init=1, random_state=0).fit(flat)
    made: np.ndarray = model.cluster_centers_.round().astype(np.uint8)[model.labels_]
    return made


def contestants(size: str, k: int) -> dict[str, Callable[[], object]]:
    import imagequant

    image = photograph(size)
    pixels, plain = np.asarray(image), Image.Dither.NONE
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: fw.quantize(pixels, k),
        "ours, dither": lambda: fw.quantize(pixels, k, dither=True),
        "median cut": lambda: image.quantize(k, Image.Quantize.MEDIANCUT, dither=plain),
        "octree": lambda: image.quantize(k, Image.Quantize.FASTOCTREE, dither=plain),
        "libimagequant": lambda: imagequant.quantize_pil_image(image, dithering_level=0.0, max_colors=k),
    }
    if size == "0.3":  # minutes for larger pictures
        runs["median cut, kmeans=k"] = lambda: image.quantize(k, Image.Quantize.MEDIANCUT, kmeans=k, dither=plain)
        runs["scikit-learn"] = lambda: scikit_learn(pixels, k)
    return runs


def _peak(size: str, options: dict[str, object], pipe: object) -> None:
    pixels = np.asarray(photograph(size))
    fw.quantize(pixels[:64, :64], 4)  # imports and thread pools
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew; that of getrusage would be the parent's
    before = _status("VmRSS")
    fw.quantize(pixels, **options)  # type: ignore[arg-type]
    pipe.send(_status("VmHWM") - before)  # type: ignore[attr-defined]


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])  # kB


def peak(size: str, **options: object) -> str:
    """Memory beyond that of the picture, in MB."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_peak, args=(size, options, there))
    process.start()
    found = here.recv()
    process.join()
    return f"{found / 1024:.0f}"


def turns(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """The least wall and CPU time of each, in turn: that of the processor says more where others use the machine too."""
    best = dict.fromkeys(runs, (np.inf, np.inf))
    for _ in range(rounds):
        for who, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            best[who] = min(best[who][0], wall), min(best[who][1], cpu)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    print(machine())
    for size in asked.sizes:
        rows = []
        for k in (16, 256):
            found = turns(contestants(size, k), asked.rounds)
            for who, (wall, cpu) in found.items():
                memory = peak(size, n_colors=k) if who == "ours" else ""
                rows.append([str(k), who, f"{wall:.2f}", f"{cpu:.2f}", f"{cpu / found['ours'][1]:.1f}", memory])
        head = ["k", "", "seconds", "CPU seconds", "times ours", "MB beyond the picture"]
        show(f"china.jpg in {size} megapixels", head, rows, left=(1,))
    blocks = [[size, peak(size, n_colors=256, block=4)] for size in asked.sizes]
    show("256 tiles of 4 x 4 pixels", ["MP", "MB beyond the picture"], blocks)


if __name__ == "__main__":
    main()
