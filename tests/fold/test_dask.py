"""Engines crossed with sources and models: one hash each, on this machine's threads and on Dask workers in other processes."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.errors import DataError, MissingFileError, ParameterError

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'foldwise[dask]'")
dask_array = pytest.importorskip("dask.array")
dask_frame = pytest.importorskip("dask.dataframe")

N, D = 100_000, 6
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own making


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
            ) as started,
            distributed.Client(started) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster(2) as started:
        yield started


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.normal(size=(N, D)) * [1, 2, 3, 1, 2, 3] + 6.0 * rng.integers(0, 3, size=(N, 1))


@pytest.fixture(scope="module")
def sources(data: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same rows in every form, of several blocks."""
    folder = tmp_path_factory.mktemp("sources")
    frame = pd.DataFrame(data, columns=list("abcdef"))
    np.save(folder / "x.npy", data)
    frame.to_parquet(folder / "x.parquet", row_group_size=17_000)
    frame.to_csv(folder / "x.csv", index=False)
    array = dask_array.from_array(data, chunks=(13_001, 4))
    return {
        "array": data,
        "frame": frame,
        "npy": str(folder / "x.npy"),
        "parquet": str(folder / "x.parquet"),
        "csv": str(folder / "x.csv"),
        "sql": f"SELECT * FROM '{folder / 'x.parquet'}'",
        "dask array": array,
        "dask array, unknown chunks": array[array[:, 0] > -1e9],
        "dask frame": dask_frame.from_pandas(frame, npartitions=5),
    }


def digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def pca(x: Any, engine: Any) -> str:
    model = fw.PCA(3).fit(x, engine=engine)
    return digest(model.components_, model.explained_variance_, model.mean_)


def krylov(x: Any, engine: Any) -> str:
    model = fw.PCA(2, svd_solver="krylov").fit(x, engine=engine)
    return digest(model.components_, model.explained_variance_)


def kmeans(x: Any, engine: Any) -> str:
    model = fw.KMeans(4, max_iter=5, tol=0).fit(x, engine=engine)
    return digest(model.cluster_centers_, model.labels_, model.inertia_)


def kmeans_parallel(x: Any, engine: Any) -> str:
    model = fw.KMeans(4, init="k-means||", scale=True, max_iter=5, tol=0).fit(x, engine=engine)
    return digest(model.cluster_centers_, model.labels_, model.inertia_)


def kmeans_breathing(x: Any, engine: Any) -> str:
    model = fw.KMeans(4, search="breathing", metric="cosine", max_iter=3).fit(x, engine=engine)
    return digest(model.cluster_centers_, model.labels_, model.inertia_)


def minibatch(x: Any, engine: Any) -> str:
    model = fw.MiniBatchKMeans(4, max_iter=3).fit(x, engine=engine)
    return digest(model.cluster_centers_, model.labels_, model.inertia_)


def mixture(x: Any, engine: Any) -> str:
    model = fw.GaussianMixture(3, max_iter=3).fit(x, engine=engine)
    return digest(model.means_, model.covariances_, model.weights_)


def soft(x: Any, engine: Any) -> str:
    model = fw.SoftKMeans(3, beta=0.05, max_iter=3).fit(x, engine=engine)
    return digest(model.cluster_centers_, model.labels_, model.inertia_)


def distribution(x: Any, engine: Any) -> str:
    chosen = fw.scan(x, columns=[0]) if not isinstance(x, str) or x.endswith(".npy") else fw.scan(x, columns=["a"])
    fit = fw.fit_distribution(chosen, ["normal", "logistic"], engine=engine)
    return digest(*(list(fit[name].parameters.values()) for name in ("normal", "logistic")))


def silhouette(x: Any, engine: Any) -> str:
    labels = np.arange(N) % 3
    found = fw.silhouette(x, labels, sample_size=100, engine=engine)
    return digest(found.mean, found.cluster_errors, fw.squared_silhouette(x, labels, engine=engine).mean)


def selector(x: Any, engine: Any) -> str:
    model = fw.FeatureSelector(3, search="exhaustive").fit(x, engine=engine)
    return digest(model.support_, model.coefficients_, model.score_)


def autoencoder(x: Any, engine: Any) -> str:
    model = fw.Autoencoder(2, encoder=[8], max_iter=1, batch_size=4096).fit(x, engine=engine)
    return digest(model.encoder_.layers[0].weights, model.decoder_.layers[-1].bias, model.held_out_error_)


