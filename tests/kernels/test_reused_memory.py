"""Large arrays in the memory of earlier ones (cpp/reused_memory.cpp)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from foldwise.kernels import _core
from foldwise.kernels.targets import integer_rows

_COUNT = (8 << 20) // 4

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps the memory (MADV_FREE)")


@linux
def test_memory_of_a_dropped_array_is_used_again():
    first = _core.reused_integers(_COUNT)
    first[:] = 7
    place = first.ctypes.data
    del first
    again = _core.reused_integers(_COUNT - 1000)
    assert again.ctypes.data == place
    again[:] = 8
    assert (again == 8).all()


def test_a_view_keeps_its_memory():
    rows = integer_rows(_COUNT // 50, 98)
    part = rows[17:][:, 3:]
    part[:] = 5
    del rows
    other = integer_rows(_COUNT // 50, 98)
    other[:] = 6
    assert (part == 5).all()
    assert not np.shares_memory(part, other)


def test_arrays_of_other_sizes():
    for count in (_COUNT, 8 * _COUNT, _COUNT // 2, 3 * _COUNT, 1):
        array = _core.reused_integers(count)
        array[:] = count
        assert array.shape == (count,)
        assert (array == count).all()


@linux
def test_small_and_very_large_arrays_leave_the_spare_memory_alone():
    rows = integer_rows(_COUNT // 50, 98)
    place = rows.ctypes.data
    del rows
    for n in (10, (256 << 20) // 200 + 1):
        integer_rows(n, 98)
    assert integer_rows(_COUNT // 50, 98).ctypes.data == place


@pytest.mark.parametrize("count", [0, 1 << 62, 1 << 60])
def test_what_cannot_be_had_is_a_memory_error(count):
    with pytest.raises(MemoryError):
        _core.reused_integers(count)


def test_threads_never_share_an_array():
    wrong: list[int] = []
    end = time.monotonic() + 0.5

    def use(number: int) -> None:
        while time.monotonic() < end:
            array = _core.reused_integers(_COUNT)
            array[::1024] = number
            time.sleep(0.001)
            if (array[::1024] != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_memory_of_its_own():
    code = """
import os
from foldwise.kernels import _core
array = _core.reused_integers(2 << 20)
array[:] = 1
place = array.ctypes.data
del array
child = os.fork()
again = _core.reused_integers(2 << 20)
assert again.ctypes.data == place or os.uname().sysname != "Linux"
again[:] = 2 + (child == 0)
if child == 0:
    os._exit(int((again != 3).any()))
assert os.waitpid(child, 0)[1] == 0
assert (again == 2).all()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
