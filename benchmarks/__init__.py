"""Benchmarks: tables of figures, each beside other libraries in one run."""
