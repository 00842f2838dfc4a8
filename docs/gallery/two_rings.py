"""Two rings among strays: k-means beside kernel k-means, as a picture: `python docs/gallery/two_rings.py out.png`.

The shading is the cluster that `predict` gives each place. Needs matplotlib.
"""

import sys

import matplotlib as mpl
import numpy as np
from sklearn.datasets import make_circles

import foldwise as fw

mpl.use("Agg")
import matplotlib.pyplot as plt

rings, _ = make_circles(600, factor=0.5, noise=0.06, random_state=0)
rows = np.concatenate([rings, np.random.default_rng(0).uniform(-1.25, 1.25, (20, 2))])
side = np.linspace(-1.4, 1.4, 200)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
shades, dots = ["#cfe0f2", "#f8dcc3"], ["#1f5fa5", "#c25a00"]

figure, axes = plt.subplots(1, 2, figsize=(10, 4.9))
models = {"k-means": fw.KMeans(2), "kernel k-means (rbf, gamma found)": fw.KernelKMeans(2)}
for axis, (name, model) in zip(axes, models.items(), strict=True):
    labels = model.fit_predict(rows)
    field = model.predict(places).reshape(len(side), len(side))
    axis.contourf(side, side, field, levels=[-0.5, 0.5, 1.5], colors=shades)
    for number, colour in enumerate(dots):
        axis.scatter(*rows[labels == number].T, s=9, color=colour, label=f"{np.sum(labels == number)} rows")
    axis.set_title(name)
    axis.legend(loc="upper right", framealpha=0.9)
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
figure.tight_layout()
figure.savefig(sys.argv[1], dpi=80)
