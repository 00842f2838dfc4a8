"""Palettes of photographs: PSNR, CIEDE2000, seconds and bytes, against Pillow's methods and libimagequant, without dithering.

Ours with its defaults, and as extra columns in other spaces. Bytes: of the palette PNG that the same writer makes of each
result. The default must have a higher PSNR than each of Pillow's three methods and libimagequant on every photograph.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image
from skimage.color import deltaE_ciede2000, rgb2lab

import foldwise as fw
from benchmarks.common import show
from benchmarks.data import SHARED
from foldwise.data.image_file import encoded, read_image
from foldwise.models.images.apply import psnr_of

PHOTOGRAPHS = ("china.jpg", "flower.jpg", "astronaut.png", "hubble_deep_field.jpg", "camera.png")
NUMBERS = (8, 16, 32, 64, 128, 256)
MUST_BEAT = ("median cut", "max coverage", "octree", "libimagequant")


def others() -> dict[str, Callable[[Any, int], Any]]:
    """By name: a picture of Pillow and a number of colours to a picture with a palette."""
    import imagequant

    plain = Image.Dither.NONE
    return {
        "median cut": lambda image, k: image.quantize(k, Image.Quantize.MEDIANCUT, dither=plain),
        "max coverage": lambda image, k: image.quantize(k, Image.Quantize.MAXCOVERAGE, dither=plain),
        "octree": lambda image, k: image.quantize(k, Image.Quantize.FASTOCTREE, dither=plain),
        "median cut, kmeans=k": lambda image, k: image.quantize(k, Image.Quantize.MEDIANCUT, kmeans=k, dither=plain),
        "libimagequant": lambda image, k: imagequant.quantize_pil_image(image, dithering_level=0.0, max_colors=k),
    }


def judged(before: np.ndarray, lab: np.ndarray, palette: np.ndarray, labels: np.ndarray) -> tuple[float, float, int]:
    """PSNR, mean CIEDE2000 and bytes."""
    after = palette[labels]
    squares = float(((before.astype(np.float64) - after) ** 2).sum())
    return (
        psnr_of(squares, before.size),
        float(deltaE_ciede2000(lab, rgb2lab(after)).mean()),
        len(encoded(labels, palette=palette)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", nargs="*", default=PHOTOGRAPHS)
    lost = 0
    for name in parser.parse_args().photographs:
        pixels = read_image(SHARED / "images" / name)
        image = Image.fromarray(pixels).convert("RGB")
        before = np.asarray(image)
        lab = rgb2lab(before)
        rows, least = [], np.inf
        for k in NUMBERS:
            found = {}
            for who, run in others().items():
                start = time.perf_counter()
                made = run(image, k)
                seconds = time.perf_counter() - start
                colours = np.array(made.getpalette("RGB"), np.uint8).reshape(-1, 3)
                found[who] = (
                    *judged(before, lab, colours[: int(np.asarray(made).max()) + 1], np.asarray(made)),
                    seconds,
                )
            for space in ("auto", "rgb", "lab", "oklab"):
                start = time.perf_counter()
                ours = fw.quantize(pixels, k, space=space)
                seconds = time.perf_counter() - start
                who = "ours" if space == "auto" else f"ours, {space}"
                assert ours.palette is not None
                found[who] = (*judged(before, lab, ours.palette, ours.labels), seconds)
            best = max(found[who][0] for who in MUST_BEAT)
            won = found["ours"][0] > best or (np.isinf(best) and np.isinf(found["ours"][0]))
            lost += not won
            least = min(least, found["ours"][0] - best if np.isfinite(best) else np.inf)
            for who, (psnr, difference, size, seconds) in found.items():
                mark = ("best" if won else "NOT BEST") if who == "ours" else ""
                cells = [f"{psnr:.2f}", f"{difference:.2f}", f"{seconds:.2f}", f"{size:,}", mark]
                rows.append([str(k) if who == "median cut" else "", who, *cells])
        title = (
            f"{name}: {before.shape[1]} x {before.shape[0]}; ours is at least {least:.2f} dB above what it must beat"
        )
        show(title, ["k", "", "PSNR", "CIEDE2000", "seconds", "bytes", ""], rows, left=(1, 6))
    print(f"\n{'Higher PSNR everywhere.' if not lost else f'NOT higher in {lost} cases.'}")
    return int(lost > 0)


if __name__ == "__main__":
    raise SystemExit(main())
