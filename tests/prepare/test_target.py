"""The column that is to be predicted, out of a prepared table."""

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.data.source import count_rows
from foldwise.errors import DataError
from foldwise.prepare.target import target_of

TABLE = pd.DataFrame(
    {
        "x": [1.5, 2.0, 8.0, 9.25, 3.5, 4.5],
        "count": [3.0, None, 1.0, 2.0, 2.5, 4.0],
        "pet": ["cat", "dog", None, "dog", "cat", "emu"],
        "weight": [1.0, 2.0, 1.0, 0.0, 1.0, 1.0],
    }
)


@pytest.mark.parametrize("as_file", [False, True])
def test_numbers_and_words_come_in_the_order_of_the_rows(as_file, tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    given = str(tmp_path / "t.csv") if as_file else TABLE
    number = target_of(fw.prepare(given, labels="count"), "count")
    np.testing.assert_array_equal(number.values, [3.0, 1.0, 2.0, 2.5, 4.0])
    assert not number.is_category
    word = target_of(fw.prepare(given, labels="pet", as_={"pet": "category"}, where="x > 1.9"), "pet")
    assert word.values.tolist() == ["dog", "dog", "cat", "emu"]
    assert (word.missing, count_rows(word.rows)) == (1, 4)
    rows = np.concatenate([piece.load().unchecked for piece in word.rows.pieces()])
    np.testing.assert_array_equal(rows[:, word.rows.names.index("x")], [2.0, 9.25, 3.5, 4.5])


def test_weights_stay_with_their_rows():
    found = target_of(fw.prepare(TABLE, labels="count", weights="weight"), "count")
    weights = np.concatenate([piece.load().weights for piece in found.rows.pieces()])
    np.testing.assert_array_equal(weights, [1.0, 1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.5, 1.5, 1.5, 1.5, 1.5, 1.5], "constant"),
        ([None] * 6, "empty"),
        (["a b c d e f g h"[i:] for i in range(6)], "must be a number or a category"),
        ([1.5, 2.5, np.inf, 1.0, 2.25, 3.0], "infinite"),
    ],
)
def test_what_cannot_be_predicted(values, words):
    table = TABLE.assign(y=values)
    with pytest.raises(DataError, match=words):
        target_of(fw.prepare(table, labels="y"), "y")
