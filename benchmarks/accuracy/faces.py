"""Eigenfaces: recognition by number of components beside scikit-learn, novelty of what is no face, and the time it takes.

Recognition: accuracy of the nearest neighbour, leaving one out (components fitted again without each image, or with it) and on
splits in half, the same halves for scikit-learn's PCA and KNeighborsClassifier(1). Novelty: held-out faces of the Olivetti set
against patches of photographs at three scales (flat ones apart), MNIST digits, noise, even grey: by the score, by the plain
residual of the lecture, by its share of the variance, and by residual and distance within the space (Moghaddam and Pentland
1997). Held out are half of the images, or all images of half of the people; a quarter of them gives the units of the score, and
the others are scored. Needs Pillow.

`python -m benchmarks.accuracy.faces quick` leaves out the 60,000 digits.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

import foldwise as fw
from benchmarks.common import race, show
from benchmarks.data import SHARED, digits, missing
from foldwise.models.images.novelty import COMPONENTS, auc, residuals
from foldwise.models.images.recognition import Recognising

COUNTS = tuple(range(10, 151, 10))
SPLITS = 10


def olivetti() -> tuple[np.ndarray, np.ndarray]:
    with np.load(SHARED / "faces" / "olivetti_64x64.npz") as file:
        return file["images"], file["subject"].astype(np.intp)


def small_digits() -> tuple[np.ndarray, np.ndarray]:
    table = np.loadtxt(SHARED / "digits" / "optdigits_8x8.csv.gz", delimiter=",")
    return table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(np.intp)


def recognition(name: str, images: np.ndarray, labels: np.ndarray, splits: int = SPLITS) -> None:
    """Ours beside theirs, leaving one out with components of all images, and on the same halves."""
    rows = images.reshape(len(images), -1).astype(np.float64)
    rank = min(len(rows) - 1, rows.shape[1])
    counts = tuple(sorted({min(k, rank) for k in COUNTS}))
    began = time.perf_counter()
    found = fw.eigenfaces(images, labels, n_components=counts, n_splits=splits)
    seconds = time.perf_counter() - began
    seen = _their_left_out(rows, labels, counts)
    halves = Recognising(found.images.values, labels, counts, 0, None)
    theirs = np.mean([_their_split(rows, labels, counts, *halves._halves()) for _ in range(splits)], axis=0)
    ours, table = found.recognition, []
    assert ours is not None
    with_it = _our_left_out(rows, labels, counts)
    for place, k in enumerate(counts):
        own = ours.split.mean(axis=0)[place]
        table.append(
            [
                str(k),
                f"{ours.left_out[place]:.2%}",
                f"{with_it[place]:.2%}",
                f"{seen[place]:.2%}",
                f"{own:.2%} +- {ours.split[:, place].std(ddof=1):.2%}",
                f"{theirs[place]:.2%}",
                f"{ours.without_light.mean(axis=0)[place]:.2%}",
                f"{ours.whitened.mean(axis=0)[place]:.2%}",
            ]
        )
    pixels = f"{ours.pixels_left_out:.2%}"
    table.append(["all pixels", pixels, "", "", f"{ours.pixels_split.mean():.2%}", "", "", ""])
    head = [
        "components",
        "left out",
        "seen",
        "scikit-learn seen",
        "split",
        "scikit-learn split",
        "without 3",
        "whitened",
    ]
    show(f"{name}: images recognised ({len(rows):,} images, everything in {seconds:.1f} s)", head, table)
    apart = [
        float(np.abs(with_it - seen).max()) * len(rows),
        float(np.abs(ours.split.mean(axis=0) - theirs).max()) * ours.tested * splits,
    ]
    # Whole pixels have equal distances now and then, which rounding decides one way or the other.
    print(f"images judged otherwise than by scikit-learn: seen {apart[0]:.0f}, in {splits} splits {apart[1]:.0f}")


def _our_left_out(rows: np.ndarray, labels: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    from foldwise.models.images.nearest import nearest

    scores = fw.PCA(counts[-1]).fit_transform(rows)
    return (labels[nearest(scores, scores, counts, own=np.arange(len(rows)))] == labels[:, None]).mean(axis=0)


def _their_left_out(rows: np.ndarray, labels: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Components of all images, and the nearest other one: the second of two neighbours, the first being itself."""
    scores = PCA(counts[-1], svd_solver="full").fit_transform(rows)
    right = []
    for k in counts:
        known = KNeighborsClassifier(1, algorithm="brute").fit(scores[:, :k], labels)
        near = known.kneighbors(n_neighbors=1, return_distance=False)[:, 0]
        right.append((labels[near] == labels).mean())
    return np.array(right)


def _their_split(rows: Any, labels: Any, counts: tuple[int, ...], train: Any, test: Any) -> list[float]:
    pca = PCA(min(counts[-1], len(train) - 1), svd_solver="full").fit(rows[train])
    known, asked = pca.transform(rows[train]), pca.transform(rows[test])
    return [
        KNeighborsClassifier(1, algorithm="brute").fit(known[:, :k], labels[train]).score(asked[:, :k], labels[test])
        for k in counts
    ]


# ---------------------------------------------------------------- novelty


