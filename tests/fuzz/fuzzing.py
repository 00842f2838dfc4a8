"""Damaged files and random command lines: each must be refused with a FoldwiseError, or give the right answer.

Run as a program, so that a crash or a hang of a reader is seen from outside: `python fuzzing.py KIND COUNT SEED` prints one
line with the counts, and what went wrong. KIND is one of KINDS.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import foldwise as fw
from foldwise.errors import FoldwiseError

READERS = ("csv", "tsv", "jsonl", "npy", "parquet", "csv.gz", "sql")
SAVED = ("model", "checkpoint")
KINDS = (*READERS, *SAVED, "command")
_TOKENS = (
    b"nan",
    b"1e999",
    b"-",
    b'"',
    b"\x00",
    b",",
    b"\n",
    b"{",
    b"]",
    b"\xff\xfe",
    b"1_000",
    b"0x1F",
    b"\xc3\xa9",
    b"inf",
)
_CHARACTERS = (
    b"0",
    b"7",
    b".",
    b"-",
    b"e",
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r\n",
    b'"',
    b" ",
    b"a",
    b"+",
    b"NA",
    b"#",
    b"'",
)


def mutated(content: bytes, rng: np.random.Generator, *, text: bool = False) -> bytes:
    """The same bytes after one to three accidents; half of those of text are in characters that occur in it."""
    data = bytearray(content)
    if text and rng.random() < 0.5:
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            data[at : at + int(rng.integers(2))] = _CHARACTERS[int(rng.integers(len(_CHARACTERS)))]
        return bytes(data)
    for _ in range(int(rng.integers(1, 4))):
        at, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 40))
        kind = int(rng.integers(8))
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = rng.bytes(size)
        elif kind == 3:
            del data[at : at + size]
        elif kind == 4:
            data[at:at] = data[at : at + size]
        elif kind == 5:
            data[at : at + size] = _TOKENS[int(rng.integers(len(_TOKENS)))]
        elif kind == 6:
            data[at : at + 4] = b"\xff\xff\xff\xff" if rng.integers(2) else b"\x00\x00\x00\x80"
        else:
            data[at : at + size] = rng.bytes(size)
    return bytes(data)


def table(rng: np.random.Generator) -> np.ndarray:
    return np.round(rng.normal(size=(60, 3)) * 10, 3)


def written(kind: str, folder: Path, rng: np.random.Generator) -> Path:
    """A sound file of this kind."""
    import gzip

    x, path = table(rng), folder / f"rows.{kind}"
    separator = "\t" if kind == "tsv" else ","
    text = separator.join("abc") + "\n" + "".join(separator.join(map(str, row)) + "\n" for row in x)
    if kind == "npy":
        np.save(path, x)
    elif kind == "parquet":
        import duckdb

        frame = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}
        duckdb.sql("SELECT unnest($a) AS a, unnest($b) AS b, unnest($c) AS c", params=frame).write_parquet(str(path))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(dict(zip("abc", row, strict=True))) + "\n" for row in x.tolist()))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def read(kind: str, path: Path, content: bytes) -> str:
    """What becomes of a damaged file of rows."""
    path.write_bytes(content)
    model = fw.PCA(1).fit(path)
    if not (np.isfinite(model.mean_).all() and np.isfinite(model.explained_variance_).all()):
        return "WRONG: not finite"
    if kind == "npy":
        x = np.load(path, allow_pickle=False)
        if not np.allclose(model.mean_, x.astype(np.float64).mean(axis=0)):
            return "WRONG: another mean than NumPy's"
    if kind in ("csv", "tsv") and not model.manifest_.left_out:  # of columns that are left out a warning tells
        strict = _strictly(content.decode(), "\t" if kind == "tsv" else ",")
        if strict is not None and not np.allclose(model.mean_, strict.mean(axis=0)):
            return "WRONG: another mean than a strict reading gives"
    return "read"


def _strictly(text: str, separator: str) -> np.ndarray | None:
    """The rows, if the text has a header of three names and then three plain numbers a line, else None."""
    first, *lines = text.split("\n")
    cells = [line.split(separator) for line in lines if line]
    if first != separator.join("abc") or not all(re.fullmatch(r"-?\d+(\.\d+)?", cell) for row in cells for cell in row):
        return None
    return np.array(cells, dtype=np.float64) if cells and {len(row) for row in cells} == {3} else None


def readers(kind: str, count: int, seed: int, tally: Callable[..., None]) -> None:
    rng, text = np.random.default_rng(seed), kind in ("csv", "tsv", "jsonl")
    with tempfile.TemporaryDirectory() as name:
        sound = written(kind, Path(name), rng)
        content = sound.read_bytes()
        target = sound.with_name(f"damaged.{kind}")
        for number in range(count):
            damaged = rng.bytes(int(rng.integers(200))) if number % 10 == 9 else mutated(content, rng, text=text)
            tally(lambda damaged=damaged: read(kind, target, damaged), damaged)


def queries(count: int, seed: int, tally: Callable[..., None]) -> None:
    """Random text in place of SQL, a condition, and names of columns."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        path = written("csv", Path(name), rng)
        sound = [f"SELECT a, b FROM '{path}' WHERE a > 0".encode(), b"a > 0 AND b < 5", b"a"]
        for number in range(count):
            text = mutated(sound[number % 3], rng).decode("latin-1").replace("\x00", "")
            if number % 3 == 0:
                tally(lambda text=text: _done(fw.PCA(1).fit("SELECT " + text.removeprefix("SELECT "))), text)
            elif number % 3 == 1:
                tally(lambda text=text: _done(fw.PCA(1).fit(fw.scan(path, where=text))), text)
            else:
                tally(lambda text=text: _done(fw.PCA(1).fit(fw.scan(path, columns=[text, "b"]))), text)
        left = sorted(os.listdir(name))
        if left != [path.name]:
            tally(lambda: f"WRONG: wrote {left}", "files")


