"""Pictures by matplotlib: what is in them, what they take, and what they refuse."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

import foldwise as fw  # noqa: E402
from foldwise.errors import DataError, MissingDependencyError, ParameterError  # noqa: E402
from foldwise.plot.axes import PALETTE  # noqa: E402

RNG = np.random.default_rng(1)
GROUP = np.repeat([0, 1, 2], 20)
ROWS = pd.DataFrame(
    RNG.normal(size=(60, 4)) + np.array([[0, 0, 0, 0], [6, 0, 3, 0], [0, 7, 3, 0]])[GROUP],
    columns=["height", "weight", "age", "income"],
)
PENGUINS = Path(__file__).parents[2] / "examples" / "penguins.csv"


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def pca() -> fw.PCA:
    return fw.PCA().fit(ROWS)


@pytest.fixture(scope="module")
def kmeans() -> fw.KMeans:
    return fw.KMeans(3, random_state=0).fit(ROWS)


@pytest.fixture(scope="module")
def ensemble() -> fw.ClusterEnsemble:
    return fw.ClusterEnsemble(3, n_base=5, random_state=0).fit(ROWS)


def words(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def drawn(ax: Any) -> None:
    ax.figure.canvas.draw()  # what is wrong with a picture shows when it is drawn
    assert ax.get_title(loc="left")


def test_scree(pca: fw.PCA) -> None:
    ax = fw.plot.scree(pca)
    drawn(ax)
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(pca.explained_variance_ratio_.tolist())
    line = max(ax.lines, key=lambda one: len(one.get_ydata()))
    assert line.get_ydata()[-1] == pytest.approx(1.0)
    assert ax.get_xlabel() == "component"


def test_scree_marks_what_a_rule_keeps() -> None:
    model = fw.PCA(0.6).fit(ROWS)
    assert model.n_components_ >= 1
    few = fw.PCA("parallel", scale=True).fit(ROWS)
    drawn(fw.plot.scree(few))


def test_axes_are_used_and_returned(pca: fw.PCA) -> None:
    figure, places = plt.subplots(1, 2)
    assert fw.plot.scree(pca, ax=places[0]) is places[0]
    assert fw.plot.scores(pca, ax=places[1]) is places[1]
    assert len(plt.get_fignums()) == 1
    figure.canvas.draw()


def test_scores_are_those_of_the_model(pca: fw.PCA) -> None:
    ax = fw.plot.scores(pca, components=(1, 2))
    drawn(ax)
    wanted = pca.transform(ROWS)[:, [1, 2]]
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_offsets()), wanted)
    assert ax.get_aspect() == 1.0
    assert ax.get_xlabel().startswith("pca1 (")
    assert ax.get_title(loc="left") == "60 rows"


def test_colours_by_group_name_and_number(pca: fw.PCA) -> None:
    ax = fw.plot.scores(pca, color=GROUP)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    assert len(ax.collections) == 3
    assert [matplotlib.colors.to_hex(one.get_facecolor()[0]) for one in ax.collections] == list(PALETTE[:3])
    names = np.array(["a", "b$", None])[GROUP]
    ax = fw.plot.scores(pca, color=names)
    drawn(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", r"b\$", "missing"]
    ax = fw.plot.scores(pca, ROWS, color="income")
    drawn(ax)
    assert ax.get_legend() is None
    np.testing.assert_allclose(np.asarray(ax.collections[-1].get_array()), ROWS["income"])


def test_colours_that_do_not_fit(pca: fw.PCA) -> None:
    with pytest.raises(ParameterError, match=r"color has the shape \(3,\), but there are 60 rows"):
        fw.plot.scores(pca, color=[1, 2, 3])
    with pytest.raises(ParameterError, match="X has no such column"):
        fw.plot.scores(pca, ROWS, color="nobody")
    with pytest.raises(ParameterError, match=r"components=\(0, 9\): give two numbers from 0 to 3"):
        fw.plot.scores(pca, components=(0, 9))


def test_many_rows_are_sampled_and_that_is_said() -> None:
    rows = np.random.default_rng(0).normal(size=(30_000, 3))
    ax = fw.plot.scores(fw.PCA(2).fit(rows), rows)
    assert ax.get_title(loc="left") == "20,000 of 30,000 rows, drawn at random"
    assert len(ax.collections[0].get_offsets()) == 20_000
    assert ax.collections[0].get_rasterized()


def test_scores_of_a_model_of_clusters(kmeans: fw.KMeans) -> None:
    ax = fw.plot.scores(kmeans)
    drawn(ax)
    assert [len(one.get_offsets()) for one in ax.collections] == np.bincount(kmeans.labels_).tolist()
    drawn(fw.plot.scores(fw.GaussianMixture(3, random_state=0).fit(ROWS)))


def test_rows_that_are_gone() -> None:
    model = fw.PCA(2).fit(ROWS.to_numpy().copy())
    with pytest.raises(DataError, match="not in memory any more"):
        fw.plot.scores(model)
    drawn(fw.plot.scores(model, ROWS.to_numpy()))


@pytest.mark.parametrize("name", ["iris", "wine", "decathlon", "alike"])
def test_names_in_a_biplot_do_not_overlap(name: str, shared_data: Path) -> None:
    if name == "alike":  # columns that all point the same way
        one = np.random.default_rng(0).normal(size=(50, 1))
        table = pd.DataFrame(one + 0.05 * np.random.default_rng(1).normal(size=(50, 9)))
        table.columns = [f"a rather long name {j}" for j in range(9)]
    else:
        table = pd.read_csv(shared_data / "tables" / f"{name}.csv").select_dtypes("number")
    ax = fw.plot.biplot(fw.PCA(scale=True).fit(table))
    drawn(ax)
    names = [text for text in ax.texts if text.get_text()]
    assert len(names) == min(12, table.shape[1])
    boxes = [text.get_window_extent() for text in names]
    for i, first in enumerate(boxes):
        for second in boxes[:i]:
            assert not first.overlaps(second)
    assert ax.get_aspect() == 1.0


def test_loadings(pca: fw.PCA) -> None:
    ax = fw.plot.loadings(pca, components=[0, 1])
    drawn(ax)
    np.testing.assert_allclose(ax.images[0].get_array(), np.asarray(pca.loadings_)[:, :2])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(ROWS.columns)
    assert f"{np.asarray(pca.loadings_)[0, 0]:.2f}" in words(ax)
    wide = fw.PCA(2).fit(np.random.default_rng(0).normal(size=(20, 100)))
    ax = fw.plot.loadings(wide)
    assert "40 of 100 columns" in ax.get_title(loc="left")


def test_kvotes() -> None:
    choice = fw.choose_clusters(ROWS, 4, random_state=0)
    ax = fw.plot.kvotes(choice)
    drawn(ax)
    wide = sum(bar.get_width() for bar in ax.patches)
    assert wide == pytest.approx(sum(vote.weight for vote in choice.votes if vote.counts))
    assert ax.get_title(loc="left") == "Votes: 3 clusters"
    ax = fw.plot.kvotes(fw.choose_components(ROWS))
    assert "component" in ax.get_title(loc="left")


def test_silhouette(kmeans: fw.KMeans) -> None:
    ax = fw.plot.silhouette(kmeans)
    drawn(ax)
    mean = fw.silhouette(ROWS, kmeans).mean
    assert ax.get_title(loc="left") == f"Silhouettes (mean {mean:.2f})"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0 (20)", "1 (20)", "2 (20)"]
    names = np.array(["north", "south", "west"])[GROUP]
    ax = fw.plot.silhouette(names, ROWS)
    assert "north (20)" in [tick.get_text() for tick in ax.get_yticklabels()]
    with pytest.raises(ParameterError, match="need the rows"):
        fw.plot.silhouette(GROUP)


def test_consensus(ensemble: fw.ClusterEnsemble) -> None:
    ax = fw.plot.consensus(ensemble)
    drawn(ax)
    shown = np.asarray(ax.images[0].get_array())
    whole = ensemble.coassociation_.toarray()
    np.testing.assert_allclose(np.sort(shown.ravel()), np.sort(whole.ravel()))
    assert np.diag(shown) == pytest.approx(1.0)
    assert {"0", "1", "2"} <= set(words(ax))
    drawn(fw.plot.consensus(fw.coassociation(np.column_stack([GROUP, GROUP]))))


def test_trace(kmeans: fw.KMeans) -> None:
    mixture = fw.GaussianMixture(3, random_state=0).fit(ROWS)
    ax = fw.plot.trace(mixture)
    drawn(ax)
    assert ax.lines[-1].get_ydata()[-1] == pytest.approx(mixture.lower_bound_)
    drawn(fw.plot.trace(kmeans))
    drawn(fw.plot.trace(fw.SoftKMeans(3, random_state=0).fit(ROWS)))
    with pytest.raises(ParameterError, match="found in one step"):
        fw.plot.trace(fw.PCA(2).fit(ROWS))


def test_profiles(kmeans: fw.KMeans) -> None:
    ax = fw.plot.profiles(kmeans)
    drawn(ax)
    means = ROWS.groupby(kmeans.labels_).mean()
    wanted = ((means - ROWS.mean()) / ROWS.std(ddof=0)).to_numpy().T
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array()), wanted)
    drawn(fw.plot.profiles(fw.GaussianMixture(3, random_state=0).fit(ROWS)))
    drawn(fw.plot.profiles(fw.KernelKMeans(3, random_state=0).fit(ROWS)))


def test_distribution() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=500)
    ax = fw.plot.distribution(fw.fit_distribution(values))
    drawn(ax)
    edges = ax.patches[0].get_data().edges
    inside = np.mean((values >= edges[0]) & (values <= edges[-1]))
    assert (ax.patches[0].get_data().values * np.diff(edges)).sum() == pytest.approx(inside, abs=0.02)
    assert "gamma" in [text.get_text() for text in ax.get_legend().get_texts()]
    counts = np.random.default_rng(0).poisson(3.0, size=300)
    ax = fw.plot.distribution(fw.fit_distribution(counts.astype(float), "poisson"))
    drawn(ax)
    assert ax.get_ylabel() == "probability"


FUNCTIONS = ["biplot", "consensus", "distribution", "kvotes", "loadings", "profiles", "scores", "scree", "trace"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_taken_is_told(name: str) -> None:
    with pytest.raises(ParameterError, match=rf"fw\.plot\.{name} takes .*, not dict"):
        getattr(fw.plot, name)({})


@pytest.mark.parametrize("name", [*FUNCTIONS, "silhouette"])
def test_without_matplotlib(
    name: str, monkeypatch: pytest.MonkeyPatch, pca: fw.PCA, ensemble: fw.ClusterEnsemble
) -> None:
    things: dict[str, Any] = {
        "consensus": ensemble,
        "distribution": fw.fit_distribution(ROWS["height"], "normal"),
        "kvotes": fw.choose_components(ROWS),
        "profiles": ensemble,
        "silhouette": ensemble,
        "trace": fw.SoftKMeans(3, random_state=0).fit(ROWS),
    }
    real = builtins.__import__

    def refuse(module: str, *arguments: Any, **named: Any) -> Any:
        if module.split(".")[0] == "matplotlib":
            raise ImportError(module)
        return real(module, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install 'foldwise\[plot\]'"):
        getattr(fw.plot, name)(things.get(name, pca))


def test_importing_the_package_does_not_import_matplotlib() -> None:
    import subprocess

    code = "import sys, foldwise as fw; fw.plot.scree; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_explore_found() -> None:
    from importlib import util

    spec = util.spec_from_file_location("explorations", Path(__file__).parents[1] / "report" / "explorations.py")
    assert spec is not None
    assert spec.loader is not None
    helper = util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    found = dataclasses.replace(helper.blobs(3), settings={})
    for name in ("scree", "scores", "biplot", "loadings", "kvotes", "silhouette", "profiles", "trace"):
        drawn(getattr(fw.plot, name)(found))
        plt.close("all")
    ax = fw.plot.scores(found)
    assert ax.get_legend().get_title().get_text() == "cluster"
    if found.ensemble is None:
        with pytest.raises(ParameterError, match="this exploration has no ensemble"):
            fw.plot.consensus(found)


def test_rows_without_any_value_are_no_sample():
    rows = np.random.default_rng(0).standard_normal((80, 3))
    rows[:2] = np.nan
    found = fw.explore(rows, missing="model", max_clusters=3)
    title = fw.plot.scores(found).get_title(loc="left")
    assert title == "78 rows; 2 without any value left out"


def test_positive_is_blue_and_negative_orange_as_on_pages():
    x = np.random.default_rng(0).standard_normal((50, 1)) * [[1.0, -1.0]]
    image = fw.plot.loadings(fw.PCA(1).fit(x)).images[0]
    positive, negative = image.cmap(image.norm(1.0)), image.cmap(image.norm(-1.0))
    assert positive[2] > positive[0]
    assert negative[0] > negative[2]
