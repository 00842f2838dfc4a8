"""A progress bar for long fits, drawn only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from foldwise.fold import events
from foldwise.fold.multistart import UNLIMITED

_COUNTS = ("subsets", "of_subsets")  # told beside the bar
_SHOWN = ("inertia", "moved", "lower_bound", "held_out_error")  # the figures that matter, where a step has many


@contextmanager
def progress() -> Iterator[None]:
    """Show how far each fit inside the block has come; nothing is drawn where standard error is not a terminal.

    >>> import foldwise as fw
    >>> with fw.progress():
    ...     pca = fw.PCA().fit([[0.0, 1.0], [2.0, 3.0]])
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=5,
    )
    with bar:
        task = bar.add_task("reading", total=None, rows="")
        figures, counted, read_since, stage = "", "rows", False, ""

        def count(what: str) -> None:
            """Count rows or, where steps read none, steps or what they are made of; the time left is told by these."""
            nonlocal task, counted
            if counted != what:
                bar.remove_task(task)
                task, counted = bar.add_task("", total=None, rows=""), what

        def listen(event: events.Event) -> None:
            nonlocal figures, read_since, stage
            if isinstance(event, events.Stage):
                stage, figures, read_since = f"{event.number} of {event.of}: {event.name}", "", False
                count(stage)
                bar.update(task, description=stage)
                return
            if isinstance(event, events.RowsRead):
                read_since = True
                count("rows")
                of = f" of {event.total:,}" if event.total else ""
                bar.update(
                    task,
                    description=f"{stage}{', ' if stage else ''}pass {event.number_of_pass}{figures}",
                    completed=event.done,
                    total=event.total,
                    rows=f"{event.done:,}{of} rows",
                )
                return
            own = event.figures
            names = [name for name in _SHOWN if name in own] or [name for name in own if name not in _COUNTS]
            shown = ", ".join(f"{name} {own[name]:.4g}" for name in names)
            figures = f", step {event.number} ({shown})"
            if not read_since:
                what, done, total = "steps", event.number, event.max_iter
                if "of_subsets" in own:
                    what, done, total = "subsets", int(own["subsets"]), int(own["of_subsets"])
                count(what)
                of = f" of {total:,}" if total < UNLIMITED else ""
                known = total if total < UNLIMITED else None
                told = ", ".join(filter(None, (stage, shown)))
                bar.update(task, description=told, completed=done, total=known, rows=f"{done:,}{of} {what}")
            read_since = False

        with events.listening(listen):
            yield
