"""A fit that is killed without warning goes on from its checkpoint and ends with the same bits."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import foldwise as fw

# Every step waits, so that the parent has time to kill in the middle of the fit.
CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
path, checkpoint, solver = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.3) if isinstance(event, events.StepDone) else None):
    fw.PCA(3, svd_solver=solver, checkpoint=checkpoint).fit(path)
print("finished")
"""


@pytest.mark.parametrize("solver", ["krylov", "power"])
def test_killed_and_resumed(solver, tmp_path):
    rng = np.random.default_rng(0)
    d = 60
    spreads = 1.0 / np.sqrt(np.arange(1, d + 1))  # a slow spectrum, so that there are many steps
    path, checkpoint = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    np.save(path, rng.standard_normal((9000, d)) * spreads + 100)
    undisturbed = fw.PCA(3, svd_solver=solver).fit(path)
    assert undisturbed.outcome_.steps > 4

    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(checkpoint), solver], stdout=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert "finished" not in (child.communicate()[0] or "")
    assert checkpoint.exists()

    resumed = fw.PCA(3, svd_solver=solver, checkpoint=checkpoint).fit(path)
    assert 0 < resumed.manifest_.resumed_at < undisturbed.outcome_.steps
    assert resumed.outcome_.steps == undisturbed.outcome_.steps
    for name in ("components_", "explained_variance_", "mean_", "residuals_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(undisturbed, name), err_msg=name)
    assert resumed.trace_ == undisturbed.trace_
    assert not checkpoint.exists()
