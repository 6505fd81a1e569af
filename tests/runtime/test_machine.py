"""The memory and the cores that a process may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import machine
from penstock.machine import machine_memory, processes_of


def test_machines_and_containers_have_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < machine_memory() <= machine._total_memory()
    monkeypatch.setattr(machine, "_cgroup_limits", lambda: iter([5 * (1 << 20), 7 * (1 << 20)]))
    assert machine_memory() == 5 * (1 << 20)


def test_the_smallest_limit_of_nested_groups_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    group = tmp_path / "pod" / "container"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group.parent / "memory.max").write_text("1000\n")
    (tmp_path / "cgroup").write_text("0::/pod/container\n")
    monkeypatch.setattr(machine, "_CGROUP_ROOT", tmp_path)
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "cgroup")
    assert list(machine._cgroup_limits()) == [1000]


def test_processes_have_memory_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_memory", lambda: 10 << 30)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(16)))
    assert [processes_of(size << 30) for size in (1, 3, 20)] == [10, 3, 1]
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {5, 7})
    assert processes_of(1 << 30) == 2
