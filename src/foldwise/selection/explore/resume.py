"""A folder that keeps what an exploration has worked out, so that one that was stopped or killed goes on from there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from foldwise.data.atomic import replacing
from foldwise.errors import OutputError, StoreError
from foldwise.store import load, save

_KEY = "exploration.txt"


class Finished:
    """Results of finished steps by name, each in a file of its own, beside checkpoints of steps that are not finished.

    The folder belongs to one exploration (`key`: data and parameters), and is removed when that is done.
    """

    def __init__(self, folder: str | os.PathLike[str], key: str) -> None:
        self.folder = Path(folder).expanduser()
        place = self.folder / _KEY
        if place.exists():
            if place.read_text() != key:
                raise StoreError(
                    f"{self.folder}: this checkpoint belongs to other data or other parameters. "
                    "Choose another folder, or delete it to start again."
                )
            return
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise OutputError(
                f"{self.folder}: this is no checkpoint of an exploration. Give a folder that does not exist yet."
            )
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as problem:
            raise OutputError(f"{self.folder} cannot be made: {problem.strerror}.") from problem
        with replacing(place) as file:
            file.write(key.encode())

    def load(self, name: str) -> Any:
        """The result of a step, or None if it is not finished."""
        path = self.folder / f"{name}.fw"
        return load(path) if path.exists() else None

    def save(self, name: str, result: Any) -> None:
        """Keep the result of a step."""
        save(result, self.folder / f"{name}.fw")

    def checkpoint(self, name: str) -> Path:
        """Where a step keeps what it has so far."""
        return self.folder / f"{name}.checkpoint"

    def remove(self) -> None:
        """Delete the folder, because the exploration is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
