"""Benchmarks: tables that compare Foldwise with other libraries in the same run."""