def predictions(x: Any, engine: Any) -> str:
    model = fw.KMeans(3, max_iter=2).fit(np.linspace(-9, 9, 600).reshape(100, 6) ** 3)
    with fw.engine(engine):
        return digest(model.predict(x), model.transform(x))


MODELS: list[Callable[[Any, Any], str]] = [
    pca,
    krylov,
    kmeans,
    kmeans_parallel,
    kmeans_breathing,
    minibatch,
    mixture,
    soft,
    distribution,
    silhouette,
    selector,
    autoencoder,
    predictions,
]
ENGINES = ["serial", ("threads", 2), ("threads", 3)]


def reference(model: Callable[[Any, Any], str], sources: dict[str, Any]) -> str:
    """What one thread finds for the rows in memory."""
    return model(sources["array"], "serial")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_threads_and_sources_do_not_change_a_bit(model: Callable[[Any, Any], str], sources: dict[str, Any]) -> None:
    wanted = reference(model, sources)
    for number, (name, source) in enumerate(sources.items()):
        engine = ENGINES[number % len(ENGINES)]
        chosen = fw.engine(*engine) if isinstance(engine, tuple) else engine
        assert model(source, chosen) == wanted, (name, engine)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_dask_does_not_change_a_bit(model: Callable[[Any, Any], str], sources: dict[str, Any], client: Any) -> None:
    wanted = reference(model, sources)
    few = ("array", "npy", "dask frame") if model is kmeans_breathing else sources  # which takes a hundred passes
    for name in few:
        assert model(sources[name], client) == wanted, name


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_number_of_workers_does_not_change_a_bit(n_workers: int, sources: dict[str, Any]) -> None:
    with cluster(n_workers) as client:
        for model in (pca, kmeans, mixture):
            for name in ("array", "npy", "dask frame"):
                assert model(sources[name], client) == reference(model, sources), (model.__name__, name)


# ---------------------------------------------------------------- what users meet


def test_an_engine_is_a_context_and_an_address(data: np.ndarray, client: Any) -> None:
    wanted = fw.KMeans(3, max_iter=3).fit(data).labels_
    with fw.engine("dask", client):
        assert np.array_equal(fw.KMeans(3, max_iter=3).fit_predict(data), wanted)
    found = fw.KMeans(3, max_iter=3).fit(data, engine=client.scheduler.address)
    assert np.array_equal(found.labels_, wanted)


def test_weights_go_to_the_workers_that_need_them(data: np.ndarray, sources: dict[str, Any], client: Any) -> None:
    weights = np.random.default_rng(0).integers(0, 4, N).astype(float)
    wanted = fw.KMeans(3, max_iter=4).fit(data, sample_weight=weights)
    for name in ("array", "npy", "csv", "dask array", "dask frame"):
        found = fw.KMeans(3, max_iter=4).fit(sources[name], sample_weight=weights, engine=client)
        assert found.cluster_centers_.tobytes() == wanted.cluster_centers_.tobytes(), name
        assert np.array_equal(found.labels_, wanted.labels_)


def test_a_bad_value_on_a_worker_is_the_same_error(data: np.ndarray, tmp_path: Path, client: Any) -> None:
    x = data.copy()
    x[71_234, 4] = np.nan
    np.save(tmp_path / "x.npy", x)
    for source in (x, str(tmp_path / "x.npy"), dask_array.from_array(x, chunks=(9_000, 6))):
        with pytest.raises(DataError, match=r"row 71234 .*column 4.*NaN"):
            fw.KMeans(3).fit(source, engine=client)
    assert fw.KMeans(3, max_iter=1).fit(data, engine=client).labels_.shape == (N,)  # and the workers still work


def test_empty_clusters_are_filled_on_workers(client: Any) -> None:
    x = np.repeat(np.arange(4.0), 40_000).reshape(-1, 1) * np.ones((1, 5))
    start = np.zeros((4, 5)) + np.array([[0.0], [50.0], [60.0], [70.0]])
    here = fw.KMeans(4, init=start).fit(x)
    there = fw.KMeans(4, init=start).fit(x, engine=client)
    assert there.inertia_ == here.inertia_ == 0.0
    assert np.array_equal(here.labels_, there.labels_)


def test_killed_between_engines(data: np.ndarray, tmp_path: Path, client: Any) -> None:
    """A checkpoint that threads wrote is taken up by Dask."""
    wanted = fw.KMeans(5, max_iter=12, tol=0).fit(data)
    file = tmp_path / "fit.checkpoint"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fw.KMeans(5, max_iter=4, tol=0, checkpoint=file).fit(data)
        found = fw.KMeans(5, max_iter=12, tol=0, checkpoint=file).fit(data, engine=client)
    assert found.manifest_.resumed_at == 4
    assert found.cluster_centers_.tobytes() == wanted.cluster_centers_.tobytes()


