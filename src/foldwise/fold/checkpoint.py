"""The state of a multi-pass fit on disk, so that a killed fit can resume where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import replacing
from foldwise.errors import StoreError

_FORMAT = "foldwise-checkpoint-1"


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
        if not self.path.absolute().parent.is_dir():
            raise StoreError(f"{self.path}: no such folder for a checkpoint. Create it, or choose another path.")
        if self.path.exists() and not self.path.is_file():  # opening a pipe would wait for ever
            raise StoreError(f"{self.path}: a checkpoint must be an ordinary file. Choose another path.")

    def bind(self, *figures: float | NDArray[np.float64]) -> None:
        """Tie the checkpoint to figures from a pass over the data, since values can change while names and dates do not."""
        digest = hashlib.sha256(b"".join(np.asarray(figure, dtype=np.float64).tobytes() for figure in figures))
        self.key += f" {digest.hexdigest()}"

    def load(self) -> Saved | None:
        """The saved state, or None if there is none."""
        from safetensors import safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                header = json.loads((file.metadata() or {})["foldwise"])
                state = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            message = f"{self.path}: this is not a checkpoint of Foldwise ({error}). Choose another file, or delete it."
            raise StoreError(message) from error
        if header.get("format") != _FORMAT or header.get("key") != self.key:
            raise StoreError(
                f"{self.path}: this checkpoint belongs to other data or other parameters. "
                "Choose another file, or delete it to start again."
            )
        return Saved(header["step"], header["seconds"], state, header["trace"])

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
        self.path.unlink(missing_ok=True)


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a JSON header to one safetensors file, atomically."""
    from safetensors.numpy import save

    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(tensors, metadata={"foldwise": json.dumps(header)})
    with replacing(path) as file:
        file.write(data)
