"""MNIST by codes of two numbers, beside two principal components: `python docs/gallery/mnist_codes.py out.png [model.fw]`.

Needs torch (some three minutes on two cores) or a saved model, matplotlib, and the data set beside the repository
(../shared/data). The digits are only used for the colours.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib as mpl
import numpy as np
from PIL import Image

import foldwise as fw
from benchmarks.accuracy.autoencoder import digit_labels
from benchmarks.data import digits

mpl.use("Agg")
import matplotlib.pyplot as plt

x, test, y = digits("train"), digits("t10k"), digit_labels()
model = fw.load(sys.argv[2]) if len(sys.argv) > 2 else fw.Autoencoder(2, random_state=0).fit(x)
pca = fw.PCA(2).fit(x)
shown = np.random.default_rng(0).choice(len(x), 5_000, replace=False)
colours = plt.get_cmap("tab10")
figure, axes = plt.subplots(1, 2, figsize=(12, 6))
for axis, one, name in zip(
    axes, (pca, model), ("two principal components", "two numbers of an autoencoder"), strict=True
):
    codes = one.transform(x)
    lost = one.reconstruction_error(test).mean() / ((test - x.mean(axis=0)) ** 2).sum(axis=1).mean()
    axis.scatter(*codes[shown].T, c=y[shown], cmap=colours, vmin=-0.5, vmax=9.5, s=5, alpha=0.6, linewidths=0)
    low, high = np.quantile(codes[shown], [0.01, 0.99], axis=0)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    for digit in range(10):
        middle = np.median(codes[y == digit], axis=0)
        look = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": colours(digit), "linewidth": 1.5}
        axis.text(*middle, str(digit), ha="center", va="center", fontsize=11, bbox=look)
    axis.set_title(f"{name}: {100 * lost:.0f} % of test images is lost")
figure.tight_layout()
figure.savefig(sys.argv[1], dpi=72)
Image.open(sys.argv[1]).convert("RGB").quantize(96).save(sys.argv[1], optimize=True)  # a third of the size
