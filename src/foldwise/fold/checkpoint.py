"""The state of a multi-pass fit on disk, so that a killed fit can resume where it stopped."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import check_target, explained
from foldwise.errors import StoreError
from foldwise.fold.tensor_file import read_tensors, write_tensors

_FORMAT = "foldwise-checkpoint-2"
_WITHOUT_DIGEST = "foldwise-checkpoint-1"


@dataclass(frozen=True)
class Saved:
    """The content of a checkpoint."""

    step: int
    seconds: float
    state: dict[str, NDArray[Any]]
    trace: list[dict[str, float]]


class Checkpoint:
    """A file, replaced atomically at most every `every` seconds; `key` identifies the data and parameters it belongs to."""

    def __init__(self, path: str | os.PathLike[str], key: str, *, every: float = 1.0) -> None:
        self.path, self.key = Path(path), key
        self._every = every
        self._last = time.monotonic()
        with explained(self.path):  # now, rather than after the first minutes of the fit
            check_target(self.path)

    def bind(self, *figures: float | NDArray[np.float64]) -> None:
        """Tie the checkpoint to figures from a pass over the data, since values can change while names and dates do not."""
        digest = hashlib.sha256(b"".join(np.asarray(figure, dtype=np.float64).tobytes() for figure in figures))
        self.key += f" {digest.hexdigest()}"

    def load(self, needs: Collection[str] = ()) -> Saved | None:
        """The saved state, which must hold the arrays that a step `needs`, or None if there is none."""
        if not self.path.exists():
            return None
        try:
            content = read_tensors(self.path)
            header, kind = content.header, content.header["format"]
            if kind != _WITHOUT_DIGEST:
                content.require_digest()
            saved = Saved(int(header["step"]), float(header["seconds"]), content.arrays, list(header["trace"]))
        except Exception as error:
            raise StoreError(
                f"{self.path}: this is not a checkpoint of Foldwise, or it is damaged ({error}). "
                "Choose another file, or delete it."
            ) from error
        if kind not in (_FORMAT, _WITHOUT_DIGEST) or header.get("key") != self.key:
            raise StoreError(
                f"{self.path}: this checkpoint belongs to other data or other parameters. "
                "Choose another file, or delete it to start again."
            )
        if not saved.state.keys() >= set(needs):
            raise StoreError(
                f"{self.path}: this checkpoint was written by an older version of Foldwise, which kept less. "
                "Choose another file, or delete it to start again."
            )
        if not content.digest:
            content.warn_unchecked(self.path, "The fit resumes from it; delete it to start again.")
        return saved

    def save(self, saved: Saved, *, now: bool = False) -> None:
        """Write the state, unless it was written less than `every` seconds ago."""
        if not now and time.monotonic() - self._last < self._every:
            return
        write_tensors(
            self.path,
            saved.state,
            {"format": _FORMAT, "key": self.key, "step": saved.step, "seconds": saved.seconds, "trace": saved.trace},
        )
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file, because the fit has finished."""
        Path(os.path.realpath(self.path)).unlink(missing_ok=True)  # a link to it stays, as when it is written
