"""The engine of a Dask cluster: every worker keeps a range of blocks and what tasks leave beside them, and merges its own.

Each worker has one actor, a `LocalBlocks` over its range. A pass is one message to each: the task goes out, one merged record
comes back. Workers read files themselves; rows of this process are sent to them once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from foldwise.data import check
from foldwise.data.cache import CachedSource
from foldwise.data.shard import Shard, shard
from foldwise.data.source import Source, block_rows, count_rows
from foldwise.errors import EngineError, MissingDependencyError, ParameterError
from foldwise.fold.engine import Engine
from foldwise.fold.local import LocalBlocks, keep_freed_memory
from foldwise.fold.row_arrays import for_blocks

_PATIENCE = 5.0  # seconds between two looks at whether all workers are still there


class DaskEngine(Engine):
    """A Dask cluster, by a `distributed.Client` or the address of its scheduler."""

    remote = True

    def __init__(self, client: Any) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise MissingDependencyError("engine='dask' needs Dask: pip install 'foldwise[dask]'.") from None
        if isinstance(client, Client) and client.asynchronous:
            raise ParameterError("engine= takes a synchronous distributed.Client, and this one is asynchronous.")
        if not isinstance(client, (str, Client)):
            raise ParameterError(f"engine='dask' takes a distributed.Client or an address, not {client!r}.")
        self._given = client

    @cached_property
    def client(self) -> Any:
        """The client; one for an address is opened when it is first needed, and closed with the engine."""
        from distributed import Client

        if not isinstance(self._given, str):
            return self._given
        try:
            client = Client(self._given, set_as_default=False, timeout=15)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as problem:
            what = f"the Dask scheduler at {self._given} cannot be reached ({problem})"
            raise EngineError(f"{what}. Is it running, and is the address right?") from None
        weakref.finalize(self, client.close)
        return client

    def place(self, source: Source, n_threads: int) -> DaskBlocks:
        """A range of blocks on every worker."""
        if self.client.status != "running":
            raise EngineError(f"the Dask client is {self.client.status}. Open a new one.")
        return DaskBlocks(self.client, source)


class DaskBlocks:
    """The blocks of one source on the workers of a cluster, in ranges of neighbours."""

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
        self._client, self._addresses = client, {address for address, _ in workers}
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

    def nodes(self, task: Any) -> list[tuple[int, int, Any]]:
        """Results merged by every worker as far as they are neighbours in the fixed tree."""
        return [node for part in self._all("nodes", task) for node in part]

    def each(self, task: Any) -> list[Any]:
        """The result of every block, in row order."""
        return [result for part in self._all("each", task) for result in part]

    def total(self, task: Any, zero: Callable[[], Any], cuts: Any = None, progress: Any = None) -> Any:
        """All results added up: by every worker, and then here."""
        total = zero()
        for part in self._all("total", task, zero):
            total.add(part)
        return total

    def ask(self, task: Any, requests: Mapping[int, Any]) -> dict[int, Any]:
        """Results of some blocks, by number."""
        mine = self._by_worker(requests)
        waiting = [actor.ask(task, {n: requests[n] for n in some}) for actor, some in mine]
        return {number: result for future in waiting for number, result in self._wait(future).items()}

    def update(self, task: Any, numbers: Sequence[int] | None = None) -> list[Any]:
        """Results from what is kept beside blocks, in row order."""
        if numbers is None:
            return [result for part in self._all("update", task) for result in part]
        waiting = [actor.update(task, some) for actor, some in self._by_worker(numbers)]
        return [result for future in waiting for result in self._wait(future)]

    def _all(self, method: str, task: Any, *given: Any) -> list[Any]:
        """Call a method of every actor at once; the answers in the order of their blocks."""
        waiting = [
            getattr(actor, method)(for_blocks(task, first, last, self._block_rows), *given)
            for actor, (first, last) in zip(self._actors, self._ranges, strict=True)
        ]
        return [self._wait(future) for future in waiting]

    def _wait(self, future: Any) -> Any:
        """The answer of an actor; if a worker is lost meanwhile, an error instead of waiting for ever."""
        while True:
            try:
                return future.result(timeout=_PATIENCE)
            except (TimeoutError, OSError, KeyError) as problem:
                if lost := sorted(self._addresses - set(self._client.nthreads())):
                    what = f"the Dask worker {lost[0]} was lost, and what it held with it. Run the fit again"
                    raise EngineError(f"{what}; given a checkpoint file, it resumes from its last step.") from problem
                if not isinstance(problem, TimeoutError):
                    raise

    def _by_worker(self, numbers: Iterable[int]) -> list[tuple[Any, list[int]]]:
        wanted = sorted(numbers)
        pairs = zip(self._actors, self._ranges, strict=True)
        found = [(actor, [n for n in wanted if first <= n < last]) for actor, (first, last) in pairs]
        return [(actor, some) for actor, some in found if some]


def _open(part: Shard, chunks: list[Any], n_threads: int) -> LocalBlocks:
    keep_freed_memory()
    return LocalBlocks(part.open(chunks), n_threads, part.first, part.last)
