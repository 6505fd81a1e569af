"""The threads on which the core computes batches: how many, and on which cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[2] / "backend"
# Runs a chain over many images in a separate process, so that its threads can be counted.
PROGRAM = """
import os
import resource
import sys
import threading
import time
import numpy as np
from penstock.core import chains
from penstock.core.arrays import addresses
from penstock.core.chains import StageKind, StageRecords, placements, run_chain
from penstock.core.loading import core

chains.WORTH_WAKING_NS = int(sys.argv[1])
side, count = int(sys.argv[2]), 64
arrays = [np.full((side, side, 3), n, np.uint8) for n in range(count)]
outputs = [np.zeros((side, side, 3), np.uint8) for _ in arrays]
shapes = np.full((count, 3), (side, side, 3))
stage = StageRecords(StageKind.PLACEMENT, placements(0, shapes, shapes, 1), shapes, 1)
core()
before = len(os.listdir("/proc/self/task"))

def run(cores=None):
    assert run_chain(addresses(arrays), shapes, 1, [stage], addresses(outputs), 4, cores)
    assert all((output == array).all() for output, array in zip(outputs, arrays))
    print(len(os.listdir("/proc/self/task")) - before)
"""


def started(what: str, worth_waking_ns: int, side: int) -> list[int]:
    """Run the program followed by ``what``; return the numbers of additional threads that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + what, str(worth_waking_ns), str(side)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
    )
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="threads are not shared on one core")
def test_others_are_woken_only_for_what_takes_long() -> None:
    few, many = 1, min(4, len(os.sched_getaffinity(0))) - 1
    assert started("run()", 10**9, 8) == [0]
    assert started("run()", 0, 8) == [many]
    # Samples of this size count as long work, even if the time per sample is short.
    assert started("run()", 10**9, 256)[0] >= few


def test_on_one_core_the_calling_thread_does_all() -> None:
    assert started("os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); run()", 0, 64) == [0]


def test_threads_that_the_system_refuses_are_not_needed() -> None:
    # With this limit, there is no room for the stack of another thread.
    refused = """
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 20),) * 2)
run()
"""
    assert started(refused, 0, 64) == [0]


def test_the_calling_thread_is_bound_while_it_works() -> None:
    bound = """
allowed = os.sched_getaffinity(0)
seen, done = set(), threading.Event()
own = threading.get_native_id()
def watch():
    while not done.is_set():
        seen.add(frozenset(os.sched_getaffinity(own)))
watching = threading.Thread(target=watch)
watching.start()
first = min(allowed)
while frozenset([first]) not in seen or frozenset(allowed) not in seen:
    run_chain(addresses(arrays), shapes, 1, [stage], addresses(outputs), 1, [first])
done.set()
watching.join()
assert seen <= {frozenset([first]), frozenset(allowed)}, seen
assert os.sched_getaffinity(0) == allowed
run([first])
# The thread that watched is joined, but the system may list it for a moment longer.
tasks = set(map(int, os.listdir("/proc/self/task"))) - {watching.native_id}
others = {frozenset(os.sched_getaffinity(task)) for task in tasks}
assert others <= {frozenset([first]), frozenset(allowed)}, others
run()
"""
    assert len(started(bound, 0, 64)) == 2


def test_threads_started_by_a_bound_thread_are_not_bound() -> None:
    inherited = """
allowed = os.sched_getaffinity(0)
def work():
    os.sched_setaffinity(0, {min(allowed)})
    run()
thread = threading.Thread(target=work)
thread.start()
thread.join()
# The pool's thread frees itself when it first runs.
for _ in range(1000):
    masks = {frozenset(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task")}
    if masks == {frozenset(allowed)}:
        break
    time.sleep(0.01)
assert masks == {frozenset(allowed)}, masks
"""
    assert len(started(inherited, 0, 64)) == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_forked_while_threads_work_goes_on() -> None:
    forked = """
stop = threading.Event()
def work():
    others = [np.zeros((side, side, 3), np.uint8) for _ in arrays]
    while not stop.is_set():
        run_chain(addresses(arrays), shapes, 1, [stage], addresses(others), 3)
thread = threading.Thread(target=work)
thread.start()
for _ in range(20):
    child = os.fork()
    if not child:
        for _ in range(3):
            run_chain(addresses(arrays), shapes, 1, [stage], addresses(outputs), 3)
        os._exit(0 if all((output == array).all() for output, array in zip(outputs, arrays)) else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
run()
"""
    assert len(started(forked, 0, 64)) == 1
