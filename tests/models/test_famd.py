"""PCA and k-means of rows with categories: the geometry of FAMD and MCA."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.errors import DataError, ParameterError
from foldwise.prepare.encode import decode, encode, expanded, find_levels

NAN = float("nan")
SOLVERS = ("covariance_eigh", "full", "krylov", "power")


def mixed(n: int = 60, seed: int = 0) -> dict[str, Any]:
    """Two numbers and three categories that have to do with each other."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(n)
    return {
        "size": hidden + 0.5 * rng.standard_normal(n),
        "pet": np.array(["cat", "dog", "emu"], dtype=object)[np.digitize(hidden + rng.standard_normal(n), [-0.5, 1.0])],
        "age": 50 + 9 * rng.standard_normal(n),
        "sex": np.array(["f", "m"], dtype=object)[rng.integers(2, size=n)],
        "home": np.array(["farm", "flat", "house", "tent"], dtype=object)[rng.integers(4, size=n)],
    }


def whole(columns: dict[str, Any], **given: Any) -> Any:
    return encode(columns, fewest=0, rare=0.0, **given)


def by_definition(columns: dict[str, Any], weights: Any = None) -> np.ndarray:
    """The rows of FAMD from its definition, centred."""
    parts = []
    w = np.ones(len(next(iter(columns.values())))) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    for column in columns.values():
        values = np.asarray(column)
        if values.dtype.kind == "f":
            away = values - w @ values
            parts.append(away[:, None] / np.sqrt(w @ away**2))
        else:
            for level in sorted(set(values)):
                one = (values == level).astype(float)
                parts.append(((one - w @ one) / np.sqrt(w @ one))[:, None])
    return np.hstack(parts)


def taken(columns: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: np.asarray(values)[which] for name, values in columns.items()}


def same_up_to_sign(found: Any, expected: Any, **within: float) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, **within)


@pytest.fixture(scope="module")
def reference(shared_data: Path) -> dict[str, Any]:
    return json.loads((shared_data / "messy" / "worked" / "famd_penguins.json").read_text())["result"]


