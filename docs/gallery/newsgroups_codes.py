"""Newsgroup posts by codes of two numbers, beside two principal components: `python docs/gallery/newsgroups_codes.py out.png`.

Sparse TF-IDF rows of 20,000 words. Needs torch or a saved model (a second argument), matplotlib, and the data set beside the
repository (../shared/data). The groups are only used for the colours.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib as mpl
import numpy as np
from PIL import Image

import foldwise as fw
from benchmarks.accuracy.autoencoder import held_out_posts, neighbours, newsgroups, tfidf

mpl.use("Agg")
import matplotlib.pyplot as plt

# The twenty groups in seven families, told apart by their names.
FAMILIES = {
    "comp.": "computers",
    "rec.autos rec.motorcycles": "cars, motorcycles",
    "rec.sport": "sport",
    "sci.": "science",
    "talk.politics": "politics",
    "alt.atheism soc.religion talk.religion": "religion",
    "misc.forsale": "for sale",
}
texts, groups, names = newsgroups()
family = np.array(
    [next(i for i, keys in enumerate(FAMILIES) if name.startswith(tuple(keys.split()))) for name in names]
)
x = tfidf(texts)
model = fw.load(sys.argv[2]) if len(sys.argv) > 2 else fw.Autoencoder(2, random_state=0).fit(x)
pca, unseen = fw.PCA(2).fit(x), held_out_posts(model, x)
colours = plt.get_cmap("tab10")
figure, axes = plt.subplots(1, 2, figsize=(12, 6.4))
for axis, one, name in zip(
    axes, (pca, model), ("two principal components", "two numbers of an autoencoder"), strict=True
):
    codes = one.transform(x)
    for place, label in enumerate(FAMILIES.values()):
        here = codes[family[groups] == place]
        axis.scatter(*here.T, color=colours(place), s=4, alpha=0.45, linewidths=0, label=label)
    low, high = np.quantile(codes, [0.015, 0.985], axis=0)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    right = 100 * neighbours(codes, groups, unseen)[2]
    axis.set_title(f"{name}: {right:.0f} % of unseen posts told by ten neighbours", fontsize=10)
figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=7, markerscale=4, frameon=False)
figure.tight_layout(rect=(0, 0.05, 1, 1))
figure.savefig(sys.argv[1], dpi=72)
Image.open(sys.argv[1]).convert("RGB").quantize(96).save(sys.argv[1], optimize=True)  # a third of the size
