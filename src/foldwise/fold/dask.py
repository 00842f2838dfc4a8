"""Blocks on a Dask cluster."""

from __future__ import annotations

from typing import Any

from foldwise.fold.engine import Engine


class DaskEngine(Engine):
    """Being written."""

    def __init__(self, client: Any) -> None:
        self.client = client
