"""The memory and the processes that this machine has room for, or the container in which this process runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS, _CGROUP_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def machine_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or what its container (cgroup) allows."""
    return min([_total_memory(), *_cgroup_limits()])


def _total_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) << 10
    raise AssertionError("/proc/meminfo has no line MemTotal")


def _cgroup_limits() -> Iterator[int]:
    """Yield the memory limits of this process's cgroup and of the cgroups above it, for cgroup versions 2 and 1."""
    for line in _CGROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        # In version 1, each controller has a separate tree of groups.
        root, name = (_CGROUP_ROOT / "memory", "memory.limit_in_bytes") if controllers else (_CGROUP_ROOT, "memory.max")
        # In a container, this may be the path as seen from outside.
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(root) and (group / name).is_file():
                text = (group / name).read_text().strip()
                if text != "max":
                    yield int(text)


def processes_of(memory_bytes: int) -> int:
    """Return how many processes may work at once that take ``memory_bytes`` each: at least one, and at most one for each core."""
    return max(min(len(os.sched_getaffinity(0)), machine_memory() // memory_bytes), 1)
