"""How many components: the votes of all rules, and the number they agree on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

import foldwise as fw
from foldwise.cli import main
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.models.pca import estimator
from foldwise.selection import components
from foldwise.selection.component_votes import spectral_vote

ROOT = Path(__file__).parents[2]
RULES = ("parallel", "held-out", "mle", "gavish-donoho", "broken-stick")


def factors(n: int = 300, d: int = 10, rank: int = 2, seed: int = 0, strength: float = 3.0) -> np.ndarray:
    """Rows of noise with variance 1 and `rank` strong components."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((d, max(rank, 1))))[0][:, :rank]
    return rng.standard_normal((n, rank)) * strength @ directions.T + rng.standard_normal((n, d))


def answers(choice: Any) -> dict[str, tuple[Any, ...]]:
    return {vote.rule: (vote.chosen, vote.low, vote.high) for vote in choice.votes}


def figures(choice: Any) -> list[Any]:
    return [
        (v.rule, v.chosen, v.low, v.high, v.reason, {k: a.tobytes() for k, a in v.figures.items()})
        for v in choice.votes
    ]


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planted_ranks_are_agreed_on(rank: int, dtype: Any) -> None:
    choice = fw.choose_components(factors(500, 12, rank).astype(dtype))
    assert choice.agreed == rank
    assert choice.strength > 0.5
    assert [vote.rule for vote in choice.votes] == [*RULES, "share 0.9"]
    assert f"{rank} component" in choice.sentence
    assert "out from noise" in choice.sentence


def test_noise_has_no_component() -> None:
    choice = fw.choose_components(np.random.default_rng(0).standard_normal((500, 10)))
    assert {rule: answer[0] for rule, answer in answers(choice).items()} == {**dict.fromkeys(RULES, 0), "share 0.9": 9}
    assert (choice.agreed, choice.strength, choice.runner_up) == (0, 1.0, None)
    assert choice.sentence == "No component stands out from noise: all 5 rules say 0."


def test_the_answers_are_those_of_pca() -> None:
    """One rule, one meaning; but PCA("mle"), as scikit-learn's, keeps at least one."""
    x = factors(200, 8, 2, strength=1.2)
    choice = fw.choose_components(x, rules=[*RULES, 0.7])
    for vote in choice.votes:
        rank = fw.PCA(0.7 if vote.rule == "share 0.7" else vote.rule).fit(x).rank_
        assert (vote.chosen, vote.low, vote.high) == (rank.chosen, rank.low, rank.high), vote.rule


def test_the_votes_are_counted_as_documented() -> None:
    """Parallel analysis twice, the share not at all unless nothing else was asked."""
    choice = fw.choose_components(factors(500, 12, 2))
    weights = {vote.rule: vote.weight for vote in choice.votes}
    assert weights == {**dict.fromkeys(RULES, 1.0), "parallel": 2.0, "share 0.9": 0.0}
    for_it = sum(vote.weight for vote in choice.votes if vote.chosen == choice.agreed)
    assert choice.strength == for_it / sum(weights.values())
    alone = fw.choose_components(factors(500, 12, 2), rules=0.5)
    assert alone.agreed == alone.votes[0].chosen == fw.PCA(0.5).fit(factors(500, 12, 2)).n_components_


def test_shown_as_a_table() -> None:
    choice = fw.choose_components(factors(500, 12, 2))
    lines = repr(choice).splitlines()
    assert lines[0].split() == ["rule", "components", "range", "reason"]
    assert lines[1].startswith("parallel ")
    assert lines[1].endswith("2 components vary more than unrelated columns would")
    assert lines[-1] == choice.sentence


# ---------------------------------------------------------------- same bits, weights, sources


