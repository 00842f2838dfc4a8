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


EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"```\n\$ foldwise (.*?)\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("code", "shown"), EXAMPLES)
def test_the_python_examples_print_what_is_shown(code, shown, monkeypatch, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # some examples write files
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == shown


@pytest.mark.parametrize(("call", "shown"), COMMANDS)
def test_the_commands_print_what_is_shown(call, shown, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    arguments = [str(tmp_path / word) if word.endswith(".html") else word for word in call.split()]
    assert main(arguments) == 0
    printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
    seconds = re.compile(r"\d+\.\d\d s$", re.MULTILINE)  # the only thing that may differ
    assert seconds.sub("", printed) == seconds.sub("", shown)


def test_there_are_examples_of_both_kinds():
    assert len(EXAMPLES) >= 2
    assert len(COMMANDS) >= 2


@pytest.mark.skipif(sys.platform == "win32", reason="make")
def test_commands_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
