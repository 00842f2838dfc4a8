"""The engine of a Dask cluster: every worker keeps a range of blocks and what tasks leave beside them, and merges its own.

Each worker has one actor, a `LocalBlocks` over its range. A pass is one message to each: the task goes out, one merged record
comes back. Workers read files themselves; rows of this process are sent to them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Self

from foldwise.data import check
from foldwise.data.cache import CachedSource
from foldwise.data.shard import Shard, shard
from foldwise.data.source import Source, block_rows, count_rows
from foldwise.errors import MissingDependencyError, ParameterError
from foldwise.fold.engine import Engine
from foldwise.fold.local import LocalBlocks
from foldwise.fold.row_arrays import for_blocks


class DaskEngine(Engine):
    """A Dask cluster, by a `distributed.Client` or the address of its scheduler."""

    remote = True

    def __init__(self, client: Any) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise MissingDependencyError("engine='dask' needs Dask: pip install 'foldwise[dask]'.") from None
        if not isinstance(client, (str, Client)) or (isinstance(client, Client) and client.asynchronous):
            raise ParameterError(f"engine='dask' takes a distributed.Client or an address, not {client!r}.")
        self._given, self._lock, self._users = client, Lock(), 0
        self._own: Any = None  # the client for an address, opened when it is first needed

    def place(self, source: Source, n_threads: int) -> DaskBlocks:
        """A range of blocks on every worker."""
        from distributed import Client

        with self._lock:
            if isinstance(self._given, str) and self._own is None:
                self._own = Client(self._given, set_as_default=False)  # type: ignore[no-untyped-call]
        return DaskBlocks(self._own or self._given, source)

    def __enter__(self) -> Self:
        with self._lock:
            self._users += 1
        return super().__enter__()

    def __exit__(self, *given: object) -> None:
        super().__exit__(*given)
        with self._lock:
            self._users -= 1
            if self._own is not None and not self._users:
                self._own.close()
                self._own = None


class DaskBlocks:
    """The blocks of one source on the workers of a cluster, in ranges of neighbours."""

    remote = True

    def __init__(self, client: Any, source: Source) -> None:
        if not getattr(source, "divisible", True):  # whose parts could not be told apart twice
            source = CachedSource(source)
        self._block_rows = block_rows(source)
        with client.as_current():  # that counts the rows of a collection
            n_rows = count_rows(source)
        check.not_empty(n_rows, source.n_columns, source.where)
        blocks = -(-n_rows // self._block_rows)
        workers = sorted(client.nthreads().items())[:blocks]
        if not workers:
            raise ParameterError("the Dask cluster has no workers: start some, or use engine='threads'.")
        ends = [blocks * (i + 1) // len(workers) for i in range(len(workers))]
        self._ranges = list(zip([0, *ends[:-1]], ends, strict=True))
        opened = []
        for (first, last), (address, n_threads) in zip(self._ranges, workers, strict=True):
            part, chunks = shard(source, first, last, n_rows)
            given = client.compute(chunks) if chunks else []  # on the cluster, where they stay
            part = client.scatter(part, workers=[address], hash=False)  # rows do not belong in a task graph
            opened.append(client.submit(_open, part, given, n_threads, workers=[address], actor=True, pure=False))
        self._futures = opened  # while somebody holds them, the actors live
        with client.as_current():  # whose actors they are, if there are several clients
            self._actors = [future.result() for future in opened]

    # ------------------------------------------------------------ what engines offer

    def nodes(self, task: Any) -> list[tuple[int, int, Any]]:
        """Results merged by every worker as far as they are neighbours in the fixed tree."""
        return [node for part in self._all("nodes", task) for node in part]

    def each(self, task: Any) -> list[Any]:
        """The result of every block, in row order."""
        return [result for part in self._all("each", task) for result in part]

    def total(self, task: Any, zero: Callable[[], Any], split: int = 0, progress: Any = None) -> Any:
        """All results added up: by every worker, and then here."""
        total = zero()
        for part in self._all("total", task, zero):
            total.add(part)
        return total

    def ask(self, task: Any, requests: Mapping[int, Any]) -> dict[int, Any]:
        """Results of some blocks, by number."""
        mine = self._by_worker(requests)
        waiting = [actor.ask(task, {n: requests[n] for n in some}) for actor, some in mine]
        return {number: result for future in waiting for number, result in future.result().items()}

    def update(self, task: Any, numbers: Sequence[int] | None = None) -> list[Any]:
        """Results from what is kept beside blocks, in row order."""
        if numbers is None:
            return [result for part in self._all("update", task) for result in part]
        waiting = [actor.update(task, some) for actor, some in self._by_worker(numbers)]
        return [result for future in waiting for result in future.result()]

    # ------------------------------------------------------------ how

    def _all(self, method: str, task: Any, *given: Any) -> list[Any]:
        """Call a method of every actor at once; the answers in the order of their blocks."""
        waiting = [
            getattr(actor, method)(for_blocks(task, first, last, self._block_rows), *given)
            for actor, (first, last) in zip(self._actors, self._ranges, strict=True)
        ]
        return [future.result() for future in waiting]

    def _by_worker(self, numbers: Iterable[int]) -> list[tuple[Any, list[int]]]:
        wanted = sorted(numbers)
        pairs = zip(self._actors, self._ranges, strict=True)
        found = [(actor, [n for n in wanted if first <= n < last]) for actor, (first, last) in pairs]
        return [(actor, some) for actor, some in found if some]


def _open(part: Shard, chunks: list[Any], n_threads: int) -> LocalBlocks:
    return LocalBlocks(part.open(chunks), n_threads, part.first, part.last)
