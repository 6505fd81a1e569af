"""Work is started on a pool's threads, and waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from penstock.runtime.workers import WorkerPool
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
