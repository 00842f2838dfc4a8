"""A photograph in 4 to 256 colours, dithered or not, and in 256 tiles: `python docs/gallery/quantize.py out.png`.

Needs matplotlib, and the photographs beside the repository (../shared/data). The photograph is danielbuechele's (flickr),
CC BY 2.0, as shipped in scikit-learn.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib as mpl
import numpy as np

import foldwise as fw
from benchmarks.data import SHARED
from foldwise.data.image_file import read_image

mpl.use("Agg")
import matplotlib.pyplot as plt

photograph = read_image(SHARED / "images" / "china.jpg")
numbers = (4, 8, 16, 64, 256)
rows = (
    ("colours", {}),
    ("colours, dithered", {"dither": True}),
    ("tiles of 4 x 4", {"block": 4}),
)
figure, axes = plt.subplots(len(rows) + 1, len(numbers), figsize=(20, 10.4), height_ratios=(1, 7, 7, 7))
for axis in axes.ravel():
    axis.axis("off")
for axis, k in zip(axes[0], numbers, strict=True):  # the palettes, each colour as wide as its share
    made = fw.quantize(photograph, k)
    ends = np.concatenate([[0], np.cumsum(made.counts) / made.labels.size])
    strip = made.palette[np.searchsorted(ends[1:], np.linspace(0, 1, 640, endpoint=False), side="right")]
    axis.imshow(strip[None].repeat(60, axis=0), aspect="auto")
    axis.set_title(f"palette of {k}", fontsize=13)
for line, (name, options) in zip(axes[1:], rows, strict=True):
    for axis, k in zip(line, numbers, strict=True):
        made = fw.quantize(photograph, k, **options)
        size = len(made.encoded(".npz" if "block" in options else ".png"))
        axis.imshow(made.pixels)
        axis.set_title(f"{k} {name}: {made.psnr:.1f} dB, {size / 1000:.0f} kB", fontsize=13)
figure.text(0.99, 0.005, "Photograph: danielbuechele, CC BY 2.0", ha="right", fontsize=10, color="0.4")
figure.subplots_adjust(0.005, 0.02, 0.995, 0.97, 0.02, 0.12)
figure.set_dpi(60)
figure.canvas.draw()
fw.quantize(np.asarray(figure.canvas.buffer_rgba()), 256).save(sys.argv[1])