def _done(model: Any) -> str:
    return "read" if np.isfinite(model.mean_).all() else "WRONG: not finite"


def models(count: int, seed: int, tally: Callable[..., None]) -> None:
    rng = np.random.default_rng(seed)
    x = table(rng)
    with tempfile.TemporaryDirectory() as name:
        fitted = [fw.PCA(2).fit(x), fw.KMeans(3).fit(x), fw.GaussianMixture(2).fit(x)]
        sound = []
        for number, model in enumerate(fitted):
            path = Path(name) / f"{number}.model"
            fw.save(model, path)
            sound.append((path.read_bytes(), model))
        target = Path(name) / "damaged.model"
        for number in range(count):
            content, model = sound[number % 3]
            damaged = mutated(content, rng)

            def load(damaged: bytes = damaged, model: Any = model) -> str:
                target.write_bytes(damaged)
                again = fw.load(target)
                same = type(again) is type(model) and _same(again, model, x)
                return "the same" if same else "WRONG: another model"

            tally(load, damaged)


def _same(a: Any, b: Any, x: np.ndarray) -> bool:
    method = "transform" if hasattr(b, "transform") else "predict_proba"
    return bool(np.array_equal(getattr(a, method)(x), getattr(b, method)(x)))


def checkpoints(count: int, seed: int, tally: Callable[..., None]) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 3))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "fit.checkpoint"
        options = {"search": "none", "random_state": 0, "tol": 0.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fw.KMeans(5, max_iter=4, checkpoint=path, **options).fit(x)
            content = path.read_bytes()
            whole = fw.KMeans(5, max_iter=300, **options).fit(x)

        def resume(damaged: bytes) -> str:
            path.write_bytes(damaged)
            model = fw.KMeans(5, max_iter=300, checkpoint=path, **options).fit(x)
            return (
                "the same" if np.array_equal(model.cluster_centers_, whole.cluster_centers_) else "WRONG: another model"
            )

        for _ in range(count):
            damaged = mutated(content, rng)
            tally(lambda damaged=damaged: resume(damaged), damaged)


_COMMANDS = ("pca", "cluster", "mixture", "fit-distribution", "apply", "nothing", "")
_OPTIONS = (
    *(
        "--components",
        "--scale",
        "--whiten",
        "--solver",
        "--columns",
        "--where",
        "--weights",
        "--out",
        "--model",
        "--report",
    ),
    *(
        "--json",
        "--threads",
        "--clusters",
        "-k",
        "--init",
        "--max-iter",
        "--metric",
        "--search",
        "--seed",
        "--starts",
        "--tol",
    ),
    *(
        "--time-budget",
        "--type",
        "--ridge",
        "--criterion",
        "--merge",
        "--family",
        "--column",
        "--confidence",
        "--checkpoint",
    ),
)
_VALUES = (
    *(
        "rows.csv",
        "rows.npy",
        "missing.csv",
        "a",
        "a,b",
        "c",
        "0",
        "1",
        "2",
        "3",
        "-1",
        "1:3",
        "3:1",
        "0.9",
        "1e400",
        "nan",
        "",
    ),
    *(
        "mle",
        "full",
        "auto",
        "krylov",
        "euclidean",
        "cosine",
        "bic",
        "gamma",
        "normal",
        "out.csv",
        "m.model",
        "r.html",
        "a > 0",
    ),
    *(
        "",
        "a > 0",
        "a > ",
        "'; DROP",
        "\u00e9",
        "--",
        "x" * 300,
        "..",
        ".",
        "/dev/null",
        "[1,2]",
        "{}",
        "rows.csv:a",
        "*.csv",
    ),
)


def commands(count: int, seed: int, tally: Callable[..., None]) -> None:
    from foldwise.cli import main

    rng = np.random.default_rng(seed)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        sound = {path.name: path.read_bytes() for path in (written(kind, Path(name), rng) for kind in ("csv", "npy"))}

        def run(arguments: list[str]) -> str:
            out, error = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                try:
                    code = main(arguments)
                except SystemExit as ended:
                    code = ended.code if isinstance(ended.code, int) else 1
            if "Traceback" in error.getvalue():
                return "WRONG: a traceback"
            if any((Path(name) / file).read_bytes() != content for file, content in sound.items()):
                return "WRONG: an input was changed"
            return "done" if code == 0 else "refused" if code in (1, 2) else f"WRONG: exit code {code}"

        os.chdir(name)
        try:
            for _ in range(count):
                arguments = [str(rng.choice(_COMMANDS))]
                if rng.random() < 0.8:
                    arguments.append(str(rng.choice(["rows.csv", "rows.npy"])))
                for _ in range(int(rng.integers(0, 5))):
                    arguments.append(str(rng.choice(_OPTIONS)))
                    if rng.random() < 0.8:
                        arguments.append(_VALUES[int(rng.integers(len(_VALUES)))])
                arguments = [part for part in arguments if part or rng.random() < 0.2]
                tally(lambda arguments=arguments: run(arguments), arguments)
        finally:
            os.chdir(before)


def fuzz(kind: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each outcome occurred, and the cases that went wrong."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []

    def tally(attempt: Callable[[], str], case: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcome = attempt()
            except FoldwiseError:
                outcome = "refused"
            except Exception:
                outcome = "WRONG: " + traceback.format_exc(limit=-3)
        outcomes[outcome.split("\n")[0] if outcome.startswith("WRONG") else outcome] += 1
        if outcome.startswith("WRONG"):
            wrong.append(f"{case!r:.400}\n{outcome}")

    if kind in ("model", "checkpoint", "command", "sql"):
        {"model": models, "checkpoint": checkpoints, "command": commands, "sql": queries}[kind](count, seed, tally)
    else:
        readers(kind, count, seed, tally)
    return outcomes, wrong


if __name__ == "__main__":
    found, failures = fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({"outcomes": found, "wrong": failures[:20]}))
