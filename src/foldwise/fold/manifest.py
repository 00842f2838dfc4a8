"""The manifest: a record of what was run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Manifest:
    """A record of one fit; any subsampling, substitution or repair is listed here."""

    algorithm: str
    source: str
    rows: int
    columns: int
    dtype: str
    passes: int
    threads: int
    seconds: float
    instruction_set: str
    left_out: tuple[str, ...] = ()
    spooled_bytes: int = 0
    resumed_at: int = 0
    repairs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what else a reader of the result should know

    def as_dict(self) -> dict[str, Any]:
        """The manifest as plain values, for JSON."""
        return asdict(self)
