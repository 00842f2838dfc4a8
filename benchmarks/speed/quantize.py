"""Palettes of photographs of 0.3, 6 and 24 megapixels: seconds and peak memory, against Pillow, libimagequant and scikit-learn.

Photographs are enlarged by bicubic interpolation, which makes new colours. Two threads; each in turn, best of several. From
pixels in memory to pixels in memory; scikit-learn's KMeans gets all pixels as float32, one start, if that is quick.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import multiprocessing
import resource
from collections.abc import Callable

import numpy as np
from PIL import Image

import foldwise as fw
from benchmarks.common import long_race, machine, show
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
        "median cut, kmeans=k": lambda: image.quantize(k, Image.Quantize.MEDIANCUT, kmeans=k, dither=plain),
        "octree": lambda: image.quantize(k, Image.Quantize.FASTOCTREE, dither=plain),
        "libimagequant": lambda: imagequant.quantize_pil_image(image, dithering_level=0.0, max_colors=k),
    }
    if size == "0.3" or (size == "6" and k == 16):
        runs["scikit-learn"] = lambda: scikit_learn(pixels, k)
    return runs


def _peak(size: str, options: dict[str, object], pipe: object) -> None:
    pixels = np.asarray(photograph(size))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fw.quantize(pixels, **options)  # type: ignore[arg-type]
    pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)  # type: ignore[attr-defined]


def peak(size: str, **options: object) -> str:
    """Memory beyond that of the picture, in MB."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_peak, args=(size, options, there))
    process.start()
    found = here.recv()
    process.join()
    return f"{found / 1024:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    print(machine())
    rows = []
    for size in asked.sizes:
        for k in (16, 256):
            times = {who: min(each) for who, each in long_race(contestants(size, k), asked.rounds).items()}
            for who, seconds in times.items():
                memory = peak(size, n_colors=k) if who == "ours" else ""
                rows.append([size, str(k), who, f"{seconds:.2f}", f"{seconds / times['ours']:.1f}", memory])
    show("china.jpg, enlarged", ["MP", "k", "", "seconds", "times ours", "MB beyond the picture"], rows, left=(2,))
    blocks = [[size, peak(size, n_colors=256, block=4)] for size in asked.sizes]
    show("256 tiles of 4 x 4 pixels", ["MP", "MB beyond the picture"], blocks)


if __name__ == "__main__":
    main()
