"""From columns as people have them to columns of numbers: what each column is, and what is done with it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def _prepare(x: Any, **options: Any) -> Any:
    """`foldwise.prepare.build.prepare`, imported on first use."""
    from foldwise.prepare.build import prepare

    return prepare(x, **options)


class _CallableModule(ModuleType):
    """Makes the package callable: `foldwise.prepare` is both package and function, and Python binds the one imported last."""

    __call__ = staticmethod(_prepare)


sys.modules[__name__].__class__ = _CallableModule
