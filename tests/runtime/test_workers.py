"""Work is started on the threads of a pool, which waits for its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from penstock.runtime.workers import Pace, WorkerPool
from penstock.schema.workspace import Workspace


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    own = WorkerPool(3)
    yield own
    own.close()


def test_work_goes_on_before_it_is_waited_for(pool: WorkerPool) -> None:
    done, all_done = [], threading.Event()

    def task(index: int) -> None:
        done.append(index)
        if len(done) == 5:
            all_done.set()

    started = pool.start(task, 5)
    assert all_done.wait(10)
    started.wait()
    assert started.is_done()
    assert sorted(done) == [0, 1, 2, 3, 4]


def test_who_waits_works_as_well() -> None:
    done: list[int] = []
    started = WorkerPool(1).start(done.append, 3, [1, 5, 3])
    assert not done
    assert not started.is_done()
    started.wait()
    assert done == [1, 2, 0]


def test_nothing_to_do(pool: WorkerPool) -> None:
    started = pool.start(pytest.fail, 0)
    assert started.is_done()
    started.wait()


def test_what_is_raised_first_is_raised_to_who_waits(pool: WorkerPool) -> None:
    def task(index: int) -> None:
        if index:
            raise ValueError(f"index {index}")

    started = pool.start(task, 3)
    with pytest.raises(ValueError, match="index 1"):
        started.wait()


def test_without_a_pool_work_is_done_when_it_is_waited_for() -> None:
    done: list[int] = []
    started = Workspace().start(done.append, 2)
    assert not started.is_done()
    started.wait()
    assert started.is_done()
    assert done == [0, 1]


# -- tasks that are too short to be shared -----------------------------------------------------------------------------

COUNT = 8
COSTS = [10_000] * COUNT


def short(_: int) -> None:
    pass


def long(_: int) -> None:
    """Take time without holding the GIL, like reading a file."""
    time.sleep(0.002)


def run(pool: WorkerPool, pace: Pace, task: Callable[[int], None], batches: int = 1) -> set[str]:
    """Run tasks, check that each ran once, and return the names of the threads that ran them."""
    for _ in range(batches):
        threads: dict[int, str] = {}

        def noted(index: int, threads: dict[int, str] = threads) -> None:
            assert index not in threads
            threads[index] = threading.current_thread().name
            task(index)

        pool.parallel(noted, COUNT, COSTS, pace)
        assert sorted(threads) == list(range(COUNT))
    return set(threads.values())


def test_short_tasks_are_not_shared(pool: WorkerPool) -> None:
    assert run(pool, Pace(), short, 70) == {threading.current_thread().name}


def are_shared(pool: WorkerPool, pace: Pace) -> bool:
    """Return whether several threads share long tasks.

    Several batches are tried, as on a busy machine, a thread may wake up too late to get one of a batch's tasks.
    """
    return any(len(run(pool, pace, long)) > 1 for _ in range(50))


def test_long_tasks_are_shared_after_some_were_timed(pool: WorkerPool) -> None:
    pace = Pace()
    assert are_shared(pool, pace)
    run(pool, pace, long, 70)
    assert are_shared(pool, pace)


def test_tasks_that_were_short_are_timed_again(pool: WorkerPool) -> None:
    pace = Pace()
    run(pool, pace, short, 10)
    assert len(run(pool, pace, long)) == 1
    run(pool, pace, long, 70)
    assert are_shared(pool, pace)


def test_one_slow_batch_at_first_does_not_count(pool: WorkerPool) -> None:
    """The first batch may be slow because a kernel is compiled, which does not count."""
    pace = Pace()
    run(pool, pace, long)
    assert len(run(pool, pace, short, 3)) == 1


def test_without_costs_tasks_are_shared_and_not_timed(pool: WorkerPool) -> None:
    pace, begun = Pace(), threading.Barrier(3)
    for _ in range(5):
        pool.parallel(lambda _: begun.wait(10) and None, 3, None, pace)
    assert pace.seconds == float("inf")


def test_the_error_of_the_first_task_that_fails_is_raised(pool: WorkerPool) -> None:
    def failing(index: int) -> None:
        long(index)
        if index in (2, 5):
            raise ValueError(f"index {index}")

    pace = Pace()
    for _ in range(5):
        with pytest.raises(ValueError, match="index 2"):
            pool.parallel(failing, COUNT, COSTS, pace)
