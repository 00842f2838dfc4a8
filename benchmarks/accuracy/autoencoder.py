"""Autoencoders beside PCA: `python -m benchmarks.accuracy.autoencoder [linear] [digits] [newsgroups] [novelty]`.

linear: angles between the decoder of a linear autoencoder and the principal components. digits: MNIST, 60,000 images to learn
from: what is lost of 10,000 others, and how well a linear classifier reads the digit from the codes. newsgroups: how many of
a post's neighbours in the plane of the codes are of its group. novelty: a digit that training has not seen, found by its
reconstruction error. The last three need torch and take minutes each.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldwise as fw
from benchmarks.common import machine, show
from benchmarks.data import SHARED, digits, missing
from foldwise.selection.code_profile import held_out_split

_SIZES = (2, 8, 32)
_HELD_OUT = 10_000


def digit_labels() -> np.ndarray:
    """The digits of the 60,000 training images."""
    with gzip.open(SHARED / "digits" / "mnist-train-labels-idx1-ubyte.gz") as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=8).astype(int)


def newsgroups() -> tuple[list[str], np.ndarray, list[str]]:
    """The posts, the numbers of their groups, and the names of the groups."""
    with gzip.open(SHARED / "text" / "20news_train.jsonl.gz", "rt") as file:
        posts = [json.loads(line) for line in file]
    names, groups = np.unique([post["group"] for post in posts], return_inverse=True)
    return [f"{post['subject']}\n{post['text']}" for post in posts], groups, names.tolist()


def tfidf(texts: list[str]) -> object:
    """Sparse rows of 20,000 words."""
    return TfidfVectorizer(stop_words="english", min_df=5, sublinear_tf=True, max_features=20_000).fit_transform(texts)


def timed_fit(model: object, x: object) -> tuple[object, float]:
    """A fitted model, and the seconds that it took."""
    began = time.perf_counter()
    model.fit(x)
    return model, time.perf_counter() - began


def _tables() -> dict[str, np.ndarray]:
    found = {}
    for name in ("iris", "wine", "fgl_glass", "decathlon"):
        with (SHARED / "tables" / f"{name}.csv").open(newline="") as file:
            _, *rows = csv.reader(file)
        numeric = [j for j, cell in enumerate(rows[0]) if cell.replace(".", "").replace("-", "").isdigit()]
        found[name] = np.array([[float(row[j]) for j in numeric] for row in rows])
    with gzip.open(SHARED / "digits" / "optdigits_8x8.csv.gz", "rt") as file:
        found["optdigits"] = np.loadtxt(file, delimiter=",", skiprows=1)[:, :64]
    return found


def linear() -> bool:
    """The largest angle between a principal component and the decoder's span, and what more is lost than by PCA."""
    rows, held = [], True
    for name, x in _tables().items():
        for scale in (False, True):
            for k in (1, 2, 3):
                u = x - x.mean(axis=0)
                spread = u.std(axis=0, ddof=1)
                u = u / np.where(spread > 0, spread, 1.0) if scale else u
                directions = np.linalg.svd(u, full_matrices=False)[2][:k].T
                exact = fw.LinearAutoencoder(k, scale=scale).fit(x)
                angles = [float(subspace_angles(exact.decoder_weights_, directions).max())]
                for dtype in (np.float64, np.float32):
                    trained = fw.LinearAutoencoder(k, solver="gradient", scale=scale).fit(x.astype(dtype))
                    angles.append(float(subspace_angles(trained.decoder_weights_.astype(float), directions).max()))
                held &= max(angles) < 1e-3
                more = trained.reconstruction_error_ / trained.pca_error_ - 1
                shown = [name, "yes" if scale else "no", str(k), *(f"{angle:.1e}" for angle in angles)]
                rows.append([*shown, str(trained.n_iter_), f"{more:.1e}"])
    head = ["table", "scaled", "codes", "closed form", "gradient", "gradient, float32", "steps", "error above PCA's"]
    show("Angle to the principal components, in radians (independent SVD)", head, rows)
    return held