@pytest.fixture(scope="module")
def penguins(shared_data: Path) -> Any:
    with (shared_data / "messy" / "worked" / "penguins_complete.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    words = ("species", "island", "sex")
    return encode(
        {name: np.array([row[name] if name in words else float(row[name]) for row in table]) for name in table[0]}
    )


@pytest.fixture(scope="module")
def model(penguins: Any) -> fw.PCA:
    return fw.PCA().fit(penguins)


class TestPublishedFigures:
    """FactoMineR's FAMD of the penguins (see the README of the worked cases)."""

    @staticmethod
    def _of(matrix: Any, wanted: dict[str, Any]) -> np.ndarray:
        """The rows of a labelled matrix by the names of the reference, which has levels without their variables."""
        by_name = {str(name).rpartition("=")[2]: row for name, row in zip(matrix.rows, matrix.values, strict=True)}
        return np.array([by_name[name][:5] for name in wanted["rows"]])

    def test_eigenvalues(self, model: fw.PCA, reference: dict[str, Any]) -> None:
        expected = np.array(reference["eig"]["values"])
        np.testing.assert_allclose(model.explained_variance_, expected[:, 0], rtol=0, atol=1e-10)
        np.testing.assert_allclose(100 * model.explained_variance_ratio_, expected[:, 1], rtol=0, atol=1e-9)

    def test_coordinates(self, model: fw.PCA, penguins: Any, reference: dict[str, Any]) -> None:
        for found, name in ((model.correlations(), "quanti_coord"), (model.category_coordinates(), "category_coord")):
            same_up_to_sign(self._of(found, reference[name]), reference[name]["values"], rtol=0, atol=1e-8)
        same_up_to_sign(model.transform(penguins)[:, :5], reference["ind_coord"]["values"], rtol=0, atol=1e-8)

    def test_variables_and_contributions(self, model: fw.PCA, reference: dict[str, Any]) -> None:
        found = self._of(model.variables(), reference["var_coord"])
        np.testing.assert_allclose(found, reference["var_coord"]["values"], rtol=0, atol=1e-8)
        for name in ("quanti_contrib", "category_contrib"):
            found = 100 * self._of(model.contributions(), reference[name])
            np.testing.assert_allclose(found, reference[name]["values"], rtol=0, atol=1e-8)


class TestByHand:
    def test_a_number_and_two_levels_have_one_plus_and_minus_their_correlation(self) -> None:
        # The number is 1, 2, 3, 6 and the level b is in the last two rows: r = 1.5 / sqrt(3.5).
        pca = fw.PCA().fit(whole({"x": np.array([1.0, 2.0, 3.0, 6.0]), "y": ["a", "a", "b", "b"]}))
        r = 1.5 / np.sqrt(3.5)
        np.testing.assert_allclose(pca.explained_variance_, [1 + r, 1 - r], rtol=1e-14)
        assert pca.n_components_ == 2
        np.testing.assert_allclose(pca.scale_, np.sqrt([3.5, 0.5, 0.5]))
        np.testing.assert_allclose(pca.variables().values, [[(1 + r) / 2, (1 - r) / 2]] * 2, rtol=1e-13)

    def test_two_categories_of_two_levels(self) -> None:
        # phi of the table [[2, 0], [1, 1]] is 1 / sqrt(3); the eigenvalues of its MCA are (1 +- phi) / 2.
        pca = fw.PCA().fit(whole({"x": ["a", "a", "b", "b"], "y": ["c", "c", "c", "d"]}))
        phi = 1 / np.sqrt(3)
        np.testing.assert_allclose(pca.mca_eigenvalues(), [(1 + phi) / 2, (1 - phi) / 2], rtol=1e-14)
        # Only the first exceeds 1 / 2; Benzecri makes it (2 / 1 (l - 1 / 2))^2 = phi^2.
        np.testing.assert_allclose(pca.mca_eigenvalues(adjusted=True), [phi**2], rtol=1e-13)

    def test_categories_lie_at_the_means_of_their_rows(self) -> None:
        columns = mixed()
        rows = whole(columns)
        pca = fw.PCA(3).fit(rows)
        scores, found = pca.transform(rows), pca.category_coordinates()
        for level in ("cat", "dog", "emu"):
            expected = scores[columns["pet"] == level].mean(axis=0)
            np.testing.assert_allclose(found.values[found.rows.index(f"pet={level}")], expected, atol=1e-12)
        eta2 = pca.variables()
        for k in range(3):
            between = sum(
                np.mean(columns["home"] == level) * scores[columns["home"] == level, k].mean() ** 2
                for level in set(columns["home"])
            )
            assert eta2["home", f"pca{k}"] == pytest.approx(between / scores[:, k].var(), abs=1e-12)
            assert eta2["age", f"pca{k}"] == pytest.approx(
                np.corrcoef(columns["age"], scores[:, k])[0, 1] ** 2, abs=1e-12
            )

    def test_totals(self) -> None:
        pca = fw.PCA().fit(whole(mixed()))
        assert pca.n_components_ == 2 + 2 + 1 + 3
        assert pca.explained_variance_.sum() == pytest.approx(2 + 2 + 1 + 3, rel=1e-13)
        np.testing.assert_allclose(pca.variables().values.sum(axis=0), pca.explained_variance_, rtol=1e-10)
        for by in ("column", "variable"):
            np.testing.assert_allclose(pca.contributions(by=by).values.sum(axis=0), 1.0, rtol=1e-12)
        assert pca.contributions(by="variable").rows == ("size", "pet", "age", "sex", "home")


class TestAgainstTheDefinition:
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_every_solver(self, solver: str) -> None:
        columns = mixed(200)
        z = by_definition(columns)
        pca = fw.PCA(5, svd_solver=solver, tol=1e-13 if solver == "power" else 0.0).fit(whole(columns))
        expected = np.linalg.svd(z, compute_uv=False)[:5] ** 2 / len(z)
        np.testing.assert_allclose(pca.explained_variance_, expected, rtol=1e-9)
        np.testing.assert_allclose(pca.singular_values_**2 / len(z), expected, rtol=1e-9)

    def test_more_columns_than_rows(self) -> None:
        rng = np.random.default_rng(5)
        columns = {f"k{j}": rng.choice(list("abcdefgh"), size=30) for j in range(12)}
        pca = fw.PCA(4).fit(whole(columns))
        assert pca.manifest_.algorithm == "gram"
        expected = np.linalg.svd(by_definition(columns), compute_uv=False)[:4] ** 2 / 30
        np.testing.assert_allclose(pca.explained_variance_, expected, rtol=1e-9)

    @pytest.mark.parametrize(("dtype", "within"), [(np.float32, 2e-6), (np.float64, 1e-12)])
    def test_both_widths(self, dtype: Any, within: float) -> None:
        columns = mixed(300)
        pca = fw.PCA().fit(whole(columns, dtype=dtype))
        expected = np.linalg.svd(by_definition(columns), compute_uv=False)[: pca.n_components_] ** 2 / 300
        np.testing.assert_allclose(pca.explained_variance_, expected, rtol=0, atol=within * expected.sum())
        assert pca.components_.dtype == dtype

    def test_partial_fit_ends_with_the_same_bits(self) -> None:
        columns = mixed(500)
        levels = {
            name: find_levels(name, dict.fromkeys(columns[name], 1.0), fewest=0) for name in ("pet", "sex", "home")
        }
        batches = fw.PCA()
        for start in range(0, 500, 170):
            batches.partial_fit(encode(taken(columns, slice(start, start + 170)), levels=levels))
        one = fw.PCA().fit(encode(columns, levels=levels))
        assert batches.explained_variance_.tobytes() == one.explained_variance_.tobytes()
        assert batches.components_.tobytes() == one.components_.tobytes()

    def test_the_divisor_can_be_chosen(self) -> None:
        rows = whole(mixed())
        usual, other = fw.PCA().fit(rows), fw.PCA(ddof=1).fit(rows)
        np.testing.assert_allclose(other.explained_variance_, usual.explained_variance_ * 60 / 59, rtol=1e-12)
        np.testing.assert_allclose(other.singular_values_, usual.singular_values_, rtol=1e-12)
        numbers = np.random.default_rng(0).standard_normal((9, 2))
        assert fw.PCA().fit(numbers).explained_variance_.sum() == pytest.approx(numbers.var(axis=0, ddof=1).sum())

    def test_constant_columns_and_levels_count_for_nothing(self) -> None:
        columns = mixed()
        more = {**columns, "same": ["a"] * 60, "seven": np.full(60, 7.0)}
        plain, with_constants = fw.PCA(8).fit(whole(columns)), fw.PCA(8).fit(whole(more))
        np.testing.assert_allclose(with_constants.explained_variance_, plain.explained_variance_, rtol=1e-12)


class TestAgainstPrince:
    def test_famd_and_mca(self) -> None:
        prince = pytest.importorskip("prince", reason="prince (the peer of this geometry) is not installed")
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(mixed(150))
        rows = whole(frame)
        ours, theirs = fw.PCA().fit(rows), prince.FAMD(n_components=8, engine="scipy").fit(frame)
        np.testing.assert_allclose(ours.explained_variance_, theirs.eigenvalues_, rtol=0, atol=1e-10)
        same_up_to_sign(ours.transform(rows), theirs.row_coordinates(frame), rtol=0, atol=1e-9)
        words = frame[["pet", "sex", "home"]]
        mca, of_prince = fw.PCA().fit(whole(words)), prince.MCA(n_components=6, engine="scipy").fit(words)
        np.testing.assert_allclose(mca.mca_eigenvalues(), of_prince.eigenvalues_, rtol=0, atol=1e-10)
        same_up_to_sign(mca.transform(whole(words)) / np.sqrt(3), of_prince.row_coordinates(words), rtol=0, atol=1e-9)
        theirs = of_prince.column_coordinates(words)
        order = [name.replace("=", "__") for name in mca.category_coordinates().rows]
        same_up_to_sign(mca.category_coordinates("mca").values, theirs.loc[order], rtol=0, atol=1e-9)


class TestInvariants:
    @given(seed=st.integers(0, 50))
    def test_the_order_of_rows(self, seed: int) -> None:
        columns = mixed(40, seed)
        shuffled = taken(columns, np.random.default_rng(seed).permutation(40))
        a, b = fw.PCA(3).fit(whole(columns)), fw.PCA(3).fit(whole(shuffled))
        np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-11)

    @given(seed=st.integers(0, 50))
    def test_weights_are_repetitions(self, seed: int) -> None:
        columns = mixed(30, seed)
        weights = np.random.default_rng(seed).integers(0, 4, size=30)
        if not weights.any():
            return
        repeated = taken(columns, np.repeat(np.arange(30), weights))
        some = taken(columns, weights > 0)
        a = fw.PCA(3).fit(whole(some, weights=weights[weights > 0]))
        b = fw.PCA(3).fit(whole(repeated))
        np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-11)
        np.testing.assert_allclose(a.scale_, b.scale_, rtol=1e-12)
        np.testing.assert_allclose(np.abs(a.variables().values), np.abs(b.variables().values), atol=1e-9)

    @given(seed=st.integers(0, 50))
    def test_the_names_of_levels(self, seed: int) -> None:
        columns = mixed(40, seed)
        other = dict(columns, pet=np.array([{"cat": "z", "dog": "y", "emu": "x"}[one] for one in columns["pet"]]))
        a, b = fw.PCA(3).fit(whole(columns)), fw.PCA(3).fit(whole(other))
        np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-11)
        np.testing.assert_allclose(a.variables().values, b.variables().values, atol=1e-9)

    @given(seed=st.integers(0, 50))
    def test_a_table_twice(self, seed: int) -> None:
        columns = mixed(40, seed)
        twice = taken(columns, np.tile(np.arange(40), 2))
        a, b = fw.PCA(3).fit(whole(columns)), fw.PCA(3).fit(whole(twice))
        np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-11)

    @given(seed=st.integers(0, 20), factor=st.sampled_from([1e-6, 3.0, 1e6]), offset=st.sampled_from([0.0, 1e5]))
    def test_units_of_numbers(self, seed: int, factor: float, offset: float) -> None:
        columns = mixed(40, seed)
        other = dict(columns, size=(columns["size"] + offset) * factor)
        a, b = fw.PCA(3).fit(whole(columns)), fw.PCA(3).fit(whole(other))
        np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-8)


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    rng = np.random.default_rng(2)
    hidden = rng.standard_normal(50_000)
    return np.column_stack([hidden, rng.integers(3, size=50_000), np.digitize(hidden, [-1, 0, 1]), rng.random(50_000)])


