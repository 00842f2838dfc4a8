"""The report on an autoencoder: what its codes keep, beside as many principal components, and the rows that fit worst."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.missing import allow_missing
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.report.formats import counted, number, percent, short_number
from foldwise.report.image_charts import image_shape_of, reconstruction_pictures, telling_names
from foldwise.report.labels import cut
from foldwise.report.legend import legend
from foldwise.report.plane import scatter
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.svg import BLUE, MUTED, ORANGE, Plot
from foldwise.report.values import Chart, Column, Fact, Note, Part, Report, Table
from foldwise.selection.code_profile import CodeProfile, NovelRow, code_profile, is_pca

_MOST_LINES = 20  # of columns
_MOST_STEPS = 400  # of a curve
_NOTHING = 0.01  # of the variance lost by PCA, which is so little that units are to blame
_FLATTERED = (
    "(These rows chose the epoch: others fare worse, with few rows clearly so; --sizes keeps rows that have no say.)"
)
_NOT_HELD_OUT = "no rows were held out"  # how the note in the manifest begins


def autoencoder_report(model: Any, source: Source) -> Report:
    """What ran, what is lost on held-out rows, what is explained of each column, and the most novel rows.

    The rows, which should be those of the fit, are passed over three times, and once more for their labels.
    """
    found, k = code_profile(model, source), model.n_components_
    numbers = counted(k, "number")
    return Report(
        f"Codes of {numbers} for {counted(model.manifest_.rows, 'row')}",
        about(model, model.manifest_.algorithm, scaled=_scaled(model)),
        _facts(model),
        [
            Note(_sentence(model), only="text"),
            *_columns(model, found),
            *reconstruction_pictures(model, source, [row.number for row in found.novel]),
            *_planes(model, found, source),
            *_novel(model, found, source),
            Note(_hints(model), only="text"),
            _training(model),
            run_table(model.manifest_),
        ],
        told(source),
        [_kept(model), _sentence(model)],
        "page",
    )


def _kept(model: Any) -> str:
    """What of the data the codes keep."""
    (lost, by_pca), k = _lost(model), model.n_components_
    return (
        f"{counted(k, 'number')} for each row {'keeps' if k == 1 else 'keep'} {percent(1 - lost)} of the variance of "
        f"{_judged(model)}; as many principal components keep {percent(1 - by_pca)}."
    )


def _hints(model: Any) -> str:
    lines = ["hint: --sizes 1,2,4,8 compares several sizes with PCA, on rows held out once for all"]
    if not _scaled(model) and _lost(model)[1] < _NOTHING:
        lines.append(
            "hint: one or two columns may have nearly all of the variance; --scale lets all columns count alike"
        )
    return "\n".join(lines)


def _scaled(model: Any) -> bool:
    return bool(model.scale or getattr(model, "indicators_", None) is not None)


def _judged(model: Any) -> str:
    unheld = any(note.startswith(_NOT_HELD_OUT) for note in model.manifest_.notes)
    return "rows of the training" if unheld else "held-out rows"


def _lost(model: Any) -> tuple[float, float]:
    """The shares of the variance that the codes lose, and that PCA does."""
    total = model.held_out_variance_
    return (model.held_out_error_ / total, model.pca_error_ / total) if total > 0 else (0.0, 0.0)


def _facts(model: Any) -> list[Fact]:
    (lost, by_pca), rows = _lost(model), _judged(model)
    epochs = counted(model.n_iter_, "epoch")
    return [
        Fact("lost by the codes", lost, percent(lost), f"(of the variance of {rows})"),
        Fact("lost by PCA", by_pca, percent(by_pca), f"({counted(model.n_components_, 'component')}, the same rows)"),
        Fact("best epoch", model.best_epoch_, f"{model.best_epoch_:,}", f"(of {epochs}, by the error of {rows})"),
    ]


def _sentence(model: Any) -> str:
    lost, by_pca = _lost(model)
    k = model.n_components_
    if is_pca(model):
        return (
            f"No epoch of training was surely better on {_judged(model)} than the start, which is PCA: the codes are the "
            f"scores of {counted(k, 'principal component')} of all rows."
        )
    if lost >= by_pca:
        return f"{counted(k, 'principal component')} would do as well: use fw.PCA, which is simpler."
    share = 1 - lost / by_pca if by_pca > 0 else 0.0
    told = f"The codes lose {percent(share)} less than {counted(k, 'principal component')}."
    return told if _judged(model) != "held-out rows" else f"{told} {_FLATTERED}"


# ---------------------------------------------------------------- tables


def _columns(model: Any, found: CodeProfile) -> list[Part]:
    """What is explained of each column; of many columns, those in which codes and PCA differ most."""
    if found.explained is None or found.pca_explained is None or image_shape_of(model) is not None:
        return []
    names, d = column_names(model), len(found.explained)
    chosen = np.arange(d)
    rows = "all rows" if is_pca(model) else "all rows, most of which the training has seen"
    if found.judged is not None:
        rows = f"the {counted(found.judged, 'row')} that were held out"
    caption = f"Shares of the variance of each column, over {rows}; below zero: further off than the mean."
    if d > _MOST_LINES:
        apart = np.nan_to_num(np.abs(found.explained - found.pca_explained), nan=-1.0)
        chosen = np.sort(np.argsort(-apart, kind="stable")[:_MOST_LINES])
        caption += f" Of {counted(d, 'column')}, the {_MOST_LINES} in which codes and PCA differ most."
    shares = [found.explained[chosen], found.pca_explained[chosen]]
    bar = (
        1.0 if min(float(one.min(initial=0.0)) for one in shares) >= 0 else None
    )  # there are no bars below zero, or of NaN
    table = Table(
        "What the codes tell of each column",
        [
            Column("column", [names[j] for j in chosen], left=True),
            Column("explained by codes", shares[0].tolist(), percent, bar=bar),
            Column("by PCA", shares[1].tolist(), percent),
        ],
        caption,
        wide=True,
    )
    return [table]


def _novel(model: Any, found: CodeProfile, source: Source) -> list[Part]:
    """The rows that are furthest from their reconstructions, and in which columns."""
    if not found.novel or not found.error > 0:
        return []
    from foldwise.prepare.prepared import names_of_rows

    names = column_names(model)
    heads, ids = names_of_rows(source, [row.number for row in found.novel])
    lines = [*zip(*ids, strict=True)] if ids else []
    named = enumerate(zip(heads, lines, strict=True))
    columns = [Column(head, line, _written, left=place > 0) for place, (head, line) in named]
    if not columns:
        columns = [Column("row", [row.number for row in found.novel], "{:,}".format)]
    errors = np.array([row.error for row in found.novel])
    columns += [
        Column("error", errors.tolist(), number),
        Column("times the mean", (errors / found.error).tolist(), "{:.1f}".format),
    ]
    if telling_names(model, names):
        cells = [_differs(row, names) for row in found.novel]
        columns.append(Column("where it differs most (expected)", cells, left=True))
    caption = (
        "The rows that are reconstructed worst. Error: the squared distance from the reconstruction, in the "
        f"{'scaled ' if _scaled(model) else ''}space of the fit; the mean is {number(found.error)}."
    )
    return [Table("The most novel rows", columns, caption, wide=True)]


def _written(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else cut(str(value), 30)


def _differs(row: NovelRow, names: list[str]) -> str:
    parts = [
        f"{cut(names[j], 24)} {short_number(value)} ({short_number(expected)})"
        for j, value, expected in zip(row.columns, row.values, row.expected, strict=True)
    ]
    return ", ".join(parts) or "(a little in many columns)"


# ---------------------------------------------------------------- charts


def _planes(model: Any, found: CodeProfile, source: Source) -> list[Part]:
    """The rows by their first two codes, beside the first two components."""
    groups, levels, name = _labels(source)
    some = None if groups is None else groups[found.shown]
    coloured = f" Coloured by {name}." if name else ""
    many = f" {counted(len(found.shown), 'row')} are drawn." if len(found.shown) < model.manifest_.rows else ""
    first, second = "code 0", "code 1"
    shares = found.pca.explained_variance_ratio_
    if model.n_components_ == 1:
        places = np.column_stack([found.codes[:, 0], found.scores[:, 0]])
        caption = f"The code of each row, and its score on the first principal component.{coloured}{many}"
        return [
            Chart(
                "The code beside the first component",
                lambda: scatter(places, some, levels, first, "component 0"),
                caption,
            )
        ]
    more = f" The first two of {counted(model.n_components_, 'number')}." if model.n_components_ > 2 else ""
    charts: list[Part] = [
        Chart(
            "The rows by their codes",
            lambda: scatter(found.codes, some, levels, first, second),
            f"What training made of the plane beside it.{more}{coloured}{many}",
        )
    ]
    if found.scores.shape[1] > 1:
        below, beside = (f"component {i} ({percent(float(shares[i]))})" for i in (0, 1))
        charts.append(
            Chart(
                "The rows on the first two principal components",
                lambda: scatter(found.scores, some, levels, below, beside),
                f"For comparison: what PCA sees of the same rows.{coloured}{many}",
            )
        )
    return charts


def _labels(source: Source) -> tuple[NDArray[np.intp] | None, list[str], str]:
    """The number of each row's level in the first column of labels (-1: unknown), the names of levels, and of the column."""
    from foldwise.prepare.prepared import describing

    found = describing(source)
    if found is None:
        return None, [], ""
    codes, columns = found
    place = next((j for j, (_, is_label) in enumerate(columns) if is_label), None)
    if place is None:
        return None, [], ""
    numbers = np.nan_to_num(Passes(allow_missing(codes)).rows(_Cells(place)), nan=-1.0)
    levels = columns[place][0]
    return numbers.astype(np.intp), [str(level) for level in levels.levels], levels.name