def test_same_bits_for_threads_engines_and_files(tmp_path: Path) -> None:
    x = factors(3000, 30, 3, strength=0.8)
    np.save(tmp_path / "x.npy", x)
    wanted = figures(fw.choose_components(x, n_threads=1))
    assert figures(fw.choose_components(x, n_threads=7)) == wanted
    assert figures(fw.choose_components(tmp_path / "x.npy", n_threads=2)) == wanted
    assert figures(fw.choose_components(x, engine="serial")) == wanted
    assert figures(fw.choose_components(x, random_state=5)) == wanted


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), rank=st.integers(0, 3))
def test_weights_are_repetitions(seed: int, rank: int) -> None:
    x = factors(80, 6, rank, seed, strength=1.5)
    counts = np.random.default_rng(seed).integers(0, 4, len(x))
    weighted = fw.choose_components(x, sample_weight=counts)
    assert answers(weighted) == answers(fw.choose_components(np.repeat(x, counts, axis=0)))


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), size=st.sampled_from([1e-6, 1.0, 2.0**30]), offset=st.sampled_from([0.0, 1e8]))
def test_units_offsets_and_order_do_not_matter(seed: int, size: float, offset: float) -> None:
    x = factors(120, 7, 2, seed, strength=1.5)
    rng = np.random.default_rng(seed)
    rules = [rule for rule in RULES if rule != "held-out"]  # whose groups of rows depend on what is in them
    moved = (x[rng.permutation(len(x))][:, rng.permutation(7)] + offset) * size
    assert answers(fw.choose_components(moved, rules=rules)) == answers(fw.choose_components(x, rules=rules))
    assert fw.choose_components(moved).agreed == fw.choose_components(x).agreed


def test_scaled_columns_and_one_scaled_by_hand() -> None:
    x = factors(300, 8, 2) * np.logspace(-3, 3, 8)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    rules = [rule for rule in RULES if rule != "held-out"]
    assert answers(fw.choose_components(x, rules=rules, scale=True)) == answers(
        fw.choose_components(scaled, rules=rules)
    )


def test_sparse_rows() -> None:
    x = factors(300, 8, 2)
    choice, dense = fw.choose_components(sp.csr_matrix(x)), fw.choose_components(x)
    votes = answers(choice)
    assert votes.pop("held-out") == (None, None, None)
    assert votes == {rule: answer for rule, answer in answers(dense).items() if rule != "held-out"}
    assert "dense" in choice.votes[1].reason
    assert choice.agreed == 2


def test_missing_cells() -> None:
    x = factors(400, 8, 2)
    x[np.random.default_rng(1).random(x.shape) < 0.05] = np.nan
    with pytest.raises(DataError, match="missing"):
        fw.choose_components(x)
    choice = fw.choose_components(x, missing="model")
    assert choice.agreed == 2
    assert answers(choice)["held-out"][0] == fw.PCA("held-out", missing="model").fit(x).n_components_
    for policy in ("drop", "mean"):
        assert fw.choose_components(x, missing=policy).agreed == 2


