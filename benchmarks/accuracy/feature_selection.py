"""Chosen columns: how close each search comes to the best subset, and to what no subset can surpass.

Variance explained of scaled tables, by every search at several sizes, beside the exact best and the certificate, which is what
so many principal components explain. Then how often each search misses the best subset, the whole forward path, and columns
chosen for clusters: the adjusted Rand index of the clusters with known groups, beside k-means on all columns.
"""

from __future__ import annotations

import csv
import sys

import numpy as np
from sklearn.metrics import adjusted_rand_score

import foldwise as fw
from benchmarks.common import machine, show
from benchmarks.data import SHARED
from benchmarks.labelled import published

_SEARCHES = ("forward", "backward", "floating", "swap")
_CLOSE = 1e-9
_SIZES = (2, 3, 4, 5, 6, 8)
_NUCLEI = (  # what wdbc has the mean, the standard error and the worst of
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave_points",
    "symmetry",
    "fractal_dimension",
)


def tables() -> dict[str, tuple[np.ndarray, list[str]]]:
    """Rows and names of columns."""
    found = {}
    for name, leave_out in (("decathlon", ("Rank", "Points")), ("fgl_glass", ("type",)), ("wine", ("class",))):
        with (SHARED / "tables" / f"{name}.csv").open(newline="") as file:
            lines = [line for line in csv.DictReader(file, skipinitialspace=True) if any(line.values())]
        names = [one for one in lines[0] if one not in leave_out and _is_number(lines[0][one])]
        found[name] = np.array([[float(line[one]) for one in names] for line in lines]), names
    wdbc = next(one for one in published() if one.name == "wdbc").load()[0]
    names = [f"{kind}_{one}" for kind in ("mean", "error", "worst") for one in _NUCLEI]
    found["wdbc"] = wdbc, names
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def certificates() -> bool:
    """Every search at several sizes; whether none is beyond the best, and the best not beyond the bound."""
    rows, missed, sound = [], dict.fromkeys(_SEARCHES, 0), True
    worst, asked = dict.fromkeys(_SEARCHES, 0.0), 0
    for name, (x, columns) in tables().items():
        for size in (size for size in _SIZES if size < len(columns)):
            scores = {s: fw.FeatureSelector(size, search=s, scale=True).fit(x).score_ for s in _SEARCHES}
            exact = fw.FeatureSelector(size, search="exhaustive", scale=True).fit(x)
            for search, score in scores.items():
                missed[search] += score < exact.score_ - _CLOSE
                worst[search] = max(worst[search], exact.score_ - score)
                sound &= score <= exact.score_ + _CLOSE
            sound &= exact.score_ <= exact.bound_ + _CLOSE
            asked += 1
            figures = [f"{score:.4f}{' *' if score < exact.score_ - _CLOSE else '  '}" for score in scores.values()]
            reached = f"{100 * exact.score_ / exact.bound_:.1f} %"
            rows.append(
                [f"{name} ({len(columns)})", str(size), *figures, f"{exact.score_:.4f}", f"{exact.bound_:.4f}", reached]
            )
    head = ["table (columns)", "chosen", *(f"{s}  " for s in _SEARCHES), "exhaustive", "PCA bound", "best of bound"]
    show("Share of the variance of all columns explained, scaled (* not the best subset)", head, rows, left=(0,))
    counts = [[s, f"{missed[s]} of {asked}", f"{worst[s]:.4f}"] for s in _SEARCHES]
    show("How often a search misses the best subset", ["search", "missed", "by at most"], counts)
    print(f"\nno search beyond the best subset, and that not beyond the bound: {sound}")
    return sound


def paths() -> None:
    """The whole forward path of each table."""
    for name, (x, columns) in tables().items():
        model = fw.FeatureSelector(len(columns), search="forward", scale=True).fit(x)
        auto = fw.FeatureSelector("auto", search="forward", scale=True).fit(x)
        steps = model.path_.steps
        rows = []
        for step in steps:
            mark = "auto" if step.size == auto.n_features_ else ""
            figures = f"{step.score:.4f}", f"{step.bound:.4f}", f"{100 * step.score / step.bound:.1f} %"
            rows.append([str(step.size), columns[step.added[0]], *figures, mark])
        head = ["columns", "added", "explained", "PCA bound", "of the bound", ""]
        show(f"{name}: the whole forward path", head, rows, left=(1, 5))
        choice = auto.choice_
        print(f"auto: {choice.chosen} ({choice.low} to {choice.high}): {choice.meaning}")


def clusters() -> None:
    """Columns chosen for clusters against known groups."""
    rows, sums = [], np.zeros(3)
    sets = [one for one in published() if one.kind in ("uci", "tables") and one.name not in ("cassini",)]
    for one in sets:
        x, y = one.load()
        known = y >= 0
        k, d = len(np.unique(y[known])), x.shape[1]
        if d < 4:
            continue
        whole = fw.KMeans(k, random_state=0).fit(x).labels_
        found, kept = [whole], []
        for scoring in ("between-variance", "silhouette"):
            selector = fw.FeatureSelector(
                "auto", criterion="cluster", n_clusters=k, scoring=scoring, random_state=0
            ).fit(x)
            found.append(fw.KMeans(k, random_state=0).fit(selector.transform(x)).labels_)
            kept.append(selector.n_features_)
        agree = [float(adjusted_rand_score(y[known], labels[known])) for labels in found]
        sums += agree
        rows.append(
            [
                one.name,
                f"{len(x):,} x {d}",
                str(k),
                f"{agree[0]:.3f}",
                f"{agree[1]:.3f} ({kept[0]})",
                f"{agree[2]:.3f} ({kept[1]})",
            ]
        )
    means = sums / len(rows)
    rows.append(["mean", "", "", *(f"{each:.3f}" for each in means)])
    head = ["set", "size", "groups", "all columns", "between-variance (columns)", "silhouette (columns)"]
    show("Adjusted Rand index of k-means with known groups: all columns, and columns chosen for clusters", head, rows)


def main() -> int:
    print(machine(), flush=True)
    good = certificates()
    paths()
    clusters()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
