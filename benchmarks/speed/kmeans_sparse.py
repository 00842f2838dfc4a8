"""K-means on documents (TF-IDF, sparse) compared with scikit-learn's: the same start, one run, interleaved, two threads."""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import gzip
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import foldwise as fw
from benchmarks.common import race, show

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "text" / "20news_train.jsonl.gz"


def main() -> None:
    warnings.simplefilter("ignore")
    if not DATA.is_file():
        print("the 20 newsgroups posts (../shared/data beside the repository) are not here")
        return
    with gzip.open(DATA, "rt") as file:
        posts = [json.loads(line) for line in file]
    vectoriser = TfidfVectorizer(max_df=0.5, min_df=2, stop_words="english", sublinear_tf=True)
    x = vectoriser.fit_transform(f"{post['subject']}\n{post['text']}" for post in posts)
    some = np.diff(x.indptr) > 0
    x, groups = x[some], np.array([post["group"] for post in posts])[some]
    lines = []
    for k in (20, 100):
        start = x[np.random.default_rng(0).choice(x.shape[0], k, replace=False)].toarray()
        given = {"init": start, "n_init": 1, "max_iter": 20, "tol": 0}
        ours, theirs = fw.KMeans(k, **given).fit(x), KMeans(k, algorithm="lloyd", **given).fit(x)
        times = race(
            {
                "ours": lambda k=k, given=given: fw.KMeans(k, **given).fit(x),
                "theirs": lambda k=k, given=given: KMeans(k, algorithm="lloyd", **given).fit(x),
            },
            rounds=3,
        )
        same = float(np.mean(ours.labels_ == theirs.labels_))
        lines.append(
            [
                f"{k}",
                f"{times['ours']:.2f}",
                f"{times['theirs']:.2f}",
                f"{times['theirs'] / times['ours']:.1f}",
                f"{same:.2%}",
            ]
        )
    show(
        f"K-means, 20 steps, {x.shape[0]} x {x.shape[1]} sparse ({x.nnz / x.shape[0]:.0f} words a document): seconds",
        ["k", "foldwise", "scikit-learn", "ratio", "equal labels"],
        lines,
    )
    found = {
        "foldwise KMeans": fw.KMeans(20, random_state=0),
        "foldwise KMeans, cosine": fw.KMeans(20, metric="cosine", random_state=0),
        "foldwise MiniBatchKMeans, cosine": fw.MiniBatchKMeans(20, metric="cosine", random_state=0),
        "scikit-learn KMeans": KMeans(20, random_state=0),
        "scikit-learn MiniBatchKMeans": MiniBatchKMeans(20, random_state=0),
    }
    times = race({name: lambda model=model: model.fit(x) for name, model in found.items()}, rounds=1)
    scores = [(normalized_mutual_info_score, 3), (adjusted_rand_score, 3)]
    show(
        "The 20 newsgroups as 20 clusters, to the end, own start",
        ["", "seconds", "NMI", "adjusted Rand"],
        [
            [name, f"{times[name]:.2f}", *(f"{score(groups, model.labels_):.{digits}f}" for score, digits in scores)]
            for name, model in found.items()
        ],
    )


if __name__ == "__main__":
    main()
