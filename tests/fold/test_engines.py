"""Engines: equal bits for any number of threads, and errors that leave nothing running."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data import n_threads
from foldwise.data.block import Block
from foldwise.errors import DataError, ParameterError
from foldwise.fold import deadline, events, fold, threads
from foldwise.fold.passes import Passes
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments
from foldwise.stats.qr_factor import QRFactor


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((1009, 6)) * [1, 2, 3, 4, 5, 6] + 1e4


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("stat", [ColumnMoments, Moments, QRFactor])
def test_threads_do_not_change_a_bit(pieces: Any, x: np.ndarray, stat: Any, n_threads: int) -> None:
    expected = fold(pieces(x, 13), stat.of, fw.engine("serial"))
    for known in (True, False):
        got = fold(pieces(x, 13, known=known), stat.of, fw.engine("threads"), n_threads=n_threads)
        assert got.rows == expected.rows == 1009
        for name in vars(expected):
            assert np.asarray(getattr(got, name)).tobytes() == np.asarray(getattr(expected, name)).tobytes()


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_threads_do_not_change_a_bit_of_a_model(n_threads: int) -> None:
    data = np.random.default_rng(1).standard_normal((200_003, 4)).astype(np.float32)
    one = fw.PCA(2, n_threads=1).fit(data)
    many = fw.PCA(2, n_threads=n_threads).fit(data)
    for name in ("components_", "explained_variance_", "mean_"):
        assert getattr(one, name).tobytes() == getattr(many, name).tobytes()
    assert one.transform(data).tobytes() == many.transform(data).tobytes()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_rows_come_back_in_order(pieces: Any, x: np.ndarray, known: bool, n_threads: int) -> None:
    got = Passes(pieces(x, 13, known=known), n_threads=n_threads, engine=fw.engine("threads")).rows(
        lambda block: block.dense() * 2
    )
    np.testing.assert_array_equal(got, 2 * x)


@pytest.mark.parametrize("fail_at", [0, 5, 77])
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_error_in_a_piece_comes_out_and_stops_the_pass(pieces: Any, x: np.ndarray, engine: Any, fail_at: int) -> None:
    source = pieces(x, 13, fail_at=fail_at)
    with pytest.raises(OSError, match=f"piece {fail_at} cannot be read"):
        fold(source, ColumnMoments.of, engine, n_threads=2)
    # No more than what was in hand is loaded after the failure: two pieces for each thread.
    assert max(source.loaded) <= fail_at + 4


def test_error_in_the_work_waits_for_what_is_under_way(pieces: Any, x: np.ndarray) -> None:
    running, entered = set[int](), threading.Barrier(3, timeout=30)

    def of(block: Block) -> ColumnMoments:
        if block.start >= 39:
            return ColumnMoments.of(block)
        running.add(block.start)
        entered.wait()  # all three are inside before any goes on
        try:
            if block.start == 13:
                raise RuntimeError("broken work")
            return ColumnMoments.of(block)
        finally:
            running.discard(block.start)

    with pytest.raises(RuntimeError, match="broken work"):
        fold(pieces(x, 13), of, fw.engine("threads"), n_threads=3)
    assert running == set()


def test_engine_works_again_after_an_error(pieces: Any, x: np.ndarray) -> None:
    with pytest.raises(OSError, match="piece 1"):
        fold(pieces(x, 13, fail_at=1), ColumnMoments.of, fw.engine("threads"), n_threads=2)
    assert fold(pieces(x, 13), ColumnMoments.of, fw.engine("threads"), n_threads=2).rows == 1009


def test_pieces_in_hand_are_bounded(pieces: Any, x: np.ndarray) -> None:
    handed, finished, gap = 0, 0, 0
    lock = threading.Lock()
    source = pieces(x, 13)

    def counted() -> Any:
        nonlocal handed, gap
        for piece in source.pieces():
            with lock:
                handed += 1
                gap = max(gap, handed - finished)
            yield piece

    def take(number: int, value: Any) -> None:
        nonlocal finished
        with lock:
            finished += 1

    threads.run(counted(), lambda number, piece: piece.load().n_rows, take, 2)
    assert finished == 78
    assert gap <= 2 * 2 + 1


def test_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDWISE_THREADS", "5")
    assert n_threads.count() == 5
    assert n_threads.count(3) == 3  # the argument wins
    monkeypatch.setenv("FOLDWISE_THREADS", "")
    assert n_threads.count() >= 1
    monkeypatch.delenv("FOLDWISE_THREADS")
    assert n_threads.count() >= 1


def test_a_small_table_wakes_no_thread(x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    def woken(*given: Any) -> None:
        raise AssertionError("a thread for one part")

    monkeypatch.setattr(threads, "run", woken)
    assert fw.KMeans(3, n_threads=4).fit(x[:150]).labels_.shape == (150,)


def test_threads_variable_reaches_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDWISE_THREADS", "3")
    assert fw.PCA().fit(np.eye(3)).manifest_.threads == 3
    monkeypatch.setenv("FOLDWISE_THREADS", "many")
    with pytest.raises(ParameterError, match=r"FOLDWISE_THREADS='many' is not a whole number"):
        fw.PCA().fit(np.eye(3))
    monkeypatch.setenv("FOLDWISE_THREADS", "0")
    with pytest.raises(ParameterError, match="FOLDWISE_THREADS=0 must be at least 1"):
        fw.PCA().fit(np.eye(3))


def test_no_rows_is_an_error(pieces: Any) -> None:
    with pytest.raises(DataError, match="0 sample"):
        fold(pieces(np.zeros((0, 3)), 13, known=False), ColumnMoments.of)
    with pytest.raises(DataError, match="0 sample"):
        Passes(pieces(np.zeros((0, 3)), 13, known=False)).rows(lambda block: block.dense())


@pytest.mark.parametrize("known", [True, False])
def test_listeners_hear_how_far_a_pass_is(pieces: Any, x: np.ndarray, known: bool) -> None:
    heard: list[events.Event] = []
    source = pieces(x, 13, known=known)
    run = Passes(source, engine=fw.engine("serial"))
    with events.listening(heard.append):
        run.fold(ColumnMoments.of)
        run.fold(ColumnMoments.of)
    assert len(heard) == 2 * 78
    assert all(isinstance(event, events.RowsRead) for event in heard)
    assert [event.number_of_pass for event in heard] == [1] * 78 + [2] * 78
    assert {event.total for event in heard} == {1009 if known else None}
    if known:
        assert heard[-1].done == 1009
    run.fold(ColumnMoments.of)
    assert len(heard) == 2 * 78  # no longer listening


def test_an_event_reports_rows_of_the_real_grid() -> None:
    data, heard = np.zeros((150_000, 2), np.float64), list[events.Event]()
    with events.listening(heard.append):
        fold(fw.scan(data), ColumnMoments.of)
    assert [event.done for event in heard] == [131_072, 150_000]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_several_folds_in_one_pass_report_and_end_in_time(pieces: Any, x: np.ndarray, n_threads: int) -> None:
    heard: list[events.Event] = []
    run = Passes(pieces(x, 13, known=True), n_threads=n_threads)
    with events.listening(heard.append):
        found = run.fold_each([ColumnMoments.of, Moments.of, ColumnMoments.of])
    assert found[1].weight == len(x)
    assert len(heard) == 3 * 78
    done = [event.done for event in heard]
    assert done[:4] == [0, 0, done[2], done[2]]
    assert 0 < done[2] <= done[-1] == len(x)
    late = run.until(deadline.Deadline(0.0))
    with pytest.raises(deadline.OutOfTimeError):
        late.fold_each([ColumnMoments.of])


def test_one_blas_thread_during_a_fold(pieces: Any, x: np.ndarray) -> None:
    from threadpoolctl import threadpool_info

    seen: set[int] = set()

    def of(block: Block) -> ColumnMoments:
        seen.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return ColumnMoments.of(block)

    fold(pieces(x, 200), of, fw.engine("serial"))
    assert seen == {1}