class _Cells:
    """One column of each block."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, block: Any) -> NDArray[Any]:
        return np.ascontiguousarray(block.unchecked[:, self.place])


def _training(model: Any) -> Chart:
    """Errors after every epoch, and the level of PCA."""

    def draw() -> str | None:
        if len(model.trace_) < 2 or not model.held_out_variance_ > 0:
            return None
        every = len(model.trace_) // _MOST_STEPS + 1
        steps = [one for i, one in enumerate(model.trace_) if i % every == 0 or i == len(model.trace_) - 1]
        epochs = [one["epoch"] for one in steps]
        total = model.held_out_variance_
        training, held_out = ([one[name] / total for one in steps] for name in ("training_error", "held_out_error"))
        (lost, by_pca), best = _lost(model), model.best_epoch_
        shown = sorted([*held_out, *training, by_pca])
        low, high = (
            min(shown[0], lost),
            min(shown[-1], 1.6 * max(by_pca, held_out[-1])),
        )  # a start far above says little
        room = 0.08 * (high - low) or high or 1.0
        inks = (("training", ORANGE), (_judged(model), BLUE), ("PCA (dashed)", MUTED))
        named, tall = legend(inks, 460)
        ends = (0, epochs[-1]), (max(low - room, 0.0), high + room)
        plot = Plot(*ends, "epoch", whole=True, percent=True, top=16 + tall)
        plot.add(named)
        plot.line((0, epochs[-1]), (by_pca, by_pca), MUTED, 1.5, dash=5)
        for errors, ink, width in ((training, ORANGE, 1.4), (held_out, BLUE, 2.0)):
            plot.line(epochs, errors, ink, width)
            if not plot.holds(epochs[0], errors[0]):
                plot.arrow(epochs[0], errors[0], ink, f"epoch {epochs[0]}: {percent(errors[0])}")
        plot.ring(best, lost)
        return plot.svg()

    caption = (
        f"The share of the variance that is lost, after every epoch. Ring: epoch {model.best_epoch_:,}, which was kept."
    )
    return Chart("Training", draw, caption, wide=True, only="page", collapsed=True)
