"""Benchmarks: tables that compare Foldwise with other libraries in the same run."""

from __future__ import annotations

import os

# Before NumPy is imported: with kernels of another processor, which some machines ask for, other libraries would appear slow.
# The worker of faiss is told which ones to use.
if "KEEP_CORETYPE" not in os.environ:
    os.environ.pop("OPENBLAS_CORETYPE", None)
