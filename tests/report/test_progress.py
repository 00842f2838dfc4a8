"""Progress: a bar on terminals, one line in notebooks, nothing elsewhere."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import foldwise as fw
from foldwise.fold import events
from foldwise.report import progress as module


class Display:
    """Stands for Jupyter's display: keeps what was shown, in order, by handle."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def __call__(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Display:
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data)


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Display:
    """As in a kernel of Jupyter, where nothing is too quick to be shown."""
    found = Display()
    python, shows = ModuleType("IPython"), ModuleType("IPython.display")
    python.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    shows.display = found  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    monkeypatch.setattr(module, "_SOON", 0.0)
    monkeypatch.setattr(module, "_OFTEN", 0.0)
    return found


def test_a_line_in_a_notebook_that_is_empty_in_the_end(display: Display) -> None:
    with fw.progress():
        events.emit(events.RowsRead(20, 100, 1))
        events.emit(events.StepDone(1, 300, {"inertia": 12.5}))
        events.emit(events.RowsRead(50, 100, 2))
        assert len(display.shown) == 2
        assert "50 of 100 rows" in display.shown[-1]["text/plain"]
        assert "pass 2, step 1 (inertia 12.5)" in display.shown[-1]["text/html"]
        assert (
            '<progress style="vertical-align:middle;width:12em" value="50" max="100">' in display.shown[-1]["text/html"]
        )
    assert display.shown[-1] == {"text/plain": "", "text/html": ""}


def test_stages_are_named_and_escaped(display: Display) -> None:
    with fw.progress():
        events.emit(events.Stage("reading <b>", 1, 4))
        events.emit(events.RowsRead(5, None, 1))
        events.emit(events.StepDone(1, 300, {"lower_bound": -3.5}))
        events.emit(events.RowsRead(6, None, 2))
    assert "1 of 4: reading &lt;b&gt; · 6 rows" in display.shown[-2]["text/html"]
    assert not any("lower_bound" in one["text/plain"] for one in display.shown)


def test_what_takes_no_time_shows_nothing(display: Display, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SOON", 60.0)
    with fw.progress():
        fw.KMeans(2, random_state=0).fit([[0.0], [1.0], [9.0]])
    assert display.shown == []


def test_blocks_inside_each_other_draw_once(display: Display) -> None:
    with fw.progress():
        with fw.progress():
            events.emit(events.RowsRead(5, 10, 1))
        assert len(display.shown) == 1
    assert len(display.shown) == 2
    with fw.progress():  # and again afterwards
        events.emit(events.RowsRead(5, 10, 1))
    assert len(display.shown) == 4


def test_after_an_error_it_is_cleared_and_can_be_drawn_again(display: Display) -> None:
    def fail() -> None:
        with fw.progress():
            events.emit(events.RowsRead(5, 10, 1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert display.shown[-1]["text/html"] == ""
    with fw.progress():
        events.emit(events.RowsRead(5, 10, 1))
    assert len(display.shown) == 4


def test_nothing_is_drawn_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with fw.progress():
        fw.KMeans(2, random_state=0).fit([[0.0], [1.0], [9.0]])
    assert capsys.readouterr() == ("", "")


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    python = ModuleType("IPython")
    python.get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    assert not module.is_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not module.is_notebook()


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal: Any = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(module, "is_notebook", lambda: False)
    monkeypatch.setattr(sys, "stderr", terminal)
    with fw.progress():
        events.emit(events.RowsRead(20, 100, 3))
        events.emit(events.StepDone(1, 300, {"inertia": 12.5}))
        events.emit(events.StepDone(2, 300, {"inertia": 11.5}))
    written = terminal.getvalue()
    assert "2 of 300 steps" in written
    assert "inertia 11.5" in written
