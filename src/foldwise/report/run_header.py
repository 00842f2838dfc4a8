"""What ran, in a few lines: the head of every summary."""

from __future__ import annotations

from typing import Any

from foldwise.fold.manifest import Manifest


def header(model: Any, work: str) -> str:
    """One line on the data, one on the work done, and what was left out, repaired or cut short."""
    ran = model.manifest_
    lines = [
        f"{ran.source}: {counted(ran.rows, 'row')}, {counted(ran.columns, 'column')} ({ran.dtype})",
        f"{'scaled columns, ' if model.scale_ is not None else ''}{work}, {counted(ran.passes, 'pass', 'passes')}, "
        f"{ran.seconds:.2f} s",
    ]
    if ran.left_out:
        lines.append(f"left out, not numbers: {', '.join(ran.left_out)}")
    if ran.resumed_at:
        lines.append(f"went on from a checkpoint at step {ran.resumed_at}")
    lines += [f"repaired: {repair}" for repair in ran.repairs]
    if not model.outcome_.converged:
        lines.append(f"stopped early: {model.outcome_.reason} after {model.outcome_.steps} steps")
    return "\n".join(lines)


def manifest_lines(manifest: Manifest) -> dict[str, str]:
    """The manifest for a page, in words."""

    def said(name: str, value: Any) -> str:
        if isinstance(value, (tuple, list)):
            return ", ".join(str(one) for one in value) or "none"
        return f"{value:.2f}" if name == "seconds" else str(value)

    return {name: said(name, value) for name, value in manifest.as_dict().items()}


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "pass", "passes"), counted(1200, "row")
    ('1 pass', '1,200 rows')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def column_names(model: Any) -> list[str]:
    """The columns' names, or x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return list(names) if names is not None else [f"x{j}" for j in range(model.n_features_in_)]
