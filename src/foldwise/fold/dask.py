"""The Dask engine: each worker keeps a range of blocks with their state, and merges its own results.

Each worker has one actor, a `LocalBlocks` over its range. A pass sends one message to each: the task goes out, and one merged
record comes back. Workers read files themselves; rows in this process are sent to them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from foldwise.data.block_grid import rows_per_block
from foldwise.data.mapped import count_rows
from foldwise.data.shard import Shard, shard
from foldwise.data.source import Source
from foldwise.errors import MissingDependencyError, ParameterError
from foldwise.fold.engine import Engine
from foldwise.fold.local import LocalBlocks
from foldwise.fold.row_arrays import for_blocks


class DaskEngine(Engine):
    """A Dask cluster, given by a `distributed.Client` or the address of its scheduler."""

    remote = True

    def __init__(self, client: Any) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise MissingDependencyError("engine='dask' requires Dask: pip install 'foldwise[dask]'.") from None
        if isinstance(client, str):
            client = Client(client, set_as_default=False)  # type: ignore[no-untyped-call]
        if not isinstance(client, Client) or client.asynchronous:
            raise ParameterError(f"engine='dask' takes a distributed.Client or an address, not {client!r}.")
        self.client = client

    def place(self, source: Source, n_threads: int) -> DaskBlocks:
        """Place a range of blocks on every worker."""
        return DaskBlocks(self.client, source)


class DaskBlocks:
    """The blocks of one source on the workers of a cluster, in contiguous ranges."""

    remote = True

    def __init__(self, client: Any, source: Source) -> None:
        self._block_rows = rows_per_block(source.n_columns, source.dtype, sparse=source.sparse)
        n_rows = count_rows(source)
        blocks = -(-n_rows // self._block_rows)
        workers = sorted(client.nthreads().items())[:blocks]
        if not workers:
            raise ParameterError("the Dask cluster has no workers. Start some, or use engine='threads'.")
        ends = [blocks * (i + 1) // len(workers) for i in range(len(workers))]
        self._ranges = list(zip([0, *ends[:-1]], ends, strict=True))
        opened = []
        for (first, last), (address, n_threads) in zip(self._ranges, workers, strict=True):
            part, chunks = shard(source, first, last, n_rows)
            given = client.compute(chunks) if chunks else []  # computed and kept on the cluster
            part = client.scatter(part, workers=[address], hash=False)  # keeps rows out of the task graph
            opened.append(client.submit(_open, part, given, n_threads, workers=[address], actor=True, pure=False))
        self._actors = [future.result() for future in opened]

    # ------------------------------------------------------------ the interface of engines

    def nodes(self, task: Any) -> list[tuple[int, int, Any]]:
        """Results merged on each worker as far as the fixed merge tree allows."""
        return [node for part in self._all("nodes", task) for node in part]

    def each(self, task: Any) -> list[Any]:
        """The result of every block, in row order."""
        return [result for part in self._all("each", task) for result in part]

    def total(self, task: Any, zero: Callable[[], Any], split: int = 0, progress: Any = None) -> Any:
        """The sum of all results, first on each worker and then here."""
        total = zero()
        for part in self._all("total", task, zero):
            total.add(part)
        return total

    def ask(self, task: Any, requests: Mapping[int, Any]) -> dict[int, Any]:
        """Results for some blocks, by block number."""
        mine = self._by_worker(requests)
        waiting = [actor.ask(task, {n: requests[n] for n in some}) for actor, some in mine]
        return {number: result for future in waiting for number, result in future.result().items()}

    def update(self, task: Any, numbers: Sequence[int] | None = None) -> list[Any]:
        """Results computed from block states, in row order."""
        if numbers is None:
            return [result for part in self._all("update", task) for result in part]
        waiting = [actor.update(task, some) for actor, some in self._by_worker(numbers)]
        return [result for future in waiting for result in future.result()]

    # ------------------------------------------------------------ implementation

    def _all(self, method: str, task: Any, *given: Any) -> list[Any]:
        """Call a method of all actors concurrently; returns the results in block order."""
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
