"""The report on an exploration: five plain sentences, then the data, the directions, the groups and the rows worth a look."""

from foldwise.report.explore.report import explore_report
from foldwise.report.explore.summary import summary_of

__all__ = ["explore_report", "summary_of"]
