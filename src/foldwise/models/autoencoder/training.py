"""Training in rounds: some random blocks are read, their rows shuffled together and cut into batches. One round is one step
of `iterate`, which brings checkpoints, time budget and Ctrl-C."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.source import count_rows
from foldwise.fold.iterate import Figures, State
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder.inputs import Part, Split, TakeTraining
from foldwise.models.autoencoder.plan import Plan
from foldwise.models.autoencoder.torch_network import TorchNetwork, import_torch

ROOM = 64 << 20  # bytes of the rows of a round, and of the held-out rows
_SURE = 2.0
_AT_A_TIME = 8  # blocks
_BLOCKS, _ROWS, _NOISE = 23, 24, 25  # tell the generators of a fit from each other


class Training:
    """The descent of one fit. A state holds the weights, the moments of the optimiser, the best weights and the position."""

    def __init__(
        self,
        passes: Passes,
        split: Split,
        network: TorchNetwork,
        judged: Part,
        *,
        rows: int,
        weight: float,
        factor: float,
        outside: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """`judged` are the rows whose error decides; `rows` and `weight` are those of the training part.

        Errors are reported times `factor`, plus what lies outside of the inputs, of training rows and of judged rows.
        """
        self.passes, self.network, self.judged = passes, network, judged
        self.plan: Plan = network.plan
        self.rows, self.weight, self.factor, self.outside = rows, weight, factor, outside
        width = self.plan.encoder[0]
        self._take = TakeTraining(split, width)
        self._n_blocks = -(-count_rows(passes.source) // split.block_rows)
        self._at_once = max(1, ROOM // (split.block_rows * width * 4))
        self.n_rounds = -(-self._n_blocks // self._at_once)
        self._kept: Part | None = None

    def start(self) -> State:
        """The first weights, and their error."""
        vector = self.network.layout.first_weights()
        zeros = np.zeros_like(vector)
        error = self.error(vector)
        whole = {name: np.array(0) for name in ("epoch", "round", "steps", "best_epoch")}
        parts = {"summed": np.array(0.0), "seen": np.array(0.0), "best_error": np.array(error)}
        return {"weights": vector, "first": zeros, "second": zeros, "best": vector, **whole, **parts}

    def error(self, vector: np.ndarray) -> float:
        """The mean error of the judged rows."""
        return self.mean_error(self.network.errors(vector, self.judged)) + self.outside[1]

    def mean_error(self, squares: Floats) -> float:
        """The weighted mean of the judged rows' squared errors, in the units of the fit."""
        return self.factor * float(np.average(squares, weights=self.judged.weights))

    def surely_better(self, vector: np.ndarray) -> bool:
        """Whether the judged rows are told from PCA's in favour of these weights: by twice the standard error of the mean
        difference. The best of many epochs is better by chance, with few rows often by much."""
        first = self.network.errors(self.network.layout.first_weights(), self.judged)
        gains, weights = first - self.network.errors(vector, self.judged), self.judged.weights
        mean = float(np.average(gains, weights=weights))
        spread = float(np.sqrt(np.average((gains - mean) ** 2, weights=weights)))
        return bool(mean > _SURE * spread / np.sqrt(max(self.judged.weight, 2.0) - 1))

    def done(self, state: State) -> bool:
        """Whether the last epoch is over, or none was better for a while."""
        epoch = int(state["epoch"])
        return epoch >= self.plan.epochs or epoch - int(state["best_epoch"]) >= self.plan.patience

    def step(self, state: State) -> tuple[State, Figures]:
        """One round."""
        torch, plan = import_torch(), self.plan
        epoch, place = int(state["epoch"]), int(state["round"])
        part = self._round(epoch, place)
        vectors = tuple(torch.tensor(state[name]) for name in ("weights", "first", "second"))
        inputs = torch.from_numpy(part.inputs)  # batches are copied out of it, to where torch likes them
        weights = None if part.weights is None else torch.tensor(part.weights.astype(np.float32))
        missing = None if part.missing is None else torch.from_numpy(part.missing)
        order = np.random.default_rng([plan.seed, _ROWS, epoch, place]).permutation(len(inputs))
        batches = np.array_split(order, max(1, round(len(order) / plan.batch_size)))
        steps, summed, rate = int(state["steps"]), float(state["summed"]), 0.0
        for number, batch in enumerate(batches if len(order) else []):
            steps += 1
            progress = (epoch + (place + (number + 1) / len(batches)) / self.n_rounds) / plan.epochs
            rate = plan.rate(progress)
            chosen = torch.from_numpy(batch)
            own, gaps = (None if one is None else one[chosen] for one in (weights, missing))
            per = plan.encoder[0] * len(batch) * self.weight / self.rows
            seed = (plan.seed, _NOISE, epoch, place, number)
            summed += self.network.step(vectors, inputs[chosen], own, per, rate, steps, seed, gaps)
        seen = float(state["seen"]) + part.weight
        moved = dict(zip(("weights", "first", "second"), (one.numpy() for one in vectors), strict=True))
        figures = {
            "epoch": float(epoch + 1),
            "training_error": self.factor * summed / max(seen, 1e-300) + self.outside[0],
        }
        after = {**state, **moved, "steps": np.array(steps), "summed": np.array(summed), "seen": np.array(seen)}
        if place + 1 < self.n_rounds:
            return {**after, "round": np.array(place + 1)}, figures
        return self._end_of_epoch(after, epoch + 1), {
            **figures,
            "held_out_error": self._last_error,
            "learning_rate": rate,
        }

    def _end_of_epoch(self, state: State, epoch: int) -> State:
        self._last_error = error = self.error(state["weights"])
        after = {**state, "epoch": np.array(epoch), "round": np.array(0)}
        after |= {"summed": np.array(0.0), "seen": np.array(0.0)}
        if error < float(state["best_error"]):
            after |= {"best": state["weights"], "best_error": np.array(error), "best_epoch": np.array(epoch)}
        return after

    def _round(self, epoch: int, place: int) -> Part:
        """The training rows of a round; kept if there is only one."""
        if self._kept is not None:
            return self._kept
        blocks = np.random.default_rng([self.plan.seed, _BLOCKS, epoch]).permutation(self._n_blocks)
        some = blocks[place * self._at_once : (place + 1) * self._at_once]
        part = self._read(sorted(some.tolist()))
        if self.n_rounds == 1:
            self._kept = part
        return part

    def _read(self, numbers: list[int]) -> Part:
        """The training rows of some blocks, a few blocks at a time, so that they are in memory only once."""
        width = self.plan.encoder[0]
        room = len(numbers) * self._take.split.block_rows
        inputs = np.empty((room, width), dtype=np.float32)
        missing: NDArray[np.bool_] | None = None
        weights: list[Floats] = []
        end, weighted = 0, False
        for start in range(0, len(numbers), _AT_A_TIME):
            found = self.passes.ask(self._take, dict.fromkeys(numbers[start : start + _AT_A_TIME]))
            for number in sorted(found):
                part: Part = found[number]
                here = slice(end, end + len(part.inputs))
                inputs[here] = part.inputs
                if part.missing is not None:
                    missing = np.zeros((room, width), dtype=bool) if missing is None else missing
                    missing[here] = part.missing
                end = here.stop
                weights.append(np.ones(len(part.inputs)) if part.weights is None else part.weights)
                weighted |= part.weights is not None
        gaps = None if missing is None else missing[:end]
        return Part(inputs[:end], np.concatenate(weights) if weighted else None, gaps)
