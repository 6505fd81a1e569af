"""Measure candidates in interleaved rounds, so that other load affects all of them; save results."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
PACKAGES = (
    "penstock",
    "nvidia-dali-cuda120",
    "nvidia-dali-cuda130",
    "numpy",
    "numba",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "nvidia-nvimgcodec-cu12",
    "nvidia-nvimgcodec-cu13",
    "simplejpeg",
    "opencv-python-headless",
    "pillow",
    "torch",
    "torchvision",
    "torchaudio",
    "albumentations",
    "librosa",
    "scipy",
    "soundfile",
    "webdataset",
    "litdata",
)
# `git archive` replaces this by the commit's hash, for machines to which only the files are copied.
_ARCHIVED_COMMIT = "$Format:%h$"
Run = Callable[[], Any]


def cpu_ms(run: Run, seconds: float) -> float:
    """Return the processor time of one run, of all threads, in milliseconds."""
    count, cpu, wall = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        run()
        count += 1
    return (time.process_time() - cpu) / count * 1e3


def wall_ms(run: Run, seconds: float) -> float:
    """Return the wall time of one run in milliseconds."""
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        run()
        count += 1
    return (time.perf_counter() - begin) / count * 1e3


def gpu_ms(run: Run, seconds: float, before: int = 4) -> float:
    """Return the wall time of one run of work on a GPU in milliseconds, after ``before`` runs to warm up. Runs are queued without waiting
    for each other; the time ends when the GPU has completed all of them.
    """
    import cupy

    for _ in range(before):
        run()
    cupy.cuda.runtime.deviceSynchronize()
    count, wall = 0, time.perf_counter()
    while time.perf_counter() - wall < seconds:
        run()
        count += 1
    cupy.cuda.runtime.deviceSynchronize()
    return (time.perf_counter() - wall) / count * 1e3


def in_turns(
    candidates: Mapping[str, Run],
    measure: Callable[[Run, float], float],
    rounds: int,
    seconds: float,
    summary: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """Return the milliseconds for one run of each candidate: the median of the rounds, or another ``summary`` of them."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()
        run()
    for _ in range(rounds):
        for name, run in candidates.items():
            times[name].append(measure(run, seconds))
    return {name: summary(measured) for name, measured in times.items()}


def surroundings() -> dict[str, Any]:
    """Return the time of a benchmark run, and the machine and the software on which it runs."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load average at the end": round(os.getloadavg()[0], 2),
        "gpu": _gpu(),
        "python": platform.python_version(),
        "versions": versions,
    }


def keep(name: str, rows: list[dict[str, Any]], path: Path | None, **more: Any) -> None:
    """Write a result as JSON, together with further data; do nothing without a path."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        result = {"benchmark": name, **surroundings(), **more, "rows": rows}
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def merge(path: Path, result: Mapping[str, Any], key: Callable[[dict[str, Any]], Any]) -> None:
    """Merge a result into a saved one: replace rows with the same keys, append new rows, and record both runs."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    later = {key(row): row for row in result["rows"]}
    saved["rows"] = [later.pop(key(row), row) for row in saved["rows"]] + list(later.values())
    for name in ("date", "commit"):
        if result[name] not in saved[name]:
            saved[name] = f"{saved[name]}, and {result[name]}"
    path.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


def headline() -> str:
    """Return the surroundings as one line of text."""
    facts = surroundings()
    versions = ", ".join(f"{package} {version}" for package, version in facts["versions"].items())
    where = facts["gpu"] or facts["processor"]
    return f"{facts['date']}, commit {facts['commit']}, {where}, {facts['cores']} cores, {versions}"


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown" if _ARCHIVED_COMMIT.startswith("$") else _ARCHIVED_COMMIT


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpu() -> str:
    try:
        import cupy

        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception:
        return ""
