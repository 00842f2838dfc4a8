"""Checks that sources and statistics written elsewhere can run on themselves; ours run them too."""

from foldwise.testing.sources import check_source
from foldwise.testing.statistics import check_statistic

__all__ = ["check_source", "check_statistic"]
