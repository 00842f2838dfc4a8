"""Single flipped bits and cuts, at random places of saved files: each must be an error, and none a wrong answer."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import foldwise as fw
from benchmarks.common import show
from foldwise.errors import FoldwiseError, NotFinishedWarning
from foldwise.fold import events

_RNG = np.random.default_rng(0)
_X = _RNG.standard_normal((300, 12)) * np.linspace(2, 1, 12) + 10
_Y = np.concatenate([_X, _X + 3])


@dataclass
class Tally:
    """What came of the damaged copies of one file; `others` are exceptions that are not Foldwise's own."""

    what: str
    trials: int = 0
    errors: int = 0
    wrong: int = 0
    unchanged: int = 0
    others: int = 0


@dataclass(frozen=True)
class Case:
    """A saved file, and the bytes of an answer that depends on all of it."""

    what: str
    path: Path
    answer: Callable[[], bytes]


def _cases(folder: Path) -> list[Case]:
    model, clusters, result, state = (folder / name for name in ("pca.fw", "kmeans.fw", "curve.fw", "pca.checkpoint"))
    fw.save(fw.PCA(4, scale=True).fit(_X), model)
    fw.save(fw.KMeans(4, scale=True, random_state=0).fit(_Y), clusters)
    fw.save(fw.inertia_curve(_Y, range(1, 4), random_state=0), result)
    steps = 0

    def stop(event: events.Event) -> None:
        nonlocal steps
        steps += isinstance(event, events.StepDone)
        if steps == 5:
            raise KeyboardInterrupt

    with events.listening(stop), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)
        fw.PCA(4, svd_solver="power", checkpoint=state).fit(_X)

    def projected() -> bytes:
        pca = fw.load(model)
        return bytes(pca.transform(_X).tobytes() + pca.score_samples(_X).tobytes())

    def clustered() -> bytes:
        kmeans = fw.load(clusters)
        return bytes(kmeans.transform(_Y).tobytes() + kmeans.predict(_Y).tobytes())

    def curve() -> bytes:
        found = fw.load(result)
        return np.asarray(found.table).tobytes() + b"".join(centres.tobytes() for centres in found.centers)

    def resumed() -> bytes:
        pca = fw.PCA(4, svd_solver="power", checkpoint=state).fit(_X)
        return bytes(pca.components_.tobytes() + repr((pca.outcome_.reason, pca.trace_)).encode())

    return [
        Case("model (PCA)", model, projected),
        Case("model (k-means)", clusters, clustered),
        Case("result (inertia curve)", result, curve),
        Case("checkpoint (PCA)", state, resumed),
    ]


def _tallied(case: Case, whole: bytes, right: bytes, copies: list[bytes]) -> Tally:
    tally = Tally(case.what)
    for copy in copies:
        case.path.write_bytes(copy)
        tally.trials += 1
        try:
            same = case.answer() == right
        except FoldwiseError:
            tally.errors += 1
        except Exception:
            tally.others += 1
        else:
            tally.unchanged += same
            tally.wrong += not same
    case.path.write_bytes(whole)
    return tally


def _damaged(damage: Callable[[bytes, np.random.Generator], bytes], count: int, seed: int) -> list[Tally]:
    found = []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in _cases(Path(name)):
            rng, whole = np.random.default_rng(seed), case.path.read_bytes()
            right = case.answer()  # a fit that ends removes its checkpoint, so each trial writes the file anew
            found.append(_tallied(case, whole, right, [damage(whole, rng) for _ in range(count)]))
    return found


def _flipped(whole: bytes, rng: np.random.Generator) -> bytes:
    copy, bit = bytearray(whole), int(rng.integers(8 * len(whole)))
    copy[bit // 8] ^= 1 << bit % 8
    return bytes(copy)


def _cut(whole: bytes, rng: np.random.Generator) -> bytes:
    return whole[: int(rng.integers(len(whole)))]


def flips(count: int = 400, seed: int = 0) -> list[Tally]:
    """Flip one bit of each of `count` copies of each kind of file."""
    return _damaged(_flipped, count, seed)


def cuts(count: int = 400, seed: int = 0) -> list[Tally]:
    """Cut each of `count` copies of each kind of file short."""
    return _damaged(_cut, count, seed)


def main() -> int:
    failed = False
    for title, found in (("One flipped bit", flips()), ("Cut short", cuts())):
        rows = [
            [one.what, *(str(n) for n in (one.trials, one.errors, one.wrong, one.unchanged, one.others))]
            for one in found
        ]
        head = ["file", "trials", "errors", "wrong answers", "unchanged", "other exceptions"]
        show(f"{title} (bar: every trial an error of Foldwise)", head, rows, left=(0,))
        failed |= any(one.errors != one.trials for one in found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
