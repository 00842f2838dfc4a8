"""Fast arithmetic: contiguous arrays in, one thread, the GIL released. `reference.py` says what each function computes."""

from __future__ import annotations

from foldwise.kernels.reference import centred, columns, finite, merge_scatter, scatter

__all__ = ["centred", "columns", "finite", "merge_scatter", "scatter"]
