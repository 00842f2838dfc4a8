"""scikit-learn's own test_k_means.py with our class in place of theirs: it fails only where their private details are meant."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

# Every failure, and why it is meant to be. Keys are test functions, or single cases of them.
MEANT = {
    "test_kmeans_init_auto_with_initial_centroids[KMeans": "reads the private attribute _n_init (theirs)",
    "test_n_init_auto[KMeans": "reads the private attribute _n_init",
    "test_sample_weight_init": "calls the private method _init_centroids; what it means is tested in test_kmeans_seeding.py",
    "test_sample_weight_zero": "calls the private method _init_centroids; what it means is tested in test_kmeans_seeding.py",
    "test_kmeans_verbose": "expects lines on standard output: our models do not print, fw.progress() shows progress",
    "test_warning_elkan_1_cluster": "expects a warning that elkan makes no sense for one cluster: ours is right there too",
}

# MiniBatchKMeans is theirs, and so are the functions k_means and kmeans_plusplus: what tests only those is left out.
THEIRS = "not MiniBatch and not minibatch and not test_k_means_function and not test_kmeans_plusplus"

# A pytest plugin that puts our class in the place of theirs before their tests are collected.
PLUGIN = """
import sklearn.cluster
import foldwise
sklearn.cluster.KMeans = foldwise.KMeans
"""


def test_only_private_details_fail(tmp_path):
    spec = importlib.util.find_spec("sklearn.cluster.tests.test_k_means")
    if spec is None or spec.origin is None:
        pytest.skip("this scikit-learn was installed without its tests")
    (tmp_path / "swap_kmeans.py").write_text(PLUGIN)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "OMP_NUM_THREADS": "1",
        "SKLEARN_RUN_FLOAT32_TESTS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "swap_kmeans", "-p", "no:cacheprovider"]
    command += ["-c", str(tmp_path / "pytest.ini"), "-k", THEIRS, "-rf", spec.origin]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    failed = re.findall(r"^FAILED \S*?::(.+?)(?: - .*)?$", done.stdout, flags=re.MULTILINE)
    assert re.search(r"\d{3,} passed", done.stdout), done.stdout[-2000:]
    unexpected = [name for name in failed if not name.startswith(tuple(MEANT))]
    assert not unexpected
    # A reason that nothing needs any more is struck from the list.
    unneeded = [reason for reason in MEANT if not any(name.startswith(reason) for name in failed)]
    assert not unneeded
