"""A progress bar for long fits, drawn only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from foldwise.fold import events
from foldwise.fold.multistart import UNLIMITED

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
        figures, reading = "", True

        def turn(to_rows: bool) -> None:
            """Count rows, or steps if they read none: the time left is told by what is counted."""
            nonlocal reading
            if reading != to_rows:
                bar.reset(task)
                reading = to_rows

        read_since = False

        def listen(event: events.Event) -> None:
            nonlocal figures, read_since
            if isinstance(event, events.RowsRead):
                read_since = True
                turn(True)
                of = f" of {event.total:,}" if event.total else ""
                bar.update(
                    task,
                    description=f"pass {event.number_of_pass}{figures}",
                    completed=event.done,
                    total=event.total,
                    rows=f"{event.done:,}{of} rows",
                )
            else:
                names = [name for name in _SHOWN if name in event.figures] or list(event.figures)
                shown = ", ".join(f"{name} {event.figures[name]:.4g}" for name in names)
                figures = f", step {event.number} ({shown})"
                if not read_since:
                    turn(False)
                    total = event.max_iter if event.max_iter < UNLIMITED else None
                    of = f" of at most {total:,}" if total else ""
                    bar.update(
                        task, description=shown, completed=event.number, total=total, rows=f"{event.number:,}{of} steps"
                    )
                read_since = False

        with events.listening(listen):
            yield
