"""CPU time and memory of processes, as reported by Linux."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents[int(entry.name)] = int(fields[1])
    found = [root]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def cpu_seconds(root: int) -> float:
    """Return the processor time that a process and its descendants have used, in seconds, with a resolution of nanoseconds."""
    return sum(map(_cpu_seconds, tree(root)))


def resident_bytes(root: int) -> int:
    """Return the resident memory of a process and all its descendants, without pages that may be shared, such as those of libraries."""
    total = 0
    for one in tree(root):
        try:
            resident, shared = map(int, (Path("/proc") / str(one) / "statm").read_text().split()[1:3])
        except OSError:
            continue
        total += (resident - shared) * _PAGE
    return total


def busy_seconds() -> float:
    """Return the processor time that the whole machine has used since it started, in seconds."""
    user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + soft) / _TICKS


def _cpu_seconds(process: int) -> float:
    # This is Linux's number of a process's clock (see clock_getcpuclockid(3)). The times in /proc/<process>/stat are
    # sampled at each tick: a thread that runs for less than a tick is missed, or counted as a full tick.
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def _stat(process: int) -> list[str]:
    """Return the fields of ``/proc/<process>/stat`` after the name, from the state on."""
    try:
        text = (Path("/proc") / str(process) / "stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
