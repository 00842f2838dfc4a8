"""What the README shows is what happens."""

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

from foldwise.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_example_prints_what_is_shown(monkeypatch):
    monkeypatch.chdir(ROOT)
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == shown


def test_the_command_prints_what_is_shown(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    call, shown = re.search(r"```\n\$ foldwise (.*?) --report report.html\n(.*?)```", README, re.DOTALL).groups()
    assert main([*call.split(), "--report", str(tmp_path / "report.html")]) == 0
    printed = capsys.readouterr().out.replace(str(tmp_path / "report.html"), "report.html")
    seconds = re.compile(r"\d+\.\d\d s$", re.MULTILINE)  # the only thing that may differ
    assert seconds.sub("", printed) == seconds.sub("", shown)


@pytest.mark.skipif(sys.platform == "win32", reason="make")
def test_commands_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
