"""The state of a multi-pass fit on disk, so that a killed fit can go on where it was."""

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
    """What a checkpoint holds."""

    step: int
    seconds: float
    state: dict[str, NDArray[Any]]
    trace: list[dict[str, float]]


class Checkpoint:
    """One file, replaced as a whole at most every `every` seconds; `key` says to which data and parameters it belongs."""

    def __init__(self, path: str | os.PathLike[str], key: str, *, every: float = 1.0) -> None:
        self.path, self.key = Path(path), key
        self._every = every
        self._last = time.monotonic()
        if not self.path.absolute().parent.is_dir():
            raise StoreError(f"{self.path}: there is no such folder for a checkpoint. Make it, or give another place.")

    def bind(self, *figures: float | NDArray[np.float64]) -> None:
        """Tie the checkpoint to what a pass over the data found: names and dates can stay while values change."""
        digest = hashlib.sha256(b"".join(np.asarray(figure, dtype=np.float64).tobytes() for figure in figures))
        self.key += f" {digest.hexdigest()}"

    def load(self) -> Saved | None:
        """What was saved, or None if there is nothing yet."""
        from safetensors import safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                header = json.loads((file.metadata() or {})["foldwise"])
                state = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            message = f"{self.path}: this is not a checkpoint of Foldwise ({error}). Give another file, or delete it."
            raise StoreError(message) from error
        if header.get("format") != _FORMAT or header.get("key") != self.key:
            raise StoreError(
                f"{self.path}: this checkpoint belongs to other data or other parameters. "
                "Give another file, or delete it to start anew."
            )
        return Saved(header["step"], header["seconds"], state, header["trace"])

    def save(self, saved: Saved, *, now: bool = False) -> None:
        """Write, unless the last time was only just."""
        if not now and time.monotonic() - self._last < self._every:
            return
        write_tensors(
            self.path,
            saved.state,
            {"format": _FORMAT, "key": self.key, "step": saved.step, "seconds": saved.seconds, "trace": saved.trace},
        )
        self._last = time.monotonic()

    def remove(self) -> None:
        """The fit is done: nothing is left to go on with."""
        self.path.unlink(missing_ok=True)


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Arrays and a JSON header as one safetensors file, written aside and renamed."""
    from safetensors.numpy import save

    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(tensors, metadata={"foldwise": json.dumps(header)})
    with replacing(path) as file:
        file.write(data)
