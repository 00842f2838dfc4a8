"""`fw.explore`: directions, groups, how many, how sure, in one call."""

from foldwise.selection.explore.result import Exploration
from foldwise.selection.explore.run import explore, open_rows

__all__ = ["Exploration", "explore", "open_rows"]
