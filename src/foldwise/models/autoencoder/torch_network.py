"""The arithmetic of training, in torch: gradients of a batch in shards, steps of AdamW, errors. The only module that needs it.

A batch is cut into shards by its size alone. Each shard is computed by one thread, and results are added in the order of the
shards: however many threads there are, the weights are the same to the last bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from foldwise import forks
from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.fold import threads
from foldwise.models.autoencoder.activations import ACTIVATIONS, Floats32
from foldwise.models.autoencoder.inputs import Part
from foldwise.models.autoencoder.weights import Layout, Start

T = TypeVar("T")

_SHARDS = 4
_SMALL = 20_000_000  # multiplications by weights in a batch, below which it stays whole: threads would cost more than they save
_CHUNK = 1 << 16  # weights that the optimiser handles at a time: they stay in the cache
_EVALUATED = 1024  # rows at a time
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8  # AdamW's usual settings


def import_torch() -> Any:
    """The module, or an error that says how to get it."""
    try:
        with forks.importing:
            import torch
    except ImportError as problem:
        raise ParameterError(
            "fitting an autoencoder needs PyTorch, which is not installed: pip install 'foldwise[torch]' (a fitted model is "
            "applied without it)"
        ) from problem
    return torch


@contextmanager
def one_thread_each() -> Iterator[None]:
    """One thread of torch's own for each operation; what the user had set is restored."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class TorchNetwork:
    """An encoder and a decoder whose weights are one vector; see `Layout`."""

    def __init__(self, layout: Layout, start: Start, *, n_threads: int, gaps: bool = False) -> None:
        self._torch = torch = import_torch()
        self.layout, self.plan, self.n_threads, self.gaps = layout, layout.plan, n_threads, gaps
        self._activation = ACTIVATIONS[self.plan.activation].torch
        self._sized = threading.local()
        self._into: Any = None
        self._out: Any = None
        if start.directions is not None:  # in training, codes are divided by their sizes
            self._into = torch.tensor(start.directions / start.sizes[:, None])
            self._out = torch.tensor(start.directions.T * start.sizes)
        self._chunks = [
            (number, at, min(at + _CHUNK, place.stop))
            for number, place in enumerate(layout.places)
            for at in range(place.start, place.stop, _CHUNK)
        ]

    # ---------------------------------------------------------------- one step

    def step(
        self,
        vectors: tuple[Any, Any, Any],
        rows: Any,
        weights: Any,
        per: float,
        rate: float,
        number: int,
        seed: Sequence[int],
    ) -> float:
        """Move the weights (with the two moments of AdamW) down the gradient of one batch; returns its summed error.

        The loss is the error divided by `per`; `number` is that of the step, from 1; `seed` is of noise and dropout.
        """
        torch, (vector, _, _) = self._torch, vectors
        views = [vector[place.start : place.stop].view(place.shape).requires_grad_() for place in self.layout.places]
        n = len(rows)
        large = n * self.layout.size >= _SMALL
        cuts = np.linspace(0, n, (_SHARDS if large else 1) + 1).astype(int)
        shards = [(at, end) for at, end in pairwise(cuts) if end > at]

        def gradient(shard: int, bounds: tuple[int, int]) -> tuple[float, list[Any]]:
            some = slice(*bounds)
            error = self._error(views, rows[some], None if weights is None else weights[some], (*seed, shard))
            return float(error.detach()), list(torch.autograd.grad(error / per, views))

        found = self._each(shards, gradient, large)
        self._update(vectors, [gradients for _, gradients in found], rate, number, large)
        return float(sum(error for error, _ in found))

    def _update(
        self, vectors: tuple[Any, Any, Any], gradients: list[Any], rate: float, number: int, large: bool
    ) -> None:
        torch, (vector, first, second) = self._torch, vectors
        bias_1, bias_2 = 1 - _FIRST**number, 1 - _SECOND**number
        kept = 1 - rate * self.plan.weight_decay

        def update(_: int, chunk: tuple[int, int, int]) -> None:
            which, at, end = chunk
            place = self.layout.places[which]
            inside = slice(at - place.start, end - place.start)
            with torch.no_grad():
                slope = gradients[0][which].reshape(-1)[inside]
                for other in gradients[1:]:
                    slope = slope + other[which].reshape(-1)[inside]
                w, m, v = vector[at:end], first[at:end], second[at:end]
                m.lerp_(slope, 1 - _FIRST)
                v.mul_(_SECOND).addcmul_(slope, slope, value=1 - _SECOND)
                if place.decays and kept != 1:
                    w.mul_(kept)
                w.addcdiv_(m, v.sqrt().mul_(bias_2**-0.5).add_(_EPSILON), value=-rate / bias_1)

        self._each(self._chunks, update, large)

    # ---------------------------------------------------------------- the error of some rows

    def errors(self, vector: Floats32, part: Part) -> Floats:
        """The squared distance of each row from its reconstruction, over the cells that it has."""
        torch = self._torch
        flat = torch.tensor(vector)
        views = [flat[place.start : place.stop].view(place.shape) for place in self.layout.places]
        bounds = [(at, min(at + _EVALUATED, len(part.inputs))) for at in range(0, len(part.inputs), _EVALUATED)]

        def evaluate(_: int, some: tuple[int, int]) -> Floats:
            with torch.no_grad():
                rows = torch.tensor(part.inputs[slice(*some)])
                return np.asarray(self._squares(views, rows, None).numpy(), dtype=np.float64)

        return np.concatenate(self._each(bounds, evaluate, len(part.inputs) * self.layout.size >= _SMALL))

    def _error(self, views: list[Any], rows: Any, weights: Any, seed: Sequence[int]) -> Any:
        rng = np.random.default_rng(seed) if self.plan.noise or self.plan.dropout else None
        squares = self._squares(views, rows, rng)
        return squares.sum() if weights is None else squares @ weights

    def _squares(self, views: list[Any], rows: Any, rng: np.random.Generator | None) -> Any:
        torch = self._torch
        observed = ~torch.isnan(rows) if self.gaps else None
        clean = rows if observed is None else torch.nan_to_num(rows)
        seen = clean
        if rng is not None and self.plan.noise:
            drawn = torch.from_numpy(rng.standard_normal(tuple(rows.shape), dtype=np.float32))
            seen = clean + drawn * self.plan.noise * (1.0 if observed is None else observed)
        code = self._apply(views[: self.layout.n_encoder], seen, self._into, rng)
        away = self._apply(views[self.layout.n_encoder :], code, self._out, rng) - clean
        if observed is not None:
            away = away * observed
        return (away * away).sum(dim=1)

    def _apply(self, views: list[Any], rows: Any, shortcut: Any, rng: np.random.Generator | None) -> Any:
        linear = self._torch.nn.functional.linear
        found = rows
        for weights, bias in zip(views[:-2:2], views[1:-2:2], strict=True):
            found = self._dropped(self._activation(linear(found, weights, bias)), rng)
        found = linear(found, views[-2], views[-1])
        return found if shortcut is None else found + linear(rows, shortcut)

    def _dropped(self, hidden: Any, rng: np.random.Generator | None) -> Any:
        share = self.plan.dropout
        if rng is None or not share:
            return hidden
        kept = rng.random(tuple(hidden.shape), dtype=np.float32) >= share
        return hidden * self._torch.from_numpy(kept) / (1 - share)

    # ---------------------------------------------------------------- threads

    def _each(self, items: list[Any], work: Callable[[int, Any], T], large: bool) -> list[T]:
        """The results in the order of the items; in several threads if there is enough to do."""
        if not large or self.n_threads == 1 or len(items) == 1:
            return [work(number, item) for number, item in enumerate(items)]
        found: dict[int, T] = {}

        def one(number: int, item: Any) -> T:
            if not getattr(self._sized, "ready", False):  # torch keeps the number for each thread
                self._torch.set_num_threads(1)
                self._sized.ready = True
            return work(number, item)

        threads.run(items, one, found.__setitem__, self.n_threads)
        return [found[number] for number in range(len(items))]
