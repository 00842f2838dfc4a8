"""What models and results can do for the eye: write a report, and show themselves in a notebook.

Reports are far above models: the package's own front door is asked for them when they are wanted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldwise.report.values import Report


class Reportable:
    """Mixin of everything that `fw.report` takes."""

    def report(self, path: str | os.PathLike[str] | None = None, X: Any = None) -> Report:
        """What is known about it, as a report; written as a web page to `path` if one is given.

        A report on a model needs the rows of the fit: `X`, if they are not there any more.
        """
        import foldwise
        from foldwise.errors import ParameterError

        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise ParameterError(
                f"report: the first argument is the file to write, but is {type(path).__name__}. Give rows as X=."
            )
        return foldwise.report(self, X, path)

    def _repr_html_(self) -> str | None:
        """How a notebook shows it: a few figures, a small table, a small picture."""
        import foldwise

        reports: Any = foldwise.report
        shown: str | None = reports.brief(self)
        return shown
