"""The arithmetic of training, in torch: gradients of a batch in shards, steps of AdamW, errors. The only module that needs it.

A batch is cut into shards by its size alone. Each shard is computed by one thread, and results are added in the order of the
shards: however many threads there are, the weights are the same to the last bit.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from foldwise import forks
from foldwise.data.block import Floats
from foldwise.errors import MissingDependencyError
from foldwise.fold import threads
from foldwise.models.autoencoder.activations import ACTIVATIONS, Floats32
from foldwise.models.autoencoder.inputs import Part
from foldwise.models.autoencoder.weights import Layout, Start

T = TypeVar("T")

_SHARDS = 4
_SMALL = 20_000_000  # multiplications by weights in a batch, below which it stays whole: threads would cost more than they save
_CHUNK = 1 << 17  # weights that the optimiser handles at a time: they stay in the cache
_EVALUATED = 1024  # rows at a time
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8  # AdamW's usual settings


def import_torch() -> Any:
    """The module, or an error that says how to get it."""
    try:
        with forks.importing:
            import torch
    except ImportError as problem:
        raise MissingDependencyError(
            "fitting an autoencoder needs PyTorch, which is not installed: pip install 'foldwise[torch]' (a fitted model is "
            "applied without it)"
        ) from problem
    return torch


@contextmanager
def one_thread_each() -> Iterator[None]:
    """One thread of torch's own for each operation, here and in float32; what the user had set is restored."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.device("cpu"), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_num_threads(before)


class _Applied(NamedTuple):
    """What a layer did to some rows: its inputs, its outputs before and after the activation, and dropout's factors."""

    inputs: Any
    before: Any
    after: Any
    kept: Any


class _Rows(NamedTuple):
    """Some rows of the weights (or of the bias) of a layer, and where they are in the vector."""

    layer: int
    matrix: bool
    first: int
    last: int
    place: slice