def mnist() -> bool:
    """What codes of MNIST lose of held-out images, and what a linear classifier reads from them."""
    train, test, y = digits("train"), digits("t10k"), digit_labels()
    away = ((test - train.mean(axis=0)) ** 2).sum(axis=1).mean()
    rows, held = [], True
    for k in _SIZES:
        ours, seconds = timed_fit(fw.Autoencoder(k, random_state=0), train)
        pca, quick = timed_fit(fw.PCA(k), train)
        lost = [float(model.reconstruction_error(test).mean()) / away for model in (ours, pca)]
        right = [_linear_classifier(model.transform(train), y) for model in (ours, pca)]
        held &= lost[0] < lost[1]
        per_cent = [f"{100 * value:.2f} %" for value in (*lost, *right)]
        rows.append([str(k), *per_cent, f"{ours.best_epoch_} of {ours.n_iter_}", f"{seconds:.0f}", f"{quick:.1f}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    show(
        "MNIST: lost of the variance of 10,000 test images; digits told right of 10,000 others, of which training has seen the "
        "images, but no labels",
        ["size", "lost", "PCA", "right", "PCA", "best epoch", "seconds", "PCA"],
        rows,
    )
    return held


def _linear_classifier(codes: np.ndarray, y: np.ndarray) -> float:
    """The share of the last 10,000 rows that a logistic regression on the others tells right."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(codes[:-_HELD_OUT], y[:-_HELD_OUT])
    return float(model.score(codes[-_HELD_OUT:], y[-_HELD_OUT:]))


def topics() -> bool:
    """How often the nearest posts, by codes and by principal components, are of the same newsgroup."""
    texts, groups, _ = newsgroups()
    x = tfidf(texts)
    rows, held = [], True
    for k in (2, 8):
        ours, seconds = timed_fit(fw.Autoencoder(k, random_state=0), x)
        pca, quick = timed_fit(fw.PCA(k), x)
        unseen = held_out_posts(ours, x)
        pairs = [neighbours(model.transform(x), groups, unseen) for model in (ours, pca)]
        held &= pairs[0][2] > pairs[1][2]
        shown = [f"{100 * value:.1f} %" for one in zip(*pairs, strict=True) for value in one]
        lost = ours.held_out_error_ / ours.held_out_variance_, ours.pca_error_ / ours.held_out_variance_
        rows.append([str(k), *shown, *(f"{100 * value:.1f} %" for value in lost), f"{seconds:.0f}", f"{quick:.1f}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    show(
        f"20 newsgroups, {x.shape[0]:,} posts by {x.shape[1]:,} words (TF-IDF, sparse): votes of the nearest posts that are "
        "right, leaving each post out; and, of posts that training held out, among those that it has seen",
        ["size", "1-NN", "PCA", "10-NN", "PCA", "held out: 10-NN", "PCA", "lost", "PCA", "seconds", "PCA"],
        rows,
    )
    return held


def held_out_posts(model: object, x: object) -> np.ndarray:
    """Which rows the training did not see, but for the choice of the epoch."""
    source = fw.scan(x)
    split = held_out_split(model, source)
    return np.concatenate([split.held_out(piece.load()) for piece in source.pieces()])


def neighbours(codes: np.ndarray, groups: np.ndarray, unseen: np.ndarray | None = None) -> tuple[float, ...]:
    """Accuracy of the vote of the nearest and of the ten nearest other rows; and of unseen rows among the others."""
    near = NearestNeighbors(n_neighbors=11).fit(codes).kneighbors(codes, return_distance=False)
    own = np.arange(len(codes))[:, None]
    order = np.argsort(near == own, axis=1, kind="stable")[:, :10]  # the row itself last, wherever ties have put it
    votes = groups[np.take_along_axis(near, order, axis=1)]
    found = float(np.mean(votes[:, 0] == groups)), float(np.mean(_winners(votes) == groups))
    if unseen is None:
        return found
    near = NearestNeighbors(n_neighbors=10).fit(codes[~unseen]).kneighbors(codes[unseen], return_distance=False)
    return *found, float(np.mean(_winners(groups[~unseen][near]) == groups[unseen]))


def _winners(votes: np.ndarray) -> np.ndarray:
    return np.apply_along_axis(np.bincount, 1, votes, minlength=votes.max() + 1).argmax(axis=1)


def novelty(left_out: tuple[int, ...] = (8, 4, 1), k: int = 32) -> bool:
    """A digit that was left out of the training, among others that were not seen either."""
    x, y = digits("train"), digit_labels()
    rows, held = [], True
    for digit in left_out:
        known = np.flatnonzero(y[:-_HELD_OUT] != digit)
        ours, seconds = timed_fit(fw.Autoencoder(k, random_state=0), x[known])
        pca, _ = timed_fit(fw.PCA(k), x[known])
        strange = y[-_HELD_OUT:] == digit
        areas = [float(roc_auc_score(strange, model.reconstruction_error(x[-_HELD_OUT:]))) for model in (ours, pca)]
        held &= areas[0] > areas[1]
        rows.append([str(digit), f"{areas[0]:.3f}", f"{areas[1]:.3f}", f"{seconds:.0f}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    show(
        f"MNIST without one digit, codes of {k}: area under the ROC curve of the reconstruction error, 10,000 held-out images",
        ["left out", "autoencoder", "PCA", "seconds"],
        rows,
    )
    return held


_PARTS: dict[str, Callable[[], bool]] = {"linear": linear, "digits": mnist, "newsgroups": topics, "novelty": novelty}


def main(argv: list[str] | None = None) -> bool:
    """Run the parts that were named, or all."""
    asked = list(sys.argv[1:] if argv is None else argv) or list(_PARTS)
    held = True
    for name in asked:
        if name not in _PARTS:
            print(f"{name}: give some of {', '.join(_PARTS)}")
            return False
        try:
            held &= _PARTS[name]()
        except FileNotFoundError as error:
            print(f"{name}: {missing(error)}")
    print(machine())
    return held


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