def test_what_is_no_engine() -> None:
    with pytest.raises(ParameterError, match="'sparks' is not known"):
        fw.KMeans(2).fit(np.eye(3), engine="sparks")
    with pytest.raises(ParameterError, match=r"takes a distributed\.Client"):
        fw.engine("dask", 3)
    with pytest.raises(ParameterError, match="at least one thread, as a whole number"):
        fw.engine("threads", 0)


def test_collections_are_checked_like_arrays(client: Any) -> None:
    x = dask_array.zeros((100, 3), chunks=(30, 3))
    with pytest.raises(DataError, match="where= is not possible for a Dask collection"):
        fw.scan(x, where="a > 1")
    with pytest.raises(DataError, match="Expected 2D array"):
        fw.scan(x[:, 0])
    with pytest.raises(DataError, match="99 weights were given for 100 rows"):
        fw.PCA().fit(x, sample_weight=np.ones(99))
    frame = dask_frame.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1)
    with pytest.raises(DataError, match="does not hold numbers"):
        fw.scan(frame, columns=["b"])
    assert fw.scan(frame, columns="numeric").left_out == ("b",)
    with pytest.raises(MissingFileError):
        fw.KMeans(2).fit("nowhere.npy", engine=client)


# ---------------------------------------------------------------- found by review


def test_a_query_whose_order_is_free_is_read_once(tmp_path: Path, client: Any) -> None:
    """Groups of a query come in another order each time it runs: ranges of them would lose some and repeat others."""
    frame = pd.DataFrame({"g": np.arange(300_000) % 150_001, "v": np.ones(300_000)})
    frame.to_parquet(tmp_path / "t.parquet")
    query = f"SELECT g, sum(v) AS v FROM '{tmp_path / 't.parquet'}' GROUP BY g"
    for engine in ("threads", client):
        assert fw.PCA(1).fit(query, engine=engine).mean_[0] == pytest.approx(75_000.0, rel=1e-12)


def test_blocks_of_other_heights_on_workers(client: Any) -> None:
    x = np.random.default_rng(0).normal(size=(3_000, 2))
    model = fw.KernelKMeans(3).fit(x)
    with fw.engine(client):
        assert np.array_equal(model.predict(x), model.labels_)


def test_output_of_widened_rows(data: np.ndarray, tmp_path: Path, client: Any) -> None:
    from foldwise.report.write_rows import write_transformed as write_rows

    model = fw.KMeans(3, max_iter=2).fit(data)
    np.save(tmp_path / "x.npy", np.tile(data.astype(np.float32), (3, 1)))
    source = fw.scan(str(tmp_path / "x.npy"))
    with fw.engine(client):
        write_rows(model, source, tmp_path / "there.npy")
    write_rows(model, source, tmp_path / "here.npy")
    assert (tmp_path / "here.npy").read_bytes() == (tmp_path / "there.npy").read_bytes()


def test_a_condition_on_a_frame_and_an_empty_selection(data: np.ndarray, client: Any) -> None:
    frame = pd.DataFrame(data, columns=list("abcdef"))
    here, there = (fw.PCA(2).fit(fw.scan(frame, where="a > 0"), engine=engine) for engine in ("threads", client))
    assert here.mean_.tobytes() == there.mean_.tobytes()
    with pytest.raises(DataError, match="0 sample"):
        fw.PCA(2).fit(fw.scan(frame, where="a > 1e9"), engine=client)


def test_an_engine_in_several_threads(data: np.ndarray, client: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    engines = [fw.engine("threads", 2), fw.engine("dask", client)]
    wanted = fw.KMeans(3, max_iter=2).fit(data).labels_
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(fw.KMeans(3, max_iter=2).fit, data, engine=engines[i % 2]) for i in range(4)]
        assert all(np.array_equal(fit.result().labels_, wanted) for fit in fits)


def test_a_spooled_source_goes_to_workers(sources: dict[str, Any], client: Any) -> None:
    from foldwise.data.spool import spooled

    with spooled(fw.scan(sources["csv"])) as source:
        here = fw.KMeans(3, max_iter=2).fit(source)  # completes the scratch file
        with fw.engine(client):
            assert np.array_equal(here.predict(source), here.labels_)


