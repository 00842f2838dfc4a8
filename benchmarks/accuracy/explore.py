"""`fw.explore` on published data: time, directions and groups found, agreement with reference labels, and the five sentences.

`python -m benchmarks.accuracy.explore [--pages FOLDER] [name ...]` also writes each page, to be looked at.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import foldwise as fw
from benchmarks.common import machine, show
from benchmarks.data import SHARED, digits
from foldwise.report.explore import explore_report
from foldwise.report.html import write_html


@dataclass(frozen=True)
class Data:
    """Rows, options of `fw.explore`, and reference labels if they are not a column of the table."""

    rows: Any
    options: dict[str, Any]
    truth: Any = None


def table(path: str, **options: Any) -> Callable[[], Data]:
    return lambda: Data(str(SHARED / path), options)


def glass() -> Data:
    return Data(np.loadtxt(SHARED / "uci" / "glass.data.gz"), {}, np.loadtxt(SHARED / "uci" / "glass.labels0.gz"))


def golub() -> Data:
    """38 samples as rows; "ALL" or "AML" is in their names."""
    with gzip.open(SHARED / "genes" / "golub_3051x38.csv.gz", "rt") as file:
        lines = list(csv.reader(file))
    first = next(j for j, cell in enumerate(lines[1]) if _is_number(cell))
    rows = np.array([[float(cell) for cell in line[first:]] for line in lines[1:]]).T
    return Data(rows, {}, ["AML" if "AML" in name else "ALL" for name in lines[0][first:]])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def mnist() -> Data:
    with gzip.open(SHARED / "digits" / "mnist-train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), dtype=np.uint8, offset=8)
    return Data(digits("train"), {}, labels)


def newsgroups() -> Data:
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(SHARED / "text" / "20news_train.jsonl.gz", "rt") as file:
        posts = [json.loads(line) for line in file]
    tfidf = TfidfVectorizer(max_df=0.5, min_df=5, stop_words="english", sublinear_tf=True)
    rows = tfidf.fit_transform([f"{post['subject']}\n{post['text']}" for post in posts])
    kept = np.asarray(rows.getnnz(axis=1) > 0).ravel()  # a row of zeros has no direction
    return Data(rows[kept], {}, np.array([post["group"] for post in posts])[kept])


SETS: dict[str, Callable[[], Data]] = {
    "iris": table("tables/iris.csv", labels="Species"),
    "decathlon": table("tables/decathlon.csv", labels="Competition"),
    "wine": table("tables/wine.csv", labels="class"),
    "glass": glass,
    "old faithful": table("tables/faithful.csv"),
    "mouse": table("benchmark2d/mouse.csv", labels="class"),
    "golub": golub,
    "penguins": table("tables-mixed/penguins.csv", labels="species"),
    "titanic": table("tables-mixed/titanic.csv", labels="survived"),
    "mnist": mnist,
    "newsgroups": newsgroups,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--pages", type=Path)
    given = parser.parse_args()
    print(machine())
    results = []
    for name in given.names or SETS:
        data = SETS[name]()
        started = time.perf_counter()
        found = fw.explore(data.rows, **data.options)
        seconds = time.perf_counter() - started
        report = explore_report(found)
        if given.pages is not None:
            given.pages.mkdir(parents=True, exist_ok=True)
            write_html(report, given.pages / f"{name.replace(' ', '-')}.html")
        results.append([name, *_line(found, data, seconds)])
        print(f"\n{name}", *(f"  {one}" for one in report.lead), sep="\n", flush=True)
    print()
    head = ["data", "rows", "columns", "seconds", "directions", "groups", "reference", "agreement", "model", "stable"]
    show("fw.explore with its defaults", head, results)


def _line(found: Any, data: Data, seconds: float) -> list[str]:
    reference, agreement = "", ""
    if data.truth is not None:
        reference = str(len(set(map(str, data.truth))))
        if found.labels is not None:
            agreement = f"{fw.adjusted_rand(data.truth, found.labels):.2f}"
    for one in found.categories:
        if one.is_label:
            reference, agreement = str(len(one.levels)), f"{one.agreement:.2f}"
    if found.n_clusters == 1:
        agreement = "0.00"
    stable = "" if found.stability is None else f"{np.mean(found.stability.corrected):.2f}"
    return [
        f"{found.overview.rows:,}",
        f"{len(found.names):,}",
        f"{seconds:.1f}",
        str(found.n_components),
        str(found.n_clusters),
        reference,
        agreement,
        "" if found.clusters is None else type(found.clusters).__name__,
        stable,
    ]


if __name__ == "__main__":
    main()