class TestBits:
    LEVELS = (
        None,
        find_levels("a", {"x": 1, "y": 1, "z": 1}, fewest=0),
        find_levels("b", {"1": 1, "2": 1, "3": 1, "4": 1}, fewest=0),
        None,
    )

    @pytest.mark.filterwarnings("ignore::foldwise.errors.NotFinishedWarning")
    @pytest.mark.parametrize("kind", ["threads", "frame", "parquet", "pieces"])
    def test_threads_files_and_pieces(self, codes: np.ndarray, kind: str, tmp_path: Path, pieces: Any) -> None:
        import pandas as pd

        frame = pd.DataFrame(codes, columns=["u", "a", "b", "v"])
        frame.to_parquet(tmp_path / "rows.parquet")
        other = {
            "threads": codes,
            "frame": frame,
            "parquet": str(tmp_path / "rows.parquet"),
            "pieces": pieces(codes, 999),
        }
        rows = expanded(fw.scan(other[kind]), self.LEVELS)
        expected = expanded(fw.scan(codes), self.LEVELS)
        threads = 3 if kind == "threads" else 2
        for model, attributes in (
            (fw.PCA, ("components_", "explained_variance_", "scale_")),
            (lambda **given: fw.KMeans(4, max_iter=5, tol=0.0, **given), ("cluster_centers_", "labels_", "scale_")),
        ):
            a, b = model(n_threads=threads).fit(rows), model(n_threads=1).fit(expected)
            for name in attributes:
                assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name

    def test_a_slow_source_keeps_codes_and_not_indicators(self, codes: np.ndarray, tmp_path: Path) -> None:
        import pandas as pd

        pd.DataFrame(codes).rename(columns=str).to_parquet(tmp_path / "rows.parquet")
        rows = expanded(fw.scan(str(tmp_path / "rows.parquet")), self.LEVELS)
        found = fw.KMeans(3).fit(rows)
        assert found.manifest_.spooled_bytes == codes.nbytes