def _chunks(layout: Layout) -> list[list[_Rows]]:
    """The weights in parts that the optimiser handles at a time; a small network is one part."""
    found = []
    for number, place in enumerate(layout.places):
        n_outputs, each = place.shape[0], math.prod(place.shape[1:])
        step = max(1, _CHUNK // each)
        for first in range(0, n_outputs, step):
            last = min(first + step, n_outputs)
            where = slice(place.start + first * each, place.start + last * each)
            found.append(_Rows(number // 2, place.decays, first, last, where))
    return [found] if layout.size <= _CHUNK else [[one] for one in found]


def _slices(n: int) -> list[slice]:
    """Of so many rows, those that are evaluated at a time."""
    return [slice(at, min(at + _EVALUATED, n)) for at in range(0, n, _EVALUATED)]


class _Update:
    """A step of AdamW for a part of the weights; the gradient is the sum over shards, in their order."""

    def __init__(
        self,
        torch: Any,
        vectors: tuple[Any, Any, Any],
        shards: list[list[tuple[Any, Any]]],
        rate: float,
        number: int,
        decay: float,
    ) -> None:
        self.torch, self.vectors, self.shards = torch, vectors, shards
        self.rate, self.kept = rate / (1 - _FIRST**number), 1 - rate * decay
        self.root = (1 - _SECOND**number) ** -0.5

    def __call__(self, _: int, chunk: list[_Rows]) -> None:
        """Update these weights in place."""
        place = slice(chunk[0].place.start, chunk[-1].place.stop)
        with self.torch.no_grad():
            slope = self.torch.zeros(place.stop - place.start, dtype=self.torch.float32)
            for rows in chunk:
                self._gradient(rows, slope[rows.place.start - place.start : rows.place.stop - place.start])
                if rows.matrix and self.kept != 1:
                    self.vectors[0][rows.place].mul_(self.kept)
            weights, first, second = (vector[place] for vector in self.vectors)
            first.lerp_(slope, 1 - _FIRST)
            second.mul_(_SECOND).addcmul_(slope, slope, value=1 - _SECOND)
            weights.addcdiv_(first, second.sqrt().mul_(self.root).add_(_EPSILON), value=-self.rate)

    def _gradient(self, rows: _Rows, out: Any) -> None:
        for shard in self.shards:
            inputs, slopes = shard[rows.layer]
            some = slopes[:, rows.first : rows.last]
            if rows.matrix:
                out.view(rows.last - rows.first, -1).addmm_(some.t(), inputs)
            else:
                out.add_(some.sum(dim=0))


class TorchNetwork:
    """An encoder and a decoder whose weights are one vector; see `Layout`."""

    def __init__(self, layout: Layout, start: Start, *, n_threads: int) -> None:
        self._torch = torch = import_torch()
        self.layout, self.plan, self.n_threads = layout, layout.plan, n_threads
        activation = ACTIVATIONS[self.plan.activation]
        self._activation, self._slope = activation.torch, activation.torch_slope
        self._sized = threading.local()
        self._into: Any = None
        self._out: Any = None
        if start.directions is not None:  # in training, codes are divided by their sizes
            self._into = torch.tensor(start.directions / start.sizes[:, None])
            self._out = torch.tensor(start.directions.T * start.sizes)
        self._chunks = _chunks(layout)

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
        missing: Any = None,
    ) -> float:
        """Move the weights (with the two moments of AdamW) down the gradient of one batch; returns its summed error.

        The loss is the error, over inputs that are not `missing`, divided by `per`; `number` is that of the step, from 1;
        `seed` is of noise and dropout. Threads share the rows, for the slopes by the outputs of all layers, and then the
        weights, which are updated as soon as their gradient is known.
        """
        views = self._views(vectors[0])
        n = len(rows)
        large = n * self.layout.size >= _SMALL
        cuts = np.linspace(0, n, (_SHARDS if large else 1) + 1).astype(int).tolist()
        shards = [slice(at, end) for at, end in pairwise(cuts) if end > at]

        def slopes(shard: int, some: slice) -> tuple[float, list[tuple[Any, Any]]]:
            own, gaps = (None if one is None else one[some] for one in (weights, missing))
            return self._slopes(views, rows[some], gaps, own, per, (*seed, shard))

        found = self._each(shards, slopes, large)
        update = _Update(self._torch, vectors, [each for _, each in found], rate, number, self.plan.weight_decay)
        self._each(self._chunks, update, large)
        return float(sum(error for error, _ in found))

    def _slopes(
        self, views: list[Any], rows: Any, missing: Any, weights: Any, per: float, seed: Sequence[int]
    ) -> tuple[float, list[tuple[Any, Any]]]:
        """The summed error of some rows and, for each layer, its inputs and the slopes of the loss by its outputs."""
        rng = np.random.default_rng(seed) if self.plan.noise or self.plan.dropout else None
        with self._torch.no_grad():
            away, encoding, decoding = self._forward(views, rows, missing, rng)
            squares = (away * away).sum(dim=1)
            error = float(squares.sum() if weights is None else squares @ weights)
            slope = away.mul_(2 / per) if weights is None else away.mul_((weights * (2 / per))[:, None])
            cut = self.layout.n_encoder
            below = self._backward(views[cut:], decoding, slope)
            by_code = below[0][1] @ views[cut]
            if self._out is not None:
                by_code.addmm_(slope, self._out)
            return error, self._backward(views[:cut], encoding, by_code) + below

    def _backward(self, views: list[Any], layers: list[_Applied], slope: Any) -> list[tuple[Any, Any]]:
        """The inputs of each layer and the slopes by its outputs (before the activation), given those of the last."""
        found = [(layers[-1].inputs, slope)]
        for number in range(len(layers) - 2, -1, -1):
            slope = slope @ views[2 * number + 2]
            layer = layers[number]
            if layer.kept is not None:
                slope.mul_(layer.kept)
            slope = self._slope(slope, layer.before, layer.after)
            found.append((layer.inputs, slope))
        return found[::-1]

    # ---------------------------------------------------------------- the error of some rows

    def errors(self, vector: Floats32, part: Part) -> Floats:
        """The squared distance of each row from its reconstruction, over the cells that it has."""
        torch = self._torch
        views = self._views(torch.tensor(vector))
        large = len(part.inputs) * self.layout.size >= _SMALL

        def away(inputs: Floats32) -> Any:
            return self._forward(views, torch.tensor(inputs), None, None)[0]

        def evaluate(number: int, some: slice) -> Floats:
            with torch.no_grad():
                found = away(part.inputs[some])
                return np.asarray((found * found).sum(dim=1).numpy(), dtype=np.float64)

        errors = np.concatenate(self._each(_slices(len(part.inputs)), evaluate, large))
        if part.gaps is None:
            return errors
        gaps = part.gaps

        def observed(number: int, some: slice) -> Floats:
            with torch.no_grad():
                return gaps.squares(away(part.inputs[gaps.which[some]]).numpy(), some)

        errors[gaps.which] = np.concatenate(self._each(_slices(len(gaps.which)), observed, large))
        return errors

    def _views(self, vector: Any) -> list[Any]:
        return [vector[place.start : place.stop].view(place.shape) for place in self.layout.places]

    def _forward(
        self, views: list[Any], rows: Any, missing: Any, rng: np.random.Generator | None
    ) -> tuple[Any, list[_Applied], list[_Applied]]:
        """How far each reconstruction is from its row (0 where an input was missing), and what the layers did."""
        torch, cut = self._torch, self.layout.n_encoder
        seen = rows
        if rng is not None and self.plan.noise:
            drawn = torch.tensor(rng.standard_normal(tuple(rows.shape), dtype=np.float32))
            seen = rows + drawn * self.plan.noise * (1.0 if missing is None else ~missing)
        code, encoding = self._apply(views[:cut], seen, self._into, rng)
        away, decoding = self._apply(views[cut:], code, self._out, rng)
        away.sub_(rows)
        return away if missing is None else away.masked_fill_(missing, 0.0), encoding, decoding

    def _apply(
        self, views: list[Any], rows: Any, shortcut: Any, rng: np.random.Generator | None
    ) -> tuple[Any, list[_Applied]]:
        torch = self._torch
        found, layers = rows, []
        for weights, bias in zip(views[:-2:2], views[1:-2:2], strict=True):
            before = torch.addmm(bias, found, weights.t())
            after = self._activation(before)
            kept = self._kept(tuple(after.shape), rng)
            layers.append(_Applied(found, before, after, kept))
            found = after if kept is None else after * kept
        layers.append(_Applied(found, None, None, None))
        last = torch.addmm(views[-1], found, views[-2].t())
        return last if shortcut is None else last.addmm_(rows, shortcut.t()), layers

    def _kept(self, shape: tuple[int, ...], rng: np.random.Generator | None) -> Any:
        """What dropout multiplies hidden units by: 0, or for those that are kept as much as makes up for the others."""
        share = self.plan.dropout
        if rng is None or not share:
            return None
        return self._torch.tensor((rng.random(shape, dtype=np.float32) >= share) / np.float32(1 - share))

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