@pytest.mark.parametrize("given", [("serial", 4), ("threads", "4"), ("threads", 2, 3), ("dask",)])
def test_wrong_arguments_of_an_engine(given: Any) -> None:
    with pytest.raises(ParameterError):
        fw.engine(*given)


def test_a_lost_worker_is_an_error() -> None:
    """It was waited for without end."""
    import os
    import signal

    from foldwise.errors import EngineError
    from foldwise.fold import events

    x = np.random.default_rng(0).normal(size=(250_000, 6))
    with cluster(2) as client:
        pid = sorted(client.run(os.getpid).items())[1][1]

        def kill(event: Any) -> None:
            if isinstance(event, events.StepDone) and event.number == 3:
                os.kill(pid, signal.SIGKILL)

        lost = pytest.raises(EngineError, match=r"the Dask worker tcp://.* was lost.*checkpoint")
        with events.listening(kill), lost:
            fw.KMeans(60, init="random", tol=0, search="breathing", random_state=1).fit(x, engine=client)


def test_a_client_that_is_closed_or_asynchronous(data: np.ndarray) -> None:
    from foldwise.errors import EngineError

    with cluster(1) as client:
        pass
    with pytest.raises(EngineError, match="the Dask client is closed"):
        fw.KMeans(3).fit(data, engine=client)
    with pytest.raises(EngineError, match=r"the Dask scheduler at tcp://nowhere cannot be reached"):
        fw.KMeans(3).fit(data, engine="tcp://nowhere")


def test_a_small_collection_is_computed_once(client: Any) -> None:
    """All of it is one block, which this process works on; it was computed again for every pass."""
    counted: list[int] = []

    def chunk(block: Any) -> Any:
        counted.append(1)
        return block

    x = dask_array.from_array(np.random.default_rng(0).normal(size=(900, 4)), chunks=(300, 4))
    lazy = x.map_blocks(chunk, dtype=float, meta=np.empty((0, 0)))
    import dask

    with dask.config.set(scheduler="synchronous"):
        fw.KMeans(3).fit(lazy, engine=client)
    assert len(counted) == 3


@pytest.mark.parametrize("kind", ["array", "parquet", "npy", "dask frame"])
def test_rows_with_categories(client: Any, data: np.ndarray, kind: str, tmp_path: Path) -> None:
    from foldwise.prepare.encode import Levels, expanded

    codes = np.column_stack([data[:, 0], np.digitize(data[:, 1], [0, 5, 9]), np.digitize(data[:, 2], [3])])
    frame = pd.DataFrame(codes, columns=["u", "a", "b"])
    frame.to_parquet(tmp_path / "codes.parquet")
    np.save(tmp_path / "codes.npy", codes)
    given = {
        "array": codes,
        "parquet": str(tmp_path / "codes.parquet"),
        "npy": str(tmp_path / "codes.npy"),
        "dask frame": dask_frame.from_pandas(frame, npartitions=5),
    }
    levels = (None, Levels("a", ("1", "2", "3", "4"), (1.0,) * 4), Levels("b", ("n", "y"), (1.0, 1.0)))
    for model in (pca, kmeans):
        here = model(expanded(fw.scan(codes), levels), "threads")
        assert model(expanded(fw.scan(given[kind]), levels), client) == here, model.__name__


def test_images_are_read_by_the_workers(tmp_path: Path, client: Any) -> None:
    """A folder and a compressed archive: pieces are decoded where they are used, and a bad file is named as here."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 255, (2200, 40, 40), dtype=np.uint8)  # more than one block
    for number, one in enumerate(pixels):
        image.fromarray(one).save(tmp_path / f"img{number}.bmp")
    np.savez(tmp_path / "x.npz", images=pixels)
    expected = fw.KMeans(3, random_state=0, search="none", max_iter=4, tol=0).fit(
        pixels.reshape(2200, -1).astype(np.float32)
    )
    for given in (str(tmp_path / "*.bmp"), str(tmp_path / "x.npz")):
        with fw.engine(client):
            found = fw.KMeans(3, random_state=0, search="none", max_iter=4, tol=0).fit(given)
        assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)
        assert np.array_equal(found.labels_, expected.labels_)
    content = (tmp_path / "img1900.bmp").read_bytes()
    (tmp_path / "img1900.bmp").write_bytes(content[:600])
    with fw.engine(client), pytest.raises(DataError, match=r"img1900"):
        fw.KMeans(3, random_state=0).fit(str(tmp_path / "*.bmp"))