class TestKMeans:
    def test_distances_are_those_of_the_row_coordinates(self) -> None:
        columns = mixed(80)
        rows = whole(columns)
        km, scores = fw.KMeans(3).fit(rows), fw.PCA().fit(rows).transform(rows)
        z = by_definition(columns)
        centres = np.array([z[km.labels_ == c].mean(axis=0) for c in range(3)])
        np.testing.assert_allclose(km.cluster_centers_, centres, atol=1e-12)
        in_scores = np.array([scores[km.labels_ == c].mean(axis=0) for c in range(3)])
        expected = np.linalg.norm(scores[:, None] - in_scores, axis=2)
        np.testing.assert_allclose(km.transform(rows), expected, rtol=1e-9)
        assert km.inertia_ == pytest.approx((expected.min(axis=1) ** 2).sum(), rel=1e-10)
        np.testing.assert_array_equal(fw.KMeans(3).fit(scores).labels_, km.labels_)

    def test_centres_in_units_of_the_data_hold_shares_of_levels(self) -> None:
        columns = mixed(80)
        km = fw.KMeans(3).fit(whole(columns))
        found = km.centers_in_data_units()
        for c in range(3):
            inside = km.labels_ == c
            assert found[str(c), "pet=dog"] == pytest.approx(np.mean(columns["pet"][inside] == "dog"), abs=1e-12)
            assert found[str(c), "age"] == pytest.approx(columns["age"][inside].mean(), rel=1e-12)
        named = decode(found.values, km.indicators_)["pet"]
        assert set(named) <= {"cat", "dog", "emu"}

    def test_scale_changes_nothing(self) -> None:
        rows = whole(mixed())
        a, b = fw.KMeans(3).fit(rows), fw.KMeans(3, scale=True).fit(rows)
        assert a.cluster_centers_.tobytes() == b.cluster_centers_.tobytes()

    def test_weights_are_repetitions(self) -> None:
        columns = mixed(50)
        weights = np.random.default_rng(1).integers(1, 4, size=50)
        a = fw.KMeans(3).fit(whole(columns, weights=weights))
        b = fw.KMeans(3).fit(whole(taken(columns, np.repeat(np.arange(50), weights))))
        np.testing.assert_array_equal(np.repeat(a.labels_, weights), b.labels_)
        np.testing.assert_allclose(a.scale_, b.scale_, rtol=1e-13)
        assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-11)

    def test_batches_are_seen_in_the_geometry_of_the_first(self) -> None:
        columns = mixed(60)
        rows = whole(columns)
        levels = {one.name: one for one in rows.change.columns if one is not None}
        km = fw.KMeans(3).partial_fit(encode(taken(columns, slice(40)), levels=levels))
        first = by_definition(taken(columns, slice(40)))
        shares = np.mean(columns["pet"][:40] == "dog")
        assert km.scale_[2] == pytest.approx(np.sqrt(shares))
        np.testing.assert_allclose(km.cluster_centers_[0], first[km.labels_ == 0].mean(axis=0), atol=1e-12)
        km.partial_fit(encode(taken(columns, slice(40, 60)), levels=levels))
        assert km.cluster_weights_.sum() == 60

    @pytest.mark.parametrize("model", [fw.BisectingKMeans, fw.MiniBatchKMeans, fw.SoftKMeans])
    def test_its_relatives_see_the_same_rows(self, model: Any) -> None:
        rows = whole(mixed(60))
        fitted = model(3).fit(rows)
        np.testing.assert_array_equal(fitted.scale_, fw.KMeans(3).fit(rows).scale_)
        np.testing.assert_array_equal(fitted.predict(rows), fitted.labels_)

    def test_a_kernel_takes_numbers_only(self) -> None:
        with pytest.raises(DataError, match=r"KernelKMeans takes numbers only.*PCA"):
            fw.KernelKMeans(3).fit(whole(mixed(60)))

    def test_rows_of_numbers_are_not_touched(self) -> None:
        km = fw.KMeans(2).fit(whole(mixed()))
        km.fit(np.random.default_rng(0).standard_normal((9, 2)))
        assert km.scale_ is None
        assert not hasattr(km, "indicators_")


