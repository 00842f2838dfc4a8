"""FAMD and MCA of real tables: how far eigenvalues and coordinates are from prince's, and the ratio of times.

Both libraries divide by n, so eigenvalues of FAMD need no factor; prince's MCA is the correspondence analysis of indicators,
whose eigenvalues are ours divided by the number of categories. prince is asked for its exact solver (engine="scipy").
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import foldwise as fw
from benchmarks.common import race, show
from benchmarks.mixed import COLUMNS, complete
from foldwise.prepare.encode import encode

_BAR = 1e-8


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference; both are padded with zeros, since prince adds components without variance."""
    size = max(len(ours), len(theirs))
    pads = [np.concatenate([each, np.zeros(size - len(each))]) for each in (ours, theirs)]
    return float(np.abs(pads[0] - pads[1]).max())


def coordinates_apart(ours: Any, theirs: Any, variances: Any) -> float:
    """The largest difference of coordinates, signs aside, where a component's variance is apart from its neighbours'."""
    gaps = np.abs(np.diff(np.concatenate([[np.inf], variances, [0.0]])))
    clear = np.flatnonzero(np.minimum(gaps[:-1], gaps[1:])[: ours.shape[1]] > 1e-3)
    ours, theirs = ours[:, clear], np.asarray(theirs)[:, clear]
    return float(np.abs(ours * np.sign((ours * theirs).sum(axis=0)) - theirs).max())


def main() -> None:
    import prince

    warnings.simplefilter("ignore")
    rows, worst = [], 0.0
    for name in COLUMNS:
        frame, categories = complete(name)
        words = frame[list(categories)]
        source = encode(frame, fewest=0, rare=0.0)
        model = fw.PCA().fit(source)
        k = model.n_components_

        def famd(frame: Any = frame, k: int = k) -> Any:
            return prince.FAMD(n_components=k, engine="scipy").fit(frame)

        def mca(words: Any = words, k: int = k) -> Any:
            return prince.MCA(n_components=k, engine="scipy").fit(words)

        theirs = famd()
        eigen = apart(model.explained_variance_, np.asarray(theirs.eigenvalues_))
        scores = coordinates_apart(
            model.transform(source), theirs.row_coordinates(frame), np.asarray(model.explained_variance_)
        )
        cells = [f"{len(frame)} x {frame.shape[1]}", str(source.n_columns), f"{eigen:.0e}", f"{scores:.0e}"]
        worst = max(worst, eigen, scores)
        if len(categories) > 1:
            alone = fw.PCA().fit(encode(words, fewest=0, rare=0.0))
            found = apart(alone.mca_eigenvalues(), np.asarray(mca(k=alone.n_components_).eigenvalues_))
            cells.append(f"{found:.0e}")
            worst = max(worst, found)
        else:
            cells.append("-")
        times = race({"ours": lambda source=source: fw.PCA().fit(source), "prince": famd}, rounds=3)
        whole = race({"ours": lambda frame=frame: fw.PCA().fit(encode(frame))}, rounds=3)["ours"]
        rows.append([name, *cells, f"{times['ours'] / times['prince']:.3f}", f"{whole / times['prince']:.3f}"])
    head = ["table", "rows x columns", "with indicators", "FAMD eigenvalues", "row coordinates", "MCA eigenvalues"]
    head += ["time / prince", "with encoding"]
    show("FAMD and MCA against prince: largest difference", head, rows)
    print(f"at worst {worst:.1e} (bar {_BAR:.0e})")
    assert worst < _BAR


if __name__ == "__main__":
    main()
