"""What people see: a report is a value (`values`), made by one function per kind of result and rendered in several ways."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def _report(*arguments: Any, **options: Any) -> Any:
    """`foldwise.report.of.report`, imported on first use."""
    from foldwise.report.of import report

    return report(*arguments, **options)


def brief(shown: Any) -> str | None:
    """What a notebook shows of a fitted model or a result."""
    from foldwise.report.in_notebook import brief

    return brief(shown)


class _CallableModule(ModuleType):
    """Makes the package callable: `foldwise.report` is both package and function, and Python binds the one imported last."""

    __call__ = staticmethod(_report)


sys.modules[__name__].__class__ = _CallableModule