class TestUnseenAndMissing:
    def _levels(self, rows: Any) -> dict[str, Any]:
        return {one.name: one for one in rows.change.columns if one is not None}

    def test_a_level_that_is_not_known_is_neutral(self) -> None:
        columns = mixed(60)
        rows = whole(columns)
        new = taken(columns, [0, 1, 2])
        new["pet"] = np.array(["newt"] * 3, dtype=object)
        unseen = encode(new, levels=self._levels(rows))
        pca, km = fw.PCA().fit(rows), fw.KMeans(3).fit(rows)
        # What the category adds to the scores is nothing: they are those of the other columns.
        z = by_definition(columns)[:3]
        z[:, 1:4] = 0.0
        np.testing.assert_allclose(pca.transform(unseen), z @ pca.components_.T, atol=1e-12)
        expected = np.linalg.norm(z[:, None] - km.cluster_centers_, axis=2)
        np.testing.assert_allclose(km.transform(unseen), expected, rtol=1e-10)

    def test_it_is_neutral_even_if_the_levels_were_counted_elsewhere(self) -> None:
        columns = mixed(60)
        levels = {
            name: find_levels(name, {x: float(i + 1) for i, x in enumerate(sorted(set(columns[name])))}, fewest=0)
            for name in ("pet", "sex", "home")
        }
        pca = fw.PCA().fit(encode(columns, levels=levels))
        new = {"size": [pca.mean_[0]], "pet": ["newt"], "age": [pca.mean_[4]], "sex": ["x"], "home": ["boat"]}
        np.testing.assert_allclose(pca.transform(encode(new, levels=levels)), 0.0, atol=1e-12)

    def test_a_missing_category_filled_by_the_mean_is_neutral(self) -> None:
        columns = mixed(60)
        columns["pet"][[3, 7]] = None
        rows = whole(columns)
        known = np.array([one is not None for one in columns["pet"]])
        shares = [np.mean(columns["pet"][known] == level) for level in ("cat", "dog", "emu")]
        for model in (fw.PCA(3, missing="mean"), fw.KMeans(3, missing="mean")):
            fitted = model.fit(rows)
            np.testing.assert_allclose(fitted.mean_[1:4], shares, rtol=1e-12)
            np.testing.assert_allclose(fitted.scale_[1:4], np.sqrt(shares), rtol=1e-12)
            assert fitted.manifest_.notes[-1].startswith("2 missing cells in 2 of 60 rows and 1 column")
        scores = fw.PCA(3, missing="mean").fit(rows).transform(rows)
        assert np.isfinite(scores).all()
        km = fw.KMeans(3, missing="mean").fit(rows)
        np.testing.assert_array_equal(km.predict(rows), km.labels_)

    def test_rows_with_a_missing_category_can_be_dropped(self) -> None:
        columns = mixed(60)
        columns["pet"][[3, 7]] = None
        kept = taken(columns, [i for i in range(60) if i not in (3, 7)])
        a, b = fw.PCA(3, missing="drop").fit(whole(columns)), fw.PCA(3).fit(whole(kept))
        np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-12)
        np.testing.assert_allclose(a.scale_, b.scale_, rtol=1e-12)

    def test_missing_categories_from_a_file(self, tmp_path: Path) -> None:
        import pandas as pd

        columns = mixed(60)
        columns["pet"][[3, 7]] = None
        rows = whole(columns)
        codes = np.concatenate([piece.load().unchecked for piece in rows.source.pieces()])
        frame = pd.DataFrame(codes, columns=list(columns))
        frame.to_csv(tmp_path / "rows.csv", index=False)
        from_file = expanded(fw.scan(str(tmp_path / "rows.csv")), rows.change.columns)
        for model in (fw.PCA(3, missing="mean"), fw.KMeans(3, missing="mean")):
            assert model.fit(from_file).scale_.tobytes() == model.fit(rows).scale_.tobytes()


