"""Forks while other threads work: a child has only the thread that forked, and what the others held stays locked in it.

The locks of this module are held by the forking thread at the moment of the fork, so nobody else can be inside.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  (it and logging register handlers for forks: before ours may wait)
import logging  # noqa: F401
import os
import sys
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any

# Held while modules are imported on first use. Python's own locks of modules that another thread was importing are never
# released in a child, which would wait for them for ever.
importing = RLock()
# Held while the limits of BLAS are set: it has a lock of its own, which must not be held at that moment either.
limits = RLock()


def in_child(renew: Callable[[], Any]) -> None:
    """Call `renew` in every child after a fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


def _hold() -> None:
    importing.acquire()
    limits.acquire()


def _let_go() -> None:
    limits.release()
    importing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)


def _renew_cached_properties() -> None:
    """Until Python 3.12, a cached property has one lock for all objects, which another thread may have held."""
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "foldwise"]
    for kind in (each for module in modules for each in vars(module).values() if isinstance(each, type)):
        for attribute in vars(kind).values():
            if isinstance(attribute, cached_property) and hasattr(attribute, "lock"):
                attribute.lock = RLock()


in_child(_renew_cached_properties)
