from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from data_helpers import rows, weights

import foldwise as fw
from foldwise.data import scan
from foldwise.data.spool import spooled
from foldwise.errors import DataError


@pytest.fixture
def path(tmp_path, table):
    pd.DataFrame(table, columns=list("abcde")).assign(w=1.5).to_parquet(tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("FOLDWISE_SCRATCH", str(folder))
    return folder


def test_second_pass_does_not_decode(path, table, scratch):
    source = scan(path, weights="w")
    with spooled(source) as spool:
        assert spool.slow
        assert spool.spooled_bytes == 0
        assert np.array_equal(rows(spool), table)
        assert not spool.slow
        assert spool.spooled_bytes == table.nbytes + 8 * len(table)
        assert spool.n_rows == len(table)
        path.unlink()  # so a pass that decodes would fail
        assert np.array_equal(rows(spool), table)
        assert np.array_equal(weights(spool), np.full(len(table), 1.5))
        assert [path for path in scratch.rglob("*") if path.is_file()] == []  # no name, hence nothing to leave behind


def test_the_file_is_closed_at_the_end(path, scratch):
    def scratch_files():
        names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        found = [os.readlink(name) for name in names if os.path.lexists(name)]
        return [name for name in found if str(scratch) in name and name.endswith("(deleted)")]

    with spooled(scan(path)) as spool:
        rows(spool)
        assert len(scratch_files()) == 1
    assert scratch_files() == []


def test_threads_and_any_order(path, table):
    with spooled(scan(path, columns=list("abcde"))) as spool:
        pieces = list(spool.pieces())
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda piece: piece.load(), pieces[::-1]))
        assert spool.spooled_bytes == table.nbytes
        assert np.array_equal(rows(spool), table)


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_limit(path, table, monkeypatch, how):
    monkeypatch.setenv("FOLDWISE_SPOOL_LIMIT", "1000000" if how == "environment" else "1000000000")
    with spooled(scan(path, columns=list("abcde")), 1_000_000 if how == "argument" else None) as spool:
        for _ in range(3):
            assert np.array_equal(rows(spool), table)
            assert spool.spooled_bytes == 0
            assert spool.slow


def test_an_unfinished_pass_counts_for_nothing(path, table):
    with spooled(scan(path, columns=list("abcde"))) as spool:
        next(spool.pieces()).load()
        assert spool.spooled_bytes == 0
        pieces = list(spool.pieces())
        pieces[0].load()  # handed out to the end, but not all loaded
        assert spool.spooled_bytes == 0
        assert np.array_equal(rows(spool), table)
        assert spool.spooled_bytes == table.nbytes


def test_fast_sources_pass_through(table):
    source = scan(table)
    with spooled(source) as same:
        assert same is source


def test_it_is_a_source(path):
    with spooled(scan(path)) as spool:
        assert scan(spool) is spool
        assert spool.fingerprint() == scan(path).fingerprint()


def test_a_query_that_gives_other_rows_each_time_is_an_error(monkeypatch):
    query = "SELECT random() AS a, random() AS b, random() AS c FROM range(5000)"
    monkeypatch.setenv("FOLDWISE_SPOOL_LIMIT", "1")  # so that every pass runs the query again
    for fit in (fw.PCA(1, svd_solver="krylov").fit, fw.KMeans(3).fit, fw.GaussianMixture(2).fit):
        with pytest.raises(DataError, match="not those of an earlier pass"):
            fit(query)
    weighted = fw.scan("SELECT a, a % 3 AS b, 1 + random() AS w FROM range(5000) t(a) ORDER BY a", weights="w")
    with pytest.raises(DataError, match="not those of an earlier pass"):
        fw.KMeans(3).fit(weighted)
    steady = "SELECT a, a * a % 7 AS b FROM range(5000) t(a) ORDER BY a"
    assert fw.KMeans(3).fit(steady).n_iter_ >= 1
    monkeypatch.delenv("FOLDWISE_SPOOL_LIMIT")
    assert fw.KMeans(3).fit(query).n_iter_ >= 1  # read once, and kept
