"""What the kernels promise beyond agreeing with their twins: exactness, equal bits, range, refusals."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import _core


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 5, 200, 1003])
def test_constant_columns_are_exact(dtype: Any, n: int, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, 11)).astype(dtype)
    constants = {0: 0.1, 3: -1e8, 7: 3e-30, 10: 1.7e19}
    for column, value in constants.items():
        x[:, column] = value
    weights = rng.random(n) + 0.1 if weighted else None
    _, mean, scatter = kernels.scatter(x, weights)
    _, column_mean, squares = kernels.columns(x, weights)
    for column, value in constants.items():
        assert mean[0, column] == column_mean[0, column] == float(dtype(value))
        assert mean[1, column] == column_mean[1, column] == 0
        assert not scatter[column].any()
        assert not scatter[:, column].any()
        assert squares[column] == 0


def test_rows_of_weight_zero_do_not_matter(dtype: Any, rows: NDArray[Any]) -> None:
    weights = np.where(np.arange(len(rows)) % 3 == 0, 0.0, 2.0)
    spoilt = np.where(weights[:, None] == 0, dtype(3e38), rows)
    _, mean, scatter = kernels.scatter(spoilt, weights)
    _, true_mean, true_scatter = kernels.scatter(np.ascontiguousarray(rows[weights > 0]), weights[weights > 0])
    np.testing.assert_allclose(mean[0], true_mean[0], rtol=1e-8)
    np.testing.assert_allclose(scatter, true_scatter, atol=1e-6 * true_scatter.max())


def test_weights_mean_repetition(dtype: Any, rows: NDArray[Any]) -> None:
    counts = np.random.default_rng(4).integers(0, 4, len(rows))
    total, mean, scatter = kernels.scatter(rows, counts.astype(np.float64))
    true_total, true_mean, true_scatter = kernels.scatter(np.repeat(rows, counts, axis=0), None)
    assert total == true_total
    np.testing.assert_allclose(mean[0], true_mean[0], rtol=1e-8)
    np.testing.assert_allclose(scatter, true_scatter, atol=1e-6 * true_scatter.max())


def test_no_rows_no_columns_no_weight(dtype: Any) -> None:
    for n, d in [(0, 3), (4, 0), (0, 0)]:
        total, mean, scatter = kernels.scatter(np.empty((n, d), dtype), None)
        assert total == n
        assert mean.shape == (2, d)
        assert np.array_equal(scatter, np.zeros((d, d)))
    total, mean, scatter = kernels.scatter(np.ones((4, 2), dtype), np.zeros(4))
    assert total == 0
    assert not mean.any()
    assert not scatter.any()
    assert kernels.columns(np.ones((4, 2), dtype), np.zeros(4))[0] == 0


def test_float32_at_the_ends_of_its_range(check_scatter: Any) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2000, 9)).astype(np.float32)
    x[:, 0] = np.where(x[:, 0] > 0, 3e38, -3e38)  # x - pivot overflows float32
    x[:, 1] *= 1e-40  # subnormal
    x[:, 2] *= np.float32(1e-30)  # squares underflow
    check_scatter(x, None)
    check_scatter(x, rng.random(len(x)))


def test_the_first_rows_may_be_unlike_the_rest(check_scatter: Any, dtype: Any) -> None:
    x = np.random.default_rng(6).standard_normal((3000, 5)).astype(dtype)
    x[:128] += 30
    check_scatter(x, None)


def test_one_row_may_outweigh_all_others(check_scatter: Any, check_columns: Any, dtype: Any) -> None:
    x = np.random.default_rng(8).standard_normal((1000, 5)).astype(dtype)
    weights = np.ones(1000)
    weights[700] = 1e6
    check_scatter(x, weights)
    check_columns(x, weights)


def test_mean_is_good_to_nine_digits_of_the_spread() -> None:
    x = np.random.default_rng(7).standard_normal((10368, 50)).astype(np.float32)
    _, mean, _ = kernels.scatter(x, None)
    assert np.abs(mean[0] - x.mean(axis=0, dtype=np.float64)).max() < 5e-9


def test_equal_input_gives_equal_bits_wherever_it_lies(dtype: Any, rows: NDArray[Any]) -> None:
    first = kernels.scatter(rows, None)
    for shift in range(1, 9):
        room = np.empty(rows.size + shift, dtype)
        moved = room[shift:].reshape(rows.shape)
        moved[:] = rows
        again = kernels.scatter(moved, None)
        assert first[1].tobytes() == again[1].tobytes()
        assert first[2].tobytes() == again[2].tobytes()


def test_other_input_is_refused(rows: NDArray[Any]) -> None:
    for wrong in (rows.astype(np.int64), rows.astype(np.float16), np.asfortranarray(rows), rows[:, ::2]):
        for call in (kernels.scatter, kernels.columns):
            with pytest.raises(TypeError):
                call(wrong, None)
        with pytest.raises(TypeError):
            kernels.finite(wrong)
    with pytest.raises(TypeError):
        kernels.scatter(rows, np.ones(len(rows), np.float32))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one entry per row"):
        kernels.scatter(rows, np.ones(3))
    with pytest.raises(ValueError, match="one entry per column"):
        kernels.centred(rows, np.ones(3), None)


def test_read_only_arrays_are_welcome(rows: NDArray[Any]) -> None:
    rows.flags.writeable = False
    assert kernels.scatter(rows, None)[0] == len(rows)
    assert kernels.finite(rows) == -1


def test_stub_names_what_the_binary_holds() -> None:
    stub = ast.parse((Path(kernels.__file__).parent / "_core.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert named == {name for name in dir(_core) if not name.startswith("_")}
