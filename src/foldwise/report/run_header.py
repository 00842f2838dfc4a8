"""What ran, in a few lines at the head of a report, and in full in a table at its end."""

from __future__ import annotations

from typing import Any

from foldwise.data.image_shape import pixel_names
from foldwise.fold.manifest import Manifest
from foldwise.report.formats import counted
from foldwise.report.values import Column, Table

_TOLD = (
    "identifier",
    "constant",
    "empty-column",
    "left-out",
    "nested",
)  # topics of notes that the roles of columns tell


def about(model: Any, work: str, *, scaled: bool | None = None) -> list[str]:
    """One line on the data, one on the work done, and what was left out, repaired or cut short.

    `scaled` says whether columns were scaled, where `scale_` is not None for all the same.
    """
    ran = model.manifest_
    scaled = model.scale_ is not None if scaled is None else scaled
    size = f"{counted(ran.rows, 'row')}, {counted(ran.columns, 'column')} ({ran.dtype})"
    done = f"{'scaled columns, ' if scaled else ''}{work}, {passes(ran)}"
    if getattr(model, "recipe_", None) is not None:  # what was read is told in the lines before
        lines = [f"in the fit: {size}", done]
    else:
        lines = [f"{ran.source}: {size}", done, *left_out(ran.left_out)]
    if ran.resumed_at:
        lines.append(f"resumed from a checkpoint at iteration {ran.resumed_at}")
    lines += [f"repaired: {repair}" for repair in ran.repairs]
    lines += [f"note: {note}" for note in ran.notes]
    if not model.outcome_.converged:
        lines.append(f"stopped early: {model.outcome_.reason} after {counted(model.outcome_.steps, 'iteration')}")
    return lines


def told(source: Any) -> list[str]:
    """What was read, and what was decided about the columns of a table; nothing for an array."""
    recipe = getattr(source, "recipe", None)
    if recipe is None:
        return []
    from foldwise.prepare.prepared import prepared_of

    prepared = prepared_of(source)
    assert prepared is not None
    rows = prepared.table.n_rows if prepared.condition is None else None
    known = ([] if rows is None else [counted(rows, "row")]) + [counted(len(recipe.columns), "column")]
    layout = f" ({prepared.table.layout})" if prepared.table.layout else ""
    notes = [f"note: {note}" for note in recipe.notes if note.topic not in _TOLD]
    return [f"{source.where}: {', '.join(known)}{layout}", *recipe.lines(), *notes]


def passes(ran: Manifest) -> str:
    """How often the data were read, and how long it took."""
    return f"{counted(ran.passes, 'pass', 'passes')}, {ran.seconds:.2f} s"


def left_out(columns: tuple[str, ...]) -> list[str]:
    """A line on columns that were not used."""
    return [f"left out (not numeric): {', '.join(columns)}"] if columns else []


def run_table(ran: Manifest, **more: str) -> Table:
    """The whole manifest, for a page."""
    entries = {name.replace("_", " "): value for name, value in ran.as_dict().items()} | more

    def written(value: Any) -> str:
        if isinstance(value, (tuple, list)):
            return ", ".join(map(str, value)) or "none"
        return f"{value:.2f}" if isinstance(value, float) else str(value)

    names, values = Column("", list(entries), left=True), Column("", list(entries.values()), written, left=True)
    return Table("What ran", [names, values], wide=True, only="page", collapsed=True)


def column_names(model: Any) -> list[str]:
    """The columns' names; of images, pixels by their places; or x0, x1, ..."""
    names, shape = getattr(model, "feature_names_in_", None), getattr(model, "image_shape_", None)
    if names is None and shape is not None:
        return pixel_names(shape)
    return list(names) if names is not None else [f"x{j}" for j in range(model.n_features_in_)]
