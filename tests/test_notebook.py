"""The example notebook runs from top to bottom in a kernel of this interpreter, and shows what it should."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNEL = "foldwise-test"

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run_in(folder: Path) -> Any:
    """The notebook after it ran in a folder."""
    shutil.copy(EXAMPLES / "penguins.csv", folder)
    kernels = folder / "jupyter" / "kernels" / KERNEL
    kernels.mkdir(parents=True)
    argv = [sys.executable, "-W", "error::UserWarning:__main__", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    told = {"argv": argv, "display_name": KERNEL, "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(told))
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("MPLCONFIGDIR", str(folder / "matplotlib"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        client = nbclient.NotebookClient(
            notebook, timeout=120, kernel_name=KERNEL, resources={"metadata": {"path": str(folder)}}
        )
        client.execute()
    return notebook


def outputs(notebook: Any, source: str) -> list[Any]:
    """What the cell that contains `source` shows."""
    cell = next(cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source)
    return list(cell.outputs)


def test_the_notebook_runs_and_shows_everything(tmp_path: Path) -> None:
    """One test, since the notebook takes its time."""
    notebook = run_in(tmp_path)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.text
    for source in ("fw.PCA(", "choose_clusters(", "fw.KMeans(", "fw.explore("):
        found = [one for one in outputs(notebook, source) if one.output_type == "execute_result"]
        assert len(found) == 1
        assert "foldwise-brief" in found[0].data["text/html"]
        assert found[0].data["text/plain"]
    for name in ("scree", "biplot", "kvotes", "profiles", "silhouette", "scores"):
        assert any("image/png" in one.get("data", {}) for one in outputs(notebook, f"fw.plot.{name}("))
    for source in ("fw.KMeans(", "fw.explore("):  # progress leaves nothing behind
        left = [one for one in outputs(notebook, source) if one.output_type == "display_data"]
        assert all(one.data.get("text/html", "") == "" for one in left)
    for name in ("penguins_clusters.html", "penguins_report.html"):
        page = (tmp_path / name).read_text()
        assert page.lstrip().startswith("<!doctype html>")
        assert "bill_length_mm" in page


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
