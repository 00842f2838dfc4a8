"""Checks for third-party sources and statistics; the built-in ones are tested with them too."""

from foldwise.testing.sources import check_source
from foldwise.testing.statistics import check_statistic

__all__ = ["check_source", "check_statistic"]
