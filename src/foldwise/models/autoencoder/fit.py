"""From an open fit to two networks: columns, held-out rows, PCA, training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Block
from foldwise.data.source import count_rows
from foldwise.data.spool import SpooledSource, spooled
from foldwise.fold.iterate import iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.models.autoencoder.inputs import Inputs, Split
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
from foldwise.stats.column_moments import ColumnMoments

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
    error: float
    outcome: Outcome
    best_epoch: int
    epochs: int
    rows: int
    resumed_at: int
    notes: tuple[str, ...]


def find(model: Any, opened: Session) -> Found:
    """Fit the networks of `model` to the rows of an open fit."""
    source, seed, k = opened.source, opened.seed, int(model.n_components)
    columns = opened.missing or opened.passes.fold(ColumnMoments.of)
    rows, d = columns.rows, source.n_columns
    reduced = _reduced(model.reduce_to, source)
    width = d if reduced is None else min(reduced, d)
    room = ROOM / (4 * width)
    asked = default_share(rows) if model.validation_fraction == "auto" else float(model.validation_fraction)
    share = 0.0 if rows < _FEWEST_ROWS or round(asked * rows) == 0 else min(asked, room / rows)
    split = Split.over(source, seed, share)
    left = rows - round(share * rows)
    most = max(1, min(left, dimensions(d, getattr(source, "indicators", None))))
    pca = PCA(
        min(k if reduced is None else max(width, k), most),
        scale=model.scale,
        missing="error" if opened.missing is None else "model",
        random_state=seed,
        n_threads=model.n_threads,
    ).fit(split.training(source))
    if pca.outcome_.reason is Reason.INTERRUPTED:  # there is nothing yet to go on from, or to keep
        raise KeyboardInterrupt
    opened.passes.counter.passes += pca.manifest_.passes
    inputs = inputs_of(pca, reduced is not None)
    judging, notes = split, []
    if share == 0.0:
        judging = Split(seed, min(1.0, room / rows), split.block_rows)
        why = f"fewer than {_FEWEST_ROWS} rows" if rows < _FEWEST_ROWS else f"validation_fraction={asked:g}"
        notes.append(f"no rows were held out ({why}): the error of training rows chose the best epoch")
    elif share < asked:
        notes.append(f"rows held out: {share:.2%} of all, as many as have room in {ROOM >> 20} MB")
    judged = judged_rows(opened.passes, judging, inputs, _pca_residuals(pca, k))
    if len(judged.part.inputs) == 0:
        raise AssertionError("no rows to judge by")
    held = 0 if share == 0.0 else len(judged.part.inputs)
    weight = pca.total_weight_ if np.isfinite(pca.total_weight_) else float(left)
    plan = _plan(model, inputs.width, rows - held, seed)
    start = _start(pca, k, inputs, linear=model.linear, reduced=reduced is not None)
    layout = Layout(plan)
    network = TorchNetwork(layout, start, n_threads=opened.passes.n_threads, gaps=opened.missing is not None)
    figures = (pca.mean_, pca.explained_variance_, judged.variance)
    with _read_quickly(opened.passes, inputs) as passes:
        training = Training(
            passes,
            split,
            network,
            judged.part,
            rows=rows - held,
            weight=weight,
            factor=inputs.factor,
            outside=(_outside(pca, inputs), judged.outside),
        )
        state, outcome, resumed_at = iterate(
            training.start,
            training.step,
            training.done,
            max_iter=plan.epochs * training.n_rounds,
            time_budget=opened.deadline.left,
            checkpoint=opened.checkpoint(*figures, every=1.0 if layout.size < _LARGE else 5.0),
        )
    best, best_epoch = state["best"], int(state["best_epoch"])
    if share > 0.0 and model.linear and not training.surely_better(best):
        best, best_epoch = layout.first_weights(), 0
    encoder, decoder = layout.networks(best, start)
    error = training.mean_error(reconstruction_errors(encoder, decoder, judged.part.inputs)) + judged.outside
    return Found(
        inputs,
        pca,
        encoder,
        decoder,
        judged,
        error,
        outcome,
        best_epoch,
        int(state["epoch"]),
        rows,
        resumed_at,
        tuple(notes),
    )


@contextmanager
def _read_quickly(passes: Passes, inputs: Inputs) -> Iterator[Passes]:
    """Passes over the inputs; scores on directions go to a scratch file if they do not stay in memory anyway."""
    view = inputs.view(passes.source)
    small = count_rows(view) * 4 * inputs.width <= ROOM
    with nullcontext(view) if small or passes.engine.remote else spooled(view) as source:
        found = passes.over(source)
        if isinstance(source, SpooledSource):
            found.each(_nothing)  # writes it
        yield found


def _nothing(block: Block) -> None:
    return None


def reconstruction_errors(encoder: Network, decoder: Network, inputs: Any) -> Any:
    """The squared distance of each row of inputs from its reconstruction, over the cells that it has."""
    errors = np.empty(len(inputs))
    for start in range(0, len(inputs), _AT_ONCE):
        part = inputs[start : start + _AT_ONCE]
        missing = np.isnan(part)
        clean = np.where(missing, np.float32(0), part)
        away = np.where(missing, 0.0, decoder(encoder(clean)) - clean).astype(np.float64)
        errors[start : start + _AT_ONCE] = np.einsum("ij,ij->i", away, away)
    return errors


def inputs_of(pca: PCA, reduced: bool) -> Inputs:
    """The inputs of a network that begins with this PCA, or that sees its scores."""
    d = len(pca.mean_)
    scale = np.ones(d) if pca.scale_ is None else pca.scale_
    if reduced:
        kept = max(1, int(np.count_nonzero(pca.explained_variance_ > pca.variance_floor_)))
        unit = float(np.sqrt(np.mean(pca.explained_variance_[:kept])))
        return Inputs(pca.mean_, scale, unit if unit > 0 else 1.0, pca.components_[:kept])
    if pca.scale_ is not None:
        return Inputs(pca.mean_, scale, 1.0)
    unit = float(np.sqrt(np.mean(pca.column_variances_)))
    return Inputs(pca.mean_, scale, unit if unit > 0 else 1.0)


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
