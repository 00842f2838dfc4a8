"""`import foldwise` and `foldwise --help` stay light: what they import, and how long it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HEAVY = {"sklearn", "duckdb", "matplotlib", "torch", "scipy", "pandas"}

IMPORT = """
import json, sys, time
began = time.process_time()
import foldwise
seconds = time.process_time() - began
print(json.dumps([seconds, sorted({name.partition(".")[0] for name in sys.modules})]))
"""

HELP = """
import contextlib, io, json, sys, time
out = io.StringIO()
sys.argv = ["foldwise", "--help"]
with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
    from foldwise.cli import main
    main()
seconds = time.process_time()  # since the interpreter started; processor time, for other work on the machine does not count
print(json.dumps([seconds, sorted({name.partition(".")[0] for name in sys.modules}), out.getvalue()]))
"""


def run(code: str) -> list:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_import_is_light() -> None:
    runs = [run(IMPORT) for _ in range(5)]
    best = min(seconds for seconds, _ in runs)
    print(f"import foldwise: {best * 1000:.1f} ms")
    assert not HEAVY & set(runs[0][1])
    assert best < 0.15


def test_help_is_light() -> None:
    runs = [run(HELP) for _ in range(5)]
    best = min(seconds for seconds, _, _ in runs)
    print(f"foldwise --help: {best * 1000:.1f} ms")
    assert not {"sklearn", "duckdb", "matplotlib", "torch"} & set(runs[0][1])
    assert "pca" in runs[0][2]
    assert best < 0.4


def test_every_public_name_is_there() -> None:
    import foldwise

    for name in foldwise.__all__:
        assert getattr(foldwise, name) is not None
    assert set(dir(foldwise)) == set(foldwise.__all__)
    assert "PCA" in foldwise.__all__
    with pytest.raises(AttributeError, match="no attribute 'KMeens'"):
        _ = foldwise.KMeens


@pytest.mark.parametrize("first", ["fw.PCA", "fw.fold", "import foldwise.fold.passes", "fw.engine", "pass"])
def test_fold_can_be_called_whatever_was_imported_before(first: str) -> None:
    """The function used to be shadowed by the package of the same name as soon as a model was touched."""
    code = f"""
import json
import foldwise as fw
{first}
from foldwise.stats.column_moments import ColumnMoments
import foldwise.fold
mean = fw.fold(fw.scan([[1.0, 2.0], [3.0, 6.0]]), ColumnMoments.of).mean
print(json.dumps([mean.tolist(), fw.fold is foldwise.fold, foldwise.fold.__name__]))
"""
    assert run(code) == [[2.0, 4.0], True, "foldwise.fold"]
