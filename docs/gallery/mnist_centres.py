"""The ten centres of k-means on the 60,000 MNIST digits, as a picture: `python docs/gallery/mnist_centres.py out.png`.

Needs matplotlib, and the data set beside the repository (../shared/data).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib as mpl

import foldwise as fw
from benchmarks.data import digits

mpl.use("Agg")
import matplotlib.pyplot as plt

model = fw.KMeans(10, search="breathing", random_state=0).fit(digits("train"))
figure, axes = plt.subplots(2, 5, figsize=(10, 4.4))
for number, axis in enumerate(axes.ravel()):
    axis.imshow(model.cluster_centers_[number].reshape(28, 28), cmap="gray_r")
    axis.set_title(f"{int(model.cluster_weights_[number]):,} rows")
    axis.axis("off")
figure.tight_layout()
figure.savefig(sys.argv[1], dpi=90)