def not_faces() -> dict[str, np.ndarray]:
    """Grey pictures of 64 x 64 pixels that show no face, or hardly ever one."""
    from PIL import Image

    rng = np.random.default_rng(0)
    patches: dict[str, list[np.ndarray]] = {"flat patches": [], "other patches": []}
    for path in sorted((SHARED / "images").iterdir()):
        picture = Image.open(path).convert("L")
        for size in (64, 128, 256):
            for _ in range(40):
                x, y = (int(rng.integers(0, side - size + 1)) for side in picture.size)
                cut = picture.crop((x, y, x + size, y + size)).resize((64, 64), Image.Resampling.BOX)
                pixels = np.asarray(cut, np.float64)
                patches["flat patches" if pixels.std() < 12 else "other patches"].append(pixels)
    numbers = [
        np.asarray(Image.fromarray(one.reshape(28, 28).astype(np.uint8)).resize((64, 64)), np.float64)
        for one in digits("t10k")[:300]
    ]
    return {
        **{name: np.stack(some) for name, some in patches.items()},
        "MNIST digits": np.stack(numbers),
        "noise": rng.uniform(0, 255, (300, 64, 64)),
        "faint noise": rng.normal(128, 3, (100, 64, 64)),
        "even grey": np.full((20, 64, 64), 1.0) * np.linspace(0, 255, 20)[:, None, None],
    }


def novelty() -> None:
    images, people = olivetti()
    rows, others = images.reshape(400, -1).astype(np.float64), not_faces()
    rng = np.random.default_rng(0)
    random = np.isin(np.arange(400), rng.permutation(400)[:200])
    known = np.isin(people, rng.permutation(40)[:20])
    for title, train in (("half of the images held out", random), ("half of the people held out", known)):
        pca = fw.PCA(COMPONENTS).fit(rows[train])
        rest = rng.permutation(np.flatnonzero(~train))
        spared, held = rest[: len(rest) // 4], rest[len(rest) // 4 :]  # for the units of the score, and to be scored
        usual = _scores(pca, rows[spared], None)
        typical = [float(np.median(usual[name])) for name in ("plain residual", "share of the variance")]
        members = _scores(pca, rows[held], typical)
        every = {name: _scores(pca, one.reshape(len(one), -1), typical) for name, one in others.items()}
        table = []
        for score in members:
            cells = [score]
            all_of = np.concatenate([one[score] for one in every.values()])
            for one in (all_of, *(found[score] for found in every.values())):
                below = np.count_nonzero(one <= members[score].max())
                cells.append(f"{auc(members[score], one):.4f} ({below})")
            table.append(cells)
        total = sum(len(one) for one in others.values())
        head = ["score", f"all {total}", *(f"{name} {len(one)}" for name, one in others.items())]
        show(
            f"Olivetti, {title}: AUC of non-faces against {len(held)} faces (not above every face)",
            head,
            table,
        )


def _scores(pca: fw.PCA, rows: np.ndarray, typical: list[float] | None) -> dict[str, np.ndarray]:
    left, share = residuals(pca, rows)
    within = (np.square(pca.transform(rows)) / pca.explained_variance_).sum(axis=1)
    found = {
        "plain residual": left,
        "share of the variance": share,
        "residual and distance within": within + left / pca.noise_variance_,
    }
    if typical is not None:
        found = {"Foldwise": 0.5 * (left / typical[0] + share / typical[1]), **found}
    return found


# ---------------------------------------------------------------- time


def speed(name: str, rows: np.ndarray, labels: np.ndarray, counts: tuple[int, ...], rounds: int) -> None:
    """Components of all images, and every image against all others for all numbers of components."""
    times = race(
        {
            "ours": lambda: _our_left_out(rows, labels, counts),
            "scikit-learn": lambda: _their_left_out(rows, labels, counts),
        },
        rounds,
    )
    ratio = times["scikit-learn"] / times["ours"]
    cells = [
        f"{len(rows):,} x {rows.shape[1]:,}",
        *(f"{seconds:.2f} s" for seconds in times.values()),
        f"{ratio:.1f} x",
    ]
    show(
        f"{name}: PCA and nearest neighbours, {len(counts)} numbers of components", ["images", *times, "ratio"], [cells]
    )


def many_digits() -> None:
    """The 60,000 digits: all of it once, as the command does it."""
    path = SHARED / "digits" / "mnist-train-images-idx3-ubyte.gz"
    began = time.perf_counter()
    found = fw.eigenfaces(path)
    seconds, ours = time.perf_counter() - began, found.recognition
    assert ours is not None
    table = [
        [str(k), f"{ours.left_out[place]:.2%}", f"{ours.split.mean(axis=0)[place]:.2%}"]
        for place, k in enumerate(ours.counts)
    ]
    table.append(["all pixels", f"{ours.pixels_left_out:.2%}", f"{ours.pixels_split.mean():.2%}"])
    show(f"MNIST, 60,000 images, everything in {seconds:.0f} s", ["components", "left out", "split"], table)
    assert found.novelty is not None
    kinds = [[one.name, str(len(one.score)), f"{one.auc:.4f}", str(one.misplaced)] for one in found.novelty.others]
    show("MNIST: what is no digit", ["other images", "number", "AUC", "not above every digit"], kinds)


def main(words: list[str]) -> None:
    try:
        faces, people = olivetti()
        numbers, which = small_digits()
        recognition("Olivetti faces", faces, people)
        recognition("8 x 8 digits", numbers, which, 5)
        novelty()
        flat = faces.reshape(400, -1).astype(np.float64)
        speed("Olivetti faces", flat, people, COUNTS, 3)
        some = digits("train")[:10_000]
        with_labels = fw.scan(SHARED / "digits" / "mnist-train-images-idx3-ubyte.gz")
        known = np.asarray(getattr(with_labels, "labels", None))[:10_000].astype(np.intp)
        speed("MNIST, the first 10,000", some.astype(np.float64), known, COUNTS, 1)
        if "quick" not in words:
            many_digits()
    except FileNotFoundError as error:
        print(missing(error))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(sys.argv[1:])