def test_categories() -> None:
    """Indicators of a category take one dimension each; the rules know."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "c": rng.choice(list("xyz"), 200)})
    choice = fw.choose_components(fw.prepare(frame, categories="encode"))
    assert choice.agreed == 0


def test_where_all_directions_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "_MOST_DIRECTIONS", 50)
    monkeypatch.setattr(components, "_LEADING", 6)
    monkeypatch.setattr(components, "_MOST_FOR_CELLS", 50)
    x = factors(400, 80, 3)
    votes = {vote.rule: vote for vote in fw.choose_components(x).votes}
    assert votes["parallel"].chosen == fw.PCA("parallel").fit(x).n_components_ == 3
    assert votes["broken-stick"].chosen == fw.PCA("broken-stick").fit(x).n_components_
    for rule, why in {
        "mle": "too many",
        "gavish-donoho": "too many",
        "held-out": "50 columns",
        "share 0.9": "more than",
    }.items():
        assert votes[rule].chosen is None
        assert why in votes[rule].reason
    many = {vote.rule: vote for vote in fw.choose_components(factors(400, 80, 8)).votes}
    assert many["parallel"].chosen == 6
    assert many["parallel"].reason.endswith("no more were computed")


def test_fewer_rows_than_columns() -> None:
    choice = fw.choose_components(factors(60, 120, 2, strength=6.0))
    assert choice.agreed == 2
    assert {vote.rule for vote in choice.votes if vote.chosen is None} == {"mle"}


def test_rows_that_are_all_equal() -> None:
    choice = fw.choose_components(np.full((20, 3), 7.0))
    assert choice.agreed is None or choice.agreed == 0
    assert answers(choice)["parallel"] == (None, None, None)
    assert "equal" in choice.votes[0].reason


# ---------------------------------------------------------------- interruptions, bad input


def test_ctrl_c_keeps_the_rules_that_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    x = factors(300, 8, 2)
    whole = fw.choose_components(x)
    monkeypatch.setattr(estimator, "fit_observed", interrupt)
    with pytest.warns(NotFinishedWarning, match="5 of 6 rules"):
        choice = fw.choose_components(x)
    assert choice.interrupted
    assert choice.agreed == 2
    assert answers(choice) == {**answers(whole), "held-out": (None, None, None)}


def test_ctrl_c_between_two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(rule: Any, found: Any) -> Any:
        if rule == "mle":
            raise KeyboardInterrupt
        return spectral_vote(rule, found)

    monkeypatch.setattr(components, "spectral_vote", interrupted)
    with pytest.warns(NotFinishedWarning, match="1 of 6 rules"):
        choice = fw.choose_components(factors(300, 8, 2))
    assert [vote.chosen for vote in choice.votes] == [2, None, None, None, None, None]
    with pytest.raises(KeyboardInterrupt):
        fw.choose_components(factors(300, 8, 2), rules=["mle", "parallel"])


class Interrupting(BaseEstimator):  # type: ignore[misc]
    """An estimator during whose third fit Ctrl-C is pressed."""

    fits = 0

    def fit(self, X: Any, y: Any = None) -> Interrupting:
        Interrupting.fits += 1
        if Interrupting.fits == 3:
            raise KeyboardInterrupt
        return self

    def score(self, X: Any, y: Any = None) -> float:
        return 0.0


def test_ctrl_c_during_the_task() -> None:
    Interrupting.fits = 0
    with pytest.warns(NotFinishedWarning, match="6 of 7 rules"):
        choice = fw.choose_components(factors(300, 8, 2), estimator=Interrupting())
    assert choice.task is None
    assert answers(choice)["task"] == (None, None, None)
    assert choice.agreed == 2
    Interrupting.fits = 0
    with pytest.raises(KeyboardInterrupt):
        fw.choose_components(factors(300, 8, 2), estimator=Interrupting(), rules=[])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rules": ["parallel", "kaiser"]}, "give some of parallel, held-out"),
        ({"rules": [1.5]}, "share of variance"),
        ({"rules": 1}, r"rules=1: give some of parallel, held-out.* such as 0\.9, as a list"),
        ({"rules": True}, "rules=True: give some of"),
        ({"rules": object()}, "give some of"),
        ({"rules": [["parallel"]]}, "give some of"),
        ({"rules": []}, "nothing to ask"),
        ({"y": np.zeros(30)}, "estimator="),
        ({"estimator": Interrupting(), "sample_weight": np.ones(30)}, "without weights"),
        ({"estimator": Interrupting(), "missing": "drop"}, "'mean' or 'model'"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fw.choose_components(factors(30, 4, 1), **given)


def test_an_estimator_needs_rows_in_memory() -> None:
    with pytest.raises(ParameterError, match="in memory"):
        fw.choose_components("rows.csv", estimator=Interrupting(), rules=[])


@pytest.mark.parametrize(
    ("weight", "kept", "whole"), [(0.5, 3, False), (0.5, 6, True), (3.0, 7, False), (3.0, 10, True)]
)
def test_whether_a_model_has_kept_all_components(weight: float, kept: int, whole: bool) -> None:
    """Weights below one do not make rows fewer, and whole weights are repetitions."""
    x = np.random.default_rng(0).normal(size=(6, 10))
    choice = components.choice_of_model(fw.PCA(kept).fit(x, sample_weight=np.full(6, weight)))
    assert (choice is not None) == whole
    if weight == 3.0:
        again = components.choice_of_model(fw.PCA(kept).fit(np.repeat(x, 3, axis=0)))
        assert (again is not None) == whole
    everything = fw.choose_components(x, sample_weight=np.full(6, weight))
    assert "too many to compute" not in repr(everything)
    assert choice is None or "too many to compute" not in repr(choice)


# ---------------------------------------------------------------- the command line


def test_auto_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    model, page = tmp_path / "m.fw", tmp_path / "r.html"
    call = [
        "pca",
        str(ROOT / "examples" / "wine.csv"),
        "--scale",
        "-k",
        "auto",
        "--model",
        str(model),
        "--report",
        str(page),
    ]
    assert main(call) == 0
    choice = fw.choose_components(fw.scan(ROOT / "examples" / "wine.csv", columns="numeric"), scale=True)
    assert fw.load(model).n_components_ == choice.agreed == 3
    out = capsys.readouterr().out
    assert choice.sentence in out
    assert choice.sentence in page.read_text()
    for vote in choice.votes:
        assert vote.reason in out
        assert vote.rule in page.read_text()


def test_noise_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    rows = tmp_path / "noise.csv"
    np.savetxt(rows, np.random.default_rng(1).standard_normal((200, 5)), delimiter=",", header="a,b,c,d,e", comments="")
    assert main(["pca", str(rows), "-k", "auto"]) == 0
    assert "No component stands out from noise" in capsys.readouterr().out
    assert main(["pca", str(rows)]) == 0
    assert "No component stands out from noise" in capsys.readouterr().out
    for rule in ("auto", "parallel"):
        out, page = tmp_path / f"{rule}.csv", tmp_path / f"{rule}.html"
        assert main(["pca", str(rows), "-k", rule, "--out", str(out), "--report", str(page)]) == 2
        told = capsys.readouterr()
        assert "no component stands out from noise, so there are no scores to write" in told.err
        assert "(-k 1), or leave out --out" in told.err
        assert "column to write" not in told.err
        assert rule != "auto" or "No component stands out from noise" in told.out
        assert page.exists()
        assert not out.exists()


# ---------------------------------------------------------------- the score of a final task


def task_of(*given: Any, **options: Any) -> Any:
    return fw.choose_components(*given, rules=[], **options).task


def test_the_task_is_in_the_same_table(table: Any, labels: Any) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    x, y = table("iris"), labels("iris")
    choice = fw.choose_components(x, y, estimator=KNeighborsClassifier())
    alone = fw.choose_components(x)
    assert answers(choice) == {**answers(alone), "task": answers(choice)["task"]}
    assert choice.agreed == alone.agreed
    assert choice.votes[-1].chosen == choice.task.simplest
    assert choice.sentence.startswith(alone.sentence)
    assert f"The task needs {choice.task.simplest}" in choice.sentence
    only = fw.choose_components(x, y, estimator=KNeighborsClassifier(), rules=[])
    assert only.agreed == only.task.simplest == choice.task.simplest


def test_task_with_a_classifier(table: Any, labels: Any) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    x, y = table("iris"), labels("iris")
    choice = task_of(x, y, estimator=KNeighborsClassifier())
    assert choice.n_components == (1, 2, 3, 4)
    assert choice.mean[choice.best - 1] == choice.mean.max() > 0.94
    assert 1 <= choice.simplest <= choice.best
    assert choice.fold_scores.shape == (5, 4)
    assert choice.table.columns == ("mean score", "standard error")


def test_task_equals_a_pipeline_under_cross_validation(table: Any, labels: Any) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    x, y = table("iris"), labels("iris")
    choice = task_of(x, y, estimator=LogisticRegression(), n_components=[1, 3], scale=True)
    for place, k in enumerate(choice.n_components):
        expected = cross_val_score(make_pipeline(fw.PCA(k, scale=True), LogisticRegression()), x, y)
        np.testing.assert_allclose(choice.fold_scores[:, place], expected, rtol=1e-12)


def test_task_with_a_regressor(planted: Any) -> None:
    from sklearn.linear_model import LinearRegression

    x = planted([5, 4, 3, 1, 1, 1], 300)
    scores = fw.PCA().fit_transform(x)
    y = scores[:, 2] + 0.5 * np.random.default_rng(0).standard_normal(300)
    choice = task_of(x, y, estimator=LinearRegression(), scoring="r2")
    assert choice.simplest == 3  # the third direction is the one that tells
    assert choice.mean[1] < 0.1 < 0.9 < choice.mean[2]


def test_task_with_a_clustering() -> None:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [8, 0], [4, 7]]) @ np.eye(2, 6)
    x = np.repeat(centres, 60, axis=0) + rng.standard_normal((180, 6))
    x = x[rng.permutation(180)]

    def silhouette(model: Any, rows: np.ndarray, y: Any = None) -> float:
        return float(silhouette_score(rows, model.predict(rows)))

    choice = task_of(x, estimator=KMeans(3, n_init=3, random_state=0), scoring=silhouette, cv=4)
    assert choice.best == 2
    assert (choice.fold_scores <= 1).all()


def test_task_with_a_single_split(table: Any, labels: Any) -> None:
    from sklearn.model_selection import ShuffleSplit
    from sklearn.neighbors import KNeighborsClassifier

    cv = ShuffleSplit(1, test_size=0.3, random_state=0)
    choice = task_of(table("iris"), labels("iris"), estimator=KNeighborsClassifier(), cv=cv)
    assert choice.best in choice.n_components
    assert choice.simplest in choice.n_components


@pytest.mark.parametrize("numbers", [[], [0], [1, 9]])
def test_task_refuses_numbers_that_cannot_be(table: Any, labels: Any, numbers: list[int]) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(ParameterError, match="must lie between 1 and 4"):
        task_of(table("iris"), labels("iris"), estimator=KNeighborsClassifier(), n_components=numbers)
