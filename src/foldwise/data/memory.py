"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path


def available() -> int | None:
    """The bytes of memory that can be taken without making the machine swap; None if it does not say."""
    found = [size for size in (_of_container(), _of_machine()) if size is not None]
    return min(found) if found else None


def _of_container() -> int | None:
    """What is left of the limit of a control group, in which containers run."""
    folder = Path("/sys/fs/cgroup")
    try:
        most, used = (int((folder / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no limit, or another system
        return None
    return max(most - used, 0)


def _of_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on this system
        return None
