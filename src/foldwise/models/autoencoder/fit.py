"""From an open fit to two networks: columns, held-out rows, PCA, training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.data.source import block_rows, count_rows
from foldwise.data.spool import SpooledSource, spooled
from foldwise.errors import ParameterError
from foldwise.fold.iterate import iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder.activations import Floats32
from foldwise.models.autoencoder.inputs import Inputs, Part, Split
from foldwise.models.autoencoder.judged import Judged, judged_rows
from foldwise.models.autoencoder.network import Network
from foldwise.models.autoencoder.parameters import widths_of
from foldwise.models.autoencoder.plan import Plan, default_epochs, default_patience, default_share, default_widths
from foldwise.models.autoencoder.torch_network import TorchNetwork
from foldwise.models.autoencoder.training import ROOM, Training
from foldwise.models.autoencoder.weights import Layout, Start
from foldwise.models.pca.estimator import PCA
from foldwise.models.pca.normal_model import ObservedResiduals
from foldwise.models.pca.projection import Projection
from foldwise.models.pca.solver import dimensions
from foldwise.models.session import Session

_FEWEST_ROWS = 20  # below, none are held out
_MANY_COLUMNS = 2000
_REDUCED = 256
_LARGE = 1_000_000  # weights, of which checkpoints take long to write
_AT_ONCE = 4096  # rows
_SMALLEST = 1e-3  # of the largest code: none is divided by less


@dataclass(frozen=True)
class Found:
    """What a fit has found."""

    inputs: Inputs
    pca: PCA
    encoder: Network
    decoder: Network
    judged: Judged
    share: float  # of the rows that were held out
    error: float
    outcome: Outcome
    best_epoch: int
    epochs: int
    rows: int
    resumed_at: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Begun:
    """A PCA, and the networks that begin as it."""

    pca: PCA
    inputs: Inputs
    start: Start
    layout: Layout

    def networks(self, vector: Floats32) -> tuple[Network, Network]:
        return self.layout.networks(vector, self.start)


def find(model: Any, opened: Session) -> Found:
    """Fit the networks of `model` to the rows of an open fit."""
    source, seed, k = opened.source, opened.seed, int(model.n_components)
    if k > source.n_columns:
        raise ParameterError(
            f"n_components={k} must not exceed the number of columns: there are {source.n_columns} feature(s)."
        )
    split = Split.over(opened.passes, seed)
    rows, d = split.rows, source.n_columns
    reduced = _reduced(model.reduce_to, source)
    # Where cells are missing, all cells of rows that are held out are kept beside their inputs.
    width = (d if reduced is None else min(reduced, d)) + (0 if opened.missing is None else d)
    room = ROOM / (4 * width)
    asked = default_share(max(rows, 1)) if model.validation_fraction == "auto" else float(model.validation_fraction)
    if rows >= _FEWEST_ROWS and round(asked * rows):
        split = replace(split, share=max(min(asked, room / rows, 1 - 2 / rows), 1 / rows))
    few = split.share == 0.0 and asked > 0.0 and rows < _FEWEST_ROWS and model.linear
    begun = _begin(model, opened, split)
    judging, notes = split, []
    if split.share == 0.0:
        judging = replace(split, share=max(min(1.0, room / rows), 1 / rows))
        why = f"fewer than {_FEWEST_ROWS} rows" if rows < _FEWEST_ROWS else f"validation_fraction={asked:g}"
        then = "nothing tells whether a network is better, and the result is PCA"
        then = then if few else "the error of training rows chose the best epoch"
        notes.append(f"no rows were held out ({why}): {then}")
    elif split.share < asked:
        notes.append(f"rows held out: {split.share:.2%} of all, as many as have room in {ROOM >> 20} MB")
    judged = judged_rows(opened.passes, judging, begun.inputs, _pca_residuals(begun.pca, k))
    left, weight = rows - split.n_held_out, begun.pca.total_weight_
    network = TorchNetwork(begun.layout, begun.start, n_threads=opened.passes.n_threads)
    figures = (begun.pca.mean_, begun.pca.explained_variance_, judged.variance)
    plan = begun.layout.plan
    with _read_quickly(opened.passes, begun.inputs) as passes:
        training = Training(
            passes,
            split,
            network,
            judged.part,
            rows=left,
            weight=weight if np.isfinite(weight) else float(left),
            factor=begun.inputs.factor,
            outside=(_outside(begun.pca, begun.inputs), judged.outside),
        )
        state, outcome, resumed_at = iterate(
            training.start,
            training.step,
            (lambda state: True) if few else training.done,
            max_iter=plan.epochs * training.n_rounds,
            time_budget=opened.deadline.left,
            checkpoint=opened.checkpoint(*figures, every=1.0 if begun.layout.size < _LARGE else 5.0),
        )
    best, best_epoch = state["best"], int(state["best_epoch"])
    back = split.share > 0.0 and model.linear and not training.surely_better(best)
    if back:
        best, best_epoch = begun.layout.first_weights(), 0
    encoder, decoder = begun.networks(best)
    error = training.mean_error(reconstruction_errors(encoder, decoder, judged.part)) + judged.outside
    if back:  # PCA needs no rows to choose an epoch by
        begun = _begin(model, opened, replace(split, share=0.0), begun)
        encoder, decoder = begun.networks(begun.layout.first_weights())
    return Found(
        begun.inputs,
        begun.pca,
        encoder,
        decoder,
        judged,
        split.share,
        error,
        outcome,
        best_epoch,
        int(state["epoch"]),
        rows,
        resumed_at,
        tuple(notes),
    )


def _begin(model: Any, opened: Session, split: Split, otherwise: _Begun | None = None) -> _Begun:
    """PCA of the training rows; `otherwise` is the result if that is interrupted."""
    source, k = opened.source, int(model.n_components)
    reduced = _reduced(model.reduce_to, source)
    left = split.rows - split.n_held_out
    wanted = k if reduced is None else max(min(reduced, source.n_columns), k)
    pca = PCA(
        min(wanted, max(1, min(left, dimensions(source.n_columns, getattr(source, "indicators", None))))),
        scale=model.scale,
        missing="error" if opened.missing is None else "model",
        random_state=opened.seed,
        n_threads=model.n_threads,
    ).fit(split.training(source))
    if pca.outcome_.reason is Reason.INTERRUPTED:  # there is nothing yet to go on from, or to keep
        if otherwise is None:
            raise KeyboardInterrupt
        return otherwise
    opened.passes.counter.passes += pca.manifest_.passes
    inputs = inputs_of(pca, reduced is not None, gaps=opened.missing is not None)
    plan = _plan(model, inputs.width, left, opened.seed)
    return _Begun(pca, inputs, _start(pca, k, inputs, linear=model.linear, reduced=reduced is not None), Layout(plan))


@contextmanager
def _read_quickly(passes: Passes, inputs: Inputs) -> Iterator[Passes]:
    """Passes over the inputs; scores on directions go to a scratch file if they do not stay in memory anyway."""
    view = inputs.view(passes.source)
    step = block_rows(view)
    small = -(-count_rows(view) // step) * step * 4 * inputs.width <= ROOM  # then a round has all
    with nullcontext(view) if small or passes.engine.remote else spooled(view) as source:
        found = passes.over(source)
        if isinstance(source, SpooledSource):
            found.each(_nothing)  # writes it
        yield found


def _nothing(block: Block) -> None:
    return None


def reconstruction_errors(encoder: Network, decoder: Network, part: Part) -> Floats:
    """The squared distance of each row of inputs from its reconstruction, over the cells that it has."""
    errors = np.empty(len(part.inputs))
    for start in range(0, len(part.inputs), _AT_ONCE):
        inputs = part.inputs[start : start + _AT_ONCE]
        away = (decoder(encoder(inputs)) - inputs).astype(np.float64)
        errors[start : start + _AT_ONCE] = np.einsum("ij,ij->i", away, away)
    if part.gaps is not None:
        for start in range(0, len(part.gaps.which), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            inputs = part.inputs[part.gaps.which[some]]
            errors[part.gaps.which[some]] = part.gaps.squares(decoder(encoder(inputs)) - inputs, some)
    return errors


def inputs_of(pca: PCA, reduced: bool, *, gaps: bool = False) -> Inputs:
    """The inputs of a network that begins with this PCA, or that sees its scores; with `gaps`, it fills missing cells."""
    d, fill = len(pca.mean_), pca._normal if gaps else None
    scale = np.ones(d) if pca.scale_ is None else pca.scale_
    if reduced:
        kept = max(1, int(np.count_nonzero(pca.explained_variance_ > pca.variance_floor_)))
        unit = float(np.sqrt(np.mean(pca.explained_variance_[:kept])))
        return Inputs(pca.mean_, scale, unit if unit > 0 else 1.0, pca.components_[:kept], fill)
    unit = 1.0 if pca.scale_ is not None else float(np.sqrt(np.mean(pca.column_variances_)))
    return Inputs(pca.mean_, scale, unit if unit > 0 else 1.0, fill=fill)


def _reduced(asked: Any, source: Any) -> int | None:
    """To how many scores the columns are reduced first, if they are."""
    if asked == "auto":
        return _REDUCED if source.sparse or source.n_columns > _MANY_COLUMNS else None
    return None if asked is None and not source.sparse else int(asked or _REDUCED)


def _pca_residuals(pca: PCA, k: int) -> Any:
    projection = Projection(pca.components_[:k], pca.mean_, pca.scale_)
    if pca.missing != "model":
        return projection.residual_norms
    return ObservedResiduals(pca._normal(), projection)


def _plan(model: Any, width: int, rows: int, seed: int) -> Plan:
    k = int(model.n_components)
    down = default_widths(width, k) if model.encoder is None else widths_of("encoder", model.encoder)
    up = down[::-1] if model.decoder is None else widths_of("decoder", model.decoder)
    batch_size = int(model.batch_size)
    epochs = default_epochs(rows, batch_size) if model.max_iter == "auto" else int(model.max_iter)
    return Plan(
        encoder=(width, *down, k),
        decoder=(k, *up, width),
        activation=model.activation,
        linear=bool(model.linear),
        noise=float(model.noise),
        dropout=float(model.dropout),
        batch_size=batch_size,
        learning_rate=float(model.learning_rate),
        weight_decay=float(model.weight_decay),
        epochs=epochs,
        patience=default_patience(epochs) if model.patience == "auto" else int(model.patience),
        seed=seed,
    )


def _start(pca: PCA, k: int, inputs: Inputs, *, linear: bool, reduced: bool) -> Start:
    """The linear part of the networks: PCA's directions, followed by zeros if the code is longer than PCA's."""
    sizes = np.ones(k, dtype=np.float32)
    if not linear:
        return Start(None, sizes)
    directions = np.zeros((k, inputs.width), dtype=np.float32)
    some = min(k, len(pca.components_), inputs.width)
    directions[:some] = np.eye(some, inputs.width) if reduced else pca.components_[:some]
    found = np.sqrt(np.maximum(pca.explained_variance_[:some], 0.0)) / inputs.unit
    if some and found.max() > 0:
        sizes[:some] = np.maximum(found, _SMALLEST * found.max())
    return Start(directions, sizes)


def _outside(pca: PCA, inputs: Inputs) -> float:
    """The mean of what the inputs leave out of training rows."""
    if inputs.directions is None:
        return 0.0
    shares = pca.explained_variance_ratio_[: inputs.width]
    total = float(pca.explained_variance_[0] / shares[0]) if shares[0] > 0 else 0.0
    return max(0.0, total * (1.0 - float(shares.sum())))
