"""The one way in which files are written: whole or not at all, with the mode of what they replace, and no leftovers."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data import atomic, scratch
from foldwise.data.atomic import Replacement, replacing
from foldwise.data.write import open_writer
from foldwise.errors import OutputError, ParameterError, StoreError

X = np.random.default_rng(0).standard_normal((30, 3))
PCA = fw.PCA(2).fit(X)


def write(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"new")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set after the import of Foldwise, as a program may do."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("name", ["m.fw", "x.csv", "x.parquet", "x.npy"])
def test_new_files_heed_the_umask(tmp_path: Path, umask: int, name: str) -> None:
    if name == "m.fw":
        fw.save(PCA, tmp_path / name)
    else:
        with open_writer(tmp_path / name, ["a", "b", "c"], np.float64) as writer:
            writer.write(X)
    assert mode(tmp_path / name) == 0o666 & ~umask


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o664, 0o755])
@pytest.mark.parametrize("name", ["m.fw", "x.csv", "x.npy"])
def test_files_keep_the_mode_of_those_they_replace(tmp_path: Path, wanted: int, name: str) -> None:
    path = tmp_path / name
    path.write_text("old")
    path.chmod(wanted)
    if name == "m.fw":
        fw.save(PCA, path)
    else:
        with open_writer(path, ["a", "b", "c"], np.float64) as writer:
            writer.write(X)
    assert mode(path) == wanted
    assert path.read_bytes() != b"old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_files_keep_the_owner_of_those_they_replace(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    path.chmod(0o2750)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1234, 2345, 0o2750)


def test_an_owner_that_cannot_be_kept_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o640)
    asked = []

    def refused(*arguments: int) -> None:
        asked.append(arguments)
        raise PermissionError(errno.EPERM, "not yours")

    replacement = Replacement(path)
    replacement._before = os.stat_result([0o100640, 0, 0, 1, 4321, 5432, 3, 0, 0, 0])
    monkeypatch.setattr(os, "fchown", refused)
    replacement.settle()
    replacement.close()
    assert [one[1:] for one in asked] == [(4321, -1), (-1, 5432)]
    assert mode(path) == 0o640


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(Path("folder") / "file")
    for _ in range(2):  # first the file is missing
        write(link)
        assert link.is_symlink()
        assert target.read_bytes() == b"new"
        target.write_text("old")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "link"]


def test_what_cannot_be_replaced_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for path, words in [
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "a device or a pipe"),
        (tmp_path / "no" / "x", r"the folder .*no does not exist"),
        (tmp_path / "round", "symbolic links"),
        (tmp_path / ("x" * 300), "name too long"),
    ]:
        with pytest.raises(OutputError, match=rf"(?i){path.name}: cannot be written: .*{words}") as caught:
            write(path)
        assert isinstance(caught.value, OSError)
        assert isinstance(caught.value, StoreError)
    assert sorted(os.listdir(tmp_path)) == ["pipe", "round"]


def test_long_names_are_possible(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write(path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("denied", "words"), [("file", "read-only"), ("folder", "no permission to write to the folder")]
)
def test_permissions_are_heeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: str, words: str) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    refused = str(path if denied == "file" else tmp_path)
    access = os.access  # simulated, since root may do everything
    monkeypatch.setattr(os, "access", lambda one, how: one != refused and access(one, how))
    with pytest.raises(OutputError, match=words) as caught:
        write(path)
    assert caught.value.errno == errno.EACCES
    assert path.read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_files_and_folders(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(OutputError, match="read-only"):
        write(path)
    path.chmod(0o644)
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError, match="no permission"):
        write(path)
    tmp_path.chmod(0o755)
    assert path.read_text() == "old"


def test_a_full_disk_is_told_and_the_old_file_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"x: cannot be written: No space left on device\. The old file is unch") as e:
        write(path)
    assert e.value.errno == errno.ENOSPC
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


# ---------------------------------------------------------------- leftovers

# Writes half a file and half a table, says so, and waits to be killed.
CHILD = """
import sys, time
import numpy as np
from foldwise.data.atomic import replacing
from foldwise.data.write import open_writer
with replacing(sys.argv[1]) as file, open_writer(sys.argv[2], ["a"], np.float64) as writer:
    file.write(b"half")
    writer.write(np.zeros((10, 1)))
    print("writing", flush=True)
    time.sleep(60)
"""


def test_leftovers_of_the_killed_are_removed_and_of_the_living_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setenv("FOLDWISE_SCRATCH", str(place))
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "x").write_text("old")
    foreign = folder / ".x.abc.part"
    foreign.write_text("not ours")

    def parts() -> list[str]:
        return sorted(name for name in os.listdir(folder) if name.endswith(".foldwise-part"))

    command = [sys.executable, "-c", CHILD, str(folder / "x"), str(folder / "t.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        living = parts()
        assert len(living) == 2
        assert len(os.listdir(place)) == 1
        write(folder / "x")  # while it runs
        with open_writer(folder / "y.csv", ["a"], np.float64) as writer:
            writer.write(np.zeros((3, 1)))
        assert parts() == living
        assert len(os.listdir(place)) == 2
        os.kill(child.pid, signal.SIGKILL)
    assert parts() == living
    assert (folder / "x").read_text() == "new"
    write(folder / "other")
    assert parts() == []
    assert sorted(os.listdir(folder)) == [foreign.name, "other", "x", "y.csv"]
    mine = scratch.folder()
    scratch._tidy(str(place))
    assert os.listdir(place) == [os.path.basename(mine)]


def test_a_folder_that_may_not_be_listed_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refused(folder: Any, *others: Any) -> Any:
        if folder != str(tmp_path):
            return opened(folder, *others)
        raise PermissionError(errno.EACCES, "not for you", folder)

    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", refused)
        patched.setattr(os, "open", refused)  # as for the sync of the folder
        write(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"new"


def test_a_pipe_with_the_name_of_a_leftover_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".x.0123456789ab.foldwise-part")
    write(tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]


def test_errors_of_writing_can_be_pickled() -> None:
    with pytest.raises(OutputError) as caught:
        write(Path("/nowhere/x"))
    pytest.importorskip("tblib.pickling_support").install()  # Dask does, and it makes exceptions in its own way
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is OutputError
    assert str(again) == str(caught.value)
    assert "/nowhere" in str(again)


def test_large_folders_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_LARGE", 3)
    for number in range(4):
        (tmp_path / str(number)).touch()
    left = tmp_path / ".x.0123456789ab.foldwise-part"
    left.touch()
    write(tmp_path / "x")
    assert not left.exists()
    left.touch()
    write(tmp_path / "x")
    assert left.exists()


def test_the_scratch_folder_goes_with_the_process(tmp_path: Path) -> None:
    code = "from foldwise.data import scratch; import os; print(os.path.basename(scratch.folder()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"FOLDWISE_SCRATCH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith("foldwise-scratch-")
    assert os.listdir(tmp_path) == []


def test_a_scratch_folder_that_was_removed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDWISE_SCRATCH", str(tmp_path))
    first = scratch.folder()
    assert scratch.folder() == first
    os.rmdir(first)
    assert os.path.isdir(scratch.folder())
    monkeypatch.setenv("FOLDWISE_SCRATCH", str(tmp_path / "nowhere"))
    with pytest.raises(ParameterError, match="is not a folder"):
        scratch.folder()
