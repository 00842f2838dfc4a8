"""Categories as indicator columns: levels, codes, blocks, and the way back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.block import DenseBlock
from foldwise.data.block_grid import rows_per_block
from foldwise.data.missing import allow_missing
from foldwise.data.source import block_rows
from foldwise.errors import DataError, ParameterError
from foldwise.prepare.encode import (
    Expand,
    IndicatorGroup,
    Levels,
    at_centre,
    decode,
    encode,
    expanded,
    find_levels,
    in_groups,
)
from foldwise.testing import check_source

NAN = float("nan")
SEX = Levels("sex", ("f", "m"), (3.0, 1.0))
PET = Levels("pet", ("cat", "dog", "emu"), (1.0, 1.0, 2.0))


class TestLevels:
    def test_codes_follow_the_alphabet_or_the_frequency(self) -> None:
        counts = {"b": 5.0, "c": 9.0, "a": 5.0}
        assert find_levels("x", counts).levels == ("a", "b", "c")
        assert find_levels("x", counts, order="frequency").levels == ("c", "a", "b")
        assert find_levels("x", counts, order="frequency").counts == (9.0, 5.0, 5.0)

    def test_levels_that_are_numbers_are_ordered_as_numbers(self) -> None:
        assert find_levels("x", {"10": 5.0, "9": 5.0, "100": 5.0}).levels == ("9", "10", "100")

    def test_rare_levels_are_pooled_and_told(self) -> None:
        found = find_levels("x", {"a": 500, "b": 490, "c": 9.9, "d": 5, "e": 95.1})
        assert found.levels == ("a", "b", "e", "other")
        assert found.pooled == ("c", "d")
        assert found.counts[-1] == pytest.approx(14.9)
        assert found.codes == {"a": 0, "b": 1, "e": 2, "c": 3, "d": 3}
        assert found.note is not None
        assert found.note.topic == "rare-levels"
        assert found.note.text == "x: 2 rare levels pooled into 'other' (1.4 % of the known cells): c, d"

    def test_levels_of_few_rows_are_pooled(self) -> None:
        assert find_levels("x", {"a": 6, "b": 1, "c": 1}).levels == ("a", "other")
        assert find_levels("x", {"a": 6, "b": 1, "c": 1}, fewest=0).levels == ("a", "b", "c")
        assert find_levels("x", {"a": 6, "b": 4, "c": 3}, fewest=5).levels == ("a", "other")

    def test_nothing_is_pooled_where_it_would_gain_nothing(self) -> None:
        assert find_levels("x", {"a": 900, "b": 1}).levels == ("a", "b")  # a single one
        assert find_levels("x", {"a": 1, "b": 1}).levels == ("a", "b")  # nothing would be left beside them
        assert find_levels("x", {"a": 9, "b": 9}).note is None

    def test_a_level_may_already_be_called_other(self) -> None:
        assert find_levels("x", {"other": 9, "b": 1, "c": 1}).levels == ("other", "other (pooled)")

    def test_wrong_arguments_are_refused(self) -> None:
        with pytest.raises(ParameterError, match="order='size'"):
            find_levels("x", {"a": 1}, order="size")
        with pytest.raises(DataError, match="0 levels"):
            find_levels("x", {})

    def test_cells_get_their_codes(self) -> None:
        pooled = find_levels("x", {"a": 6, "b": 1, "c": 1})
        np.testing.assert_array_equal(pooled.code(["a", "c", NAN, None, "new"]), [0, 1, NAN, NAN, -1])


class TestExpand:
    def test_by_hand(self) -> None:
        rows = np.array([[1.5, 0, 2], [2.5, 1, NAN], [3.5, -1, 0]])
        out = Expand((None, SEX, PET))(DenseBlock(rows, 7))
        expected = [[1.5, 1, 0, 0, 0, 1], [2.5, 0, 1, NAN, NAN, NAN], [3.5, 0.75, 0.25, 1, 0, 0]]
        np.testing.assert_array_equal(out.unchecked, expected)
        assert out.start == 7

    def test_names_groups_and_order_of_columns(self) -> None:
        expand = Expand((SEX, None, PET))
        assert expand.names(["sex", "mass", "pet"]) == ("sex=f", "sex=m", "mass", "pet=cat", "pet=dog", "pet=emu")
        assert expand.groups == (
            IndicatorGroup("sex", 0, ("f", "m")),
            IndicatorGroup("pet", 3, ("cat", "dog", "emu")),
        )
        assert in_groups(expand.groups, 6).tolist() == [True, True, False, True, True, True]

    @pytest.mark.parametrize("code", [2.0, 0.5, -2.0, np.inf])
    def test_what_is_no_code_is_refused_with_its_place(self, code: float) -> None:
        with pytest.raises(DataError, match="is not the code of a level") as caught:
            Expand((None, SEX))(DenseBlock(np.array([[0.0, 1.0], [0.0, code]]), 10))
        assert (caught.value.row, caught.value.column) == (11, "sex")

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_it_survives_pickling_and_keeps_the_dtype(self, dtype: type) -> None:
        expand = pickle.loads(pickle.dumps(Expand((SEX, None))))
        out = expand(DenseBlock(np.array([[1, 2.5]], dtype=dtype)))
        assert out.dense().dtype == dtype
        np.testing.assert_array_equal(out.dense(), [[0, 1, 2.5]])

    @given(st.lists(st.tuples(st.integers(-1, 2), st.booleans()), min_size=1, max_size=30))
    def test_indicators_of_a_category_add_up_to_one(self, cells: list[tuple[int, bool]]) -> None:
        codes = np.array([[NAN if gone else code] for code, gone in cells], dtype=np.float64)
        out = Expand((PET,))(DenseBlock(codes)).unchecked
        np.testing.assert_allclose(out.sum(axis=1), np.where(np.isnan(codes[:, 0]), NAN, 1.0))


class TestSource:
    def test_blocks_are_cut_by_what_comes_out(self) -> None:
        wide = find_levels("zone", {f"z{i:03}": 10.0 for i in range(200)})
        rng = np.random.default_rng(0)
        codes = np.column_stack([rng.standard_normal(20_000), rng.integers(200, size=20_000)])
        source = expanded(fw.scan(codes), [None, wide])
        assert block_rows(source) == rows_per_block(201, np.dtype(np.float64)) < rows_per_block(2, np.dtype(np.float64))
        expected = np.column_stack([codes[:, 0], np.eye(200)[codes[:, 1].astype(int)]])
        check_source(source, expected)

    def test_files_frames_and_arrays_give_the_same_blocks(self, tmp_path) -> None:
        import pandas as pd

        rng = np.random.default_rng(1)
        codes = np.column_stack(
            [rng.standard_normal(30_000), rng.integers(3, size=30_000), rng.integers(2, size=30_000)]
        )
        frame = pd.DataFrame(codes, columns=["mass", "pet", "sex"])
        frame.to_parquet(tmp_path / "rows.parquet")
        expected = np.column_stack(
            [codes[:, 0], np.eye(3)[codes[:, 1].astype(int)], np.eye(2)[codes[:, 2].astype(int)]]
        )
        for given_rows in (codes, frame, str(tmp_path / "rows.parquet")):
            source = expanded(fw.scan(given_rows), [None, PET, SEX])
            check_source(source, expected)
            assert source.indicators[1].name == "sex"

    def test_sources_that_cannot_be_cut_elsewhere_are_put_together_anew(self, pieces) -> None:
        codes = np.column_stack([np.arange(5000.0), np.arange(5000) % 3])
        check_source(
            expanded(pieces(codes, 700), [None, PET]),
            np.column_stack([codes[:, 0], np.eye(3)[codes[:, 1].astype(int)]]),
        )

    def test_a_missing_cell_is_reported_by_the_column_that_was_given(self) -> None:
        source = encode({"mass": [1.0, 2.0, 3.0], "sex": ["f", None, "m"]})
        with pytest.raises(DataError, match="NaN") as caught:
            fw.KMeans(2).fit(source)
        assert (caught.value.row, caught.value.column) == (1, "sex")
        with pytest.raises(DataError, match="NaN"):
            fw.PCA().fit(source)

    def test_missing_cells_are_allowed_where_a_model_deals_with_them(self) -> None:
        source = allow_missing(encode({"mass": [1.0, 2.0, 3.0], "sex": ["f", None, "m"]}))
        rows = next(source.pieces()).load().dense()
        np.testing.assert_array_equal(rows, [[1, 1, 0], [2, NAN, NAN], [3, 0, 1]])

    def test_infinity_is_refused_even_where_cells_may_be_missing(self) -> None:
        source = allow_missing(encode({"mass": [1.0, np.inf, 3.0], "sex": [None, "f", "m"]}))
        with pytest.raises(DataError, match="infinity") as caught:
            next(source.pieces()).load().dense()
        assert (caught.value.row, caught.value.column) == (1, "mass")

    def test_two_columns_of_one_name_are_refused(self) -> None:
        with pytest.raises(DataError, match="a=b"):
            encode({"a=b": [1.0, 2.0], "a": ["b", "c"]})

    def test_levels_for_another_number_of_columns_are_refused(self) -> None:
        with pytest.raises(DataError, match="levels of 1 columns were given for 2"):
            expanded(fw.scan([[1.0, 2.0]]), [SEX])

    def test_numbers_alone_stay_as_they_are(self) -> None:
        source = fw.scan([[1.0, 2.0]])
        assert expanded(source, [None, None]) is source

    def test_levels_that_are_not_known_can_be_moved_to_the_centre_of_a_model(self) -> None:
        source = at_centre(allow_missing(expanded(fw.scan([[5.0, -1.0]]), [None, SEX])), np.array([9.0, 0.4, 0.6]))
        np.testing.assert_array_equal(next(source.pieces()).load().dense(), [[5.0, 0.4, 0.6]])


class TestEncodeAndDecode:
    def test_frames_and_mappings(self) -> None:
        import pandas as pd

        columns = {"sex": ["m", "f", "f"], "mass": [1, 2, 3], "code": [7, 8, 7]}
        for table in (columns, pd.DataFrame(columns)):
            source = encode(table, categories=["code"], fewest=0)
            assert source.names == ("sex=f", "sex=m", "mass", "code=7", "code=8")
            check_source(source, [[0, 1, 1, 1, 0], [1, 0, 2, 0, 1], [1, 0, 3, 1, 0]])

    def test_counts_are_weighted(self) -> None:
        source = encode({"sex": ["m", "f", "f"]}, weights=[3, 1, 1], fewest=0)
        assert source.change.columns[0].counts == (2.0, 3.0)

    def test_new_rows_keep_the_levels_of_the_old(self) -> None:
        source = encode({"sex": ["m", "x"]}, levels={"sex": SEX})
        check_source(source, [[0, 1], [0.75, 0.25]])

    @given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=30).filter(any))
    def test_decode_undoes_encode(self, cells: list[str | None]) -> None:
        source = encode({"x": cells}, fewest=0, rare=0.0)
        rows = next(allow_missing(source).pieces()).load().dense()
        assert decode(rows, source.indicators)["x"].tolist() == cells

    def test_decode_takes_the_largest(self) -> None:
        groups = (IndicatorGroup("sex", 0, ("f", "m")), IndicatorGroup("pet", 3, ("cat", "dog")))
        found = decode([[0.2, 0.8, 5.0, 1.1, -0.1], [0.5, 0.5, 5.0, 0.0, 1.0]], groups)
        assert found["sex"].tolist() == ["m", "f"]
        assert found["pet"].tolist() == ["cat", "dog"]
        with pytest.raises(DataError, match="too few"):
            decode([[1.0]], groups)
