"""How far long fits have come: a bar on a terminal, a line in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from html import escape
from threading import Lock
from typing import Any, TypeAlias

from foldwise.fold import events
from foldwise.fold.multistart import UNLIMITED

_COUNTS = ("subsets", "of_subsets")  # told beside the bar
_SHOWN = ("inertia", "moved", "lower_bound", "held_out_error")  # the figures that matter, where a step has many
_SOON, _OFTEN = 0.4, 0.2  # seconds until a notebook shows anything, and between two changes
_drawing = Lock()  # held while something is drawn: blocks inside of it draw nothing of their own


@contextmanager
def progress() -> Iterator[None]:
    """Show how far each fit inside the block has come, on a terminal and in a notebook; elsewhere nothing is drawn.

    >>> import foldwise as fw
    >>> with fw.progress():
    ...     pca = fw.PCA().fit([[0.0, 1.0], [2.0, 3.0]])
    """
    draw = _in_notebook if is_notebook() else _on_terminal if sys.stderr.isatty() else None
    if draw is None or not _drawing.acquire(blocking=False):
        yield
        return
    try:
        with draw() as show, events.listening(_Listener(show)):
            yield
    finally:
        _drawing.release()


def is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter, which is not asked if nobody has imported IPython."""
    python = sys.modules.get("IPython")
    shell = None if python is None else getattr(python, "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@dataclass(frozen=True)
class Line:
    """What is shown at a moment: what is done, how much of it (`total` None: not known), and what is counted."""

    words: str
    done: int = 0
    total: int | None = None
    unit: str = ""  # rows, steps, subsets; "" if nothing is counted yet

    @property
    def counted(self) -> str:
        """As in "20 of 100 rows"."""
        of = f" of {self.total:,}" if self.total else ""
        return f"{self.done:,}{of} {self.unit}" if self.unit else ""


Show: TypeAlias = Callable[[Line], None]


class _Listener:
    """Puts events into lines. Within a named stage, the name is told and not the figures of each model that it fits."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._stage, self._figures, self._read_since = "", "", False

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.Stage):
            self._stage, self._figures = f"{event.number} of {event.of}: {event.name}", ""
            self._read_since = False
            self._show(Line(self._stage))
        elif isinstance(event, events.RowsRead):
            self._read_since = True
            words = self._stage or f"pass {event.number_of_pass}{self._figures}"
            self._show(Line(words, event.done, event.total, "rows"))
        else:
            self._step(event)

    def _step(self, event: events.StepDone) -> None:
        own = event.figures
        names = [name for name in _SHOWN if name in own] or [name for name in own if name not in _COUNTS]
        shown = ", ".join(f"{name} {own[name]:.4g}" for name in names)
        self._figures = f", step {event.number} ({shown})"
        if not self._read_since:  # where steps read no rows, the time left is told by steps or what they are made of
            unit, done, total = "steps", event.number, event.max_iter
            if "of_subsets" in own:
                unit, done, total = "subsets", int(own["subsets"]), int(own["of_subsets"])
            self._show(Line(self._stage or shown, done, total if total < UNLIMITED else None, unit))
        self._read_since = False


# ---------------------------------------------------------------- terminal


@contextmanager
def _on_terminal() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=5,
    )
    with bar:
        task, unit = bar.add_task("reading", total=None, counted=""), ""

        def show(line: Line) -> None:
            nonlocal task, unit
            if unit != line.unit:  # another thing is counted: its time begins now
                bar.remove_task(task)
                task, unit = bar.add_task("", total=None, counted=""), line.unit
            bar.update(task, description=line.words, completed=line.done, total=line.total, counted=line.counted)

        yield show


# ---------------------------------------------------------------- notebook


class _NotebookLine(AbstractContextManager[Show]):
    """One line that changes in place and is empty in the end; what takes no time shows nothing at all."""

    def __init__(self) -> None:
        self._began = self._changed = time.monotonic()
        self._unit, self._unit_began, self._last_done = "", self._began, 0
        self._handle: Any = None

    def __enter__(self) -> Show:
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _show(self, line: Line) -> None:
        now = time.monotonic()
        if line.unit != self._unit or line.done < self._last_done:
            self._unit, self._unit_began = line.unit, now
        self._last_done = line.done
        if now - self._began < _SOON or now - self._changed < _OFTEN:
            return
        self._changed = now
        shown = self._written(line, now)
        if self._handle is None:
            from IPython.display import display

            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def _written(self, line: Line, now: float) -> dict[str, str]:
        parts = [line.counted, _duration(now - self._began)]
        if line.total and 0 < line.done <= line.total:
            left = (now - self._unit_began) / line.done * (line.total - line.done)
            parts.append(f"{_duration(left)} left")
        told = " · ".join(filter(None, parts))
        much = f' value="{line.done}" max="{line.total}"' if line.total else ""
        bar = f'<progress style="vertical-align:middle;width:12em"{much}></progress>'
        return {
            "text/plain": f"{line.words} · {told}",
            "text/html": f'<div style="font-variant-numeric:tabular-nums">{bar} {escape(line.words)} · {escape(told)}</div>',
        }


_in_notebook = _NotebookLine


def _duration(seconds: float) -> str:
    """As in "12 s" and "3:05 min".

    >>> _duration(12.4), _duration(185.0)
    ('12 s', '3:05 min')
    """
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"