class TestWaysBack:
    def test_inverse_transform_gives_numbers_and_categories_back(self) -> None:
        columns = mixed(60)
        rows = whole(columns)
        pca = fw.PCA().fit(rows)
        back = pca.inverse_transform(pca.transform(rows))
        np.testing.assert_allclose(back[:, 0], columns["size"], atol=1e-10)
        np.testing.assert_allclose(back[:, 4], columns["age"], atol=1e-9)
        named = decode(back, pca.indicators_)
        for name in ("pet", "sex", "home"):
            assert named[name].tolist() == columns[name].tolist()

    def test_it_is_saved_and_loaded(self, tmp_path: Path) -> None:
        rows = whole(mixed(60))
        for model in (fw.PCA(3).fit(rows), fw.KMeans(3).fit(rows)):
            fw.save(model, tmp_path / "model.fw")
            loaded = fw.load(tmp_path / "model.fw")
            assert loaded.indicators_ == model.indicators_
            np.testing.assert_array_equal(loaded.transform(rows), model.transform(rows))

    def test_what_needs_categories_says_so(self) -> None:
        numbers = fw.PCA().fit(np.random.default_rng(0).standard_normal((9, 3)))
        with pytest.raises(DataError, match="no categories"):
            numbers.category_coordinates()
        both = fw.PCA().fit(whole(mixed()))
        with pytest.raises(DataError, match="categories alone"):
            both.mca_eigenvalues()
        with pytest.raises(DataError, match="categories alone"):
            both.category_coordinates("mca")
        with pytest.raises(ParameterError, match="scale='ca'"):
            both.category_coordinates("ca")
        with pytest.raises(ParameterError, match="by='row'"):
            both.contributions(by="row")
        with pytest.raises(DataError, match="single category"):
            fw.PCA().fit(whole({"x": ["a", "b", "b"]})).mca_eigenvalues(adjusted=True)

    def test_correlations_of_numbers_alone(self) -> None:
        x = np.random.default_rng(0).standard_normal((30, 3)) * [1, 5, 20] + 100
        pca = fw.PCA().fit(x)
        scores = pca.transform(x)
        expected = [[np.corrcoef(x[:, j], scores[:, k])[0, 1] for k in range(3)] for j in range(3)]
        np.testing.assert_allclose(pca.correlations().values, expected, atol=1e-10)
        np.testing.assert_allclose(pca.variables().values, np.square(expected), atol=1e-10)

    def test_more_components_than_the_categories_leave_are_refused(self) -> None:
        with pytest.raises(ParameterError, match="8"):
            fw.PCA(9).fit(whole(mixed()))
