"""Choice of engine: `engine(...)` for a block of code, `engine=` for one call. Models do not depend on it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from numbers import Integral
from typing import Any, Protocol, Self

from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold.local import LocalBlocks

_current: ContextVar[tuple[Engine, ...]] = ContextVar("foldwise_engine", default=())  # innermost last


class Blocks(Protocol):
    """The blocks of one source, placed on one or more machines, and the operations on them; see `LocalBlocks`."""

    def nodes(self, task: Any) -> list[tuple[int, int, Any]]:
        """Results merged as far as the fixed merge tree allows."""

    def each(self, task: Any) -> list[Any]:
        """The result of every block, in row order."""

    def total(self, task: Any, zero: Any, cuts: Any = None, progress: Any = None) -> Any:
        """The sum of what the task adds, in any order."""

    def ask(self, task: Any, requests: Any) -> dict[int, Any]:
        """Results for some blocks, by block number."""

    def update(self, task: Any, numbers: Any = None) -> list[Any]:
        """Results computed from block states, without reading the blocks."""


class Engine:
    """Runs tasks on blocks. Subclasses define where blocks are placed."""

    remote = False  # whether other processes do the work, reading files and keeping scratch files themselves
    n_threads: int | None = None

    def place(self, source: Source, n_threads: int) -> Blocks:
        """The blocks of a source, ready for processing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.set(_current.get()[:-1])


class Threads(Engine):
    """Threads of this process; a single thread is the serial engine."""

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is not None and (
            not isinstance(n_threads, Integral) or isinstance(n_threads, bool) or n_threads < 1
        ):
            raise ParameterError(f"fw.engine('threads', {n_threads!r}): give at least one thread, as a whole number.")
        self.n_threads = n_threads

    def place(self, source: Source, n_threads: int) -> LocalBlocks:
        """The blocks of a source, on this machine."""
        return LocalBlocks(source, n_threads)


def engine(kind: Any = "threads", *given: Any) -> Engine:
    """An engine to run passes: for one call (`model.fit(X, engine=...)`) or, as a context manager, for a block of code.

    `engine("threads", 4)` uses threads of this process (default: all cores), `engine("serial")` a single thread, and
    `engine("dask", client)` a Dask cluster, where `client` is a `distributed.Client` or the address of a scheduler. A client
    or an address ("tcp://...") may also be the only argument. Results are bit-identical with every engine.

    >>> import foldwise as fw
    >>> with fw.engine("threads", 2):
    ...     fw.PCA(1).fit([[0.0, 1.0], [2.0, 5.0], [4.0, 9.0]]).n_components_
    1
    """
    if isinstance(kind, Engine):
        return kind
    if len(given) > (kind in ("threads", "dask") if isinstance(kind, str) else 0):
        raise ParameterError(f"fw.engine({kind!r}, ...): there are too many arguments.")
    if kind == "threads":
        return Threads(*given)
    if kind == "serial":
        return Threads(1)
    if kind == "dask" and not given:
        raise ParameterError(
            "fw.engine('dask', client): give a distributed.Client or the address of a scheduler (tcp://host:port)."
        )
    address = isinstance(kind, str) and "://" in kind
    if address or kind == "dask" or type(kind).__module__.partition(".")[0] == "distributed":
        from foldwise.fold.dask import DaskEngine

        return DaskEngine(*(given if kind == "dask" else (kind,)))
    raise ParameterError(
        f"engine={kind!r} is not known. Use 'serial', 'threads', 'dask' with a client, or the address of a scheduler (tcp://host:port)."
    )


def use(given: Any) -> AbstractContextManager[Any]:
    """A context that uses the given engine; None leaves the current engine unchanged."""
    return nullcontext() if given is None else engine(given)


def current() -> Engine:
    """The engine of the innermost `with fw.engine(...)`, or threads by default."""
    engines = _current.get()
    return engines[-1] if engines else _DEFAULT


_DEFAULT = Threads()
