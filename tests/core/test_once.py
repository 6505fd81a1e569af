"""Objects that exist only once, even if several threads request them at the same time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.core.once import Once


def test_threads_that_ask_at_a_time_get_the_same_object() -> None:
    calls = []

    @Once
    def made(name: str) -> object:
        calls.append(name)
        time.sleep(0.05)
        return object()

    barrier = threading.Barrier(8)

    def ask(number: int) -> object:
        barrier.wait()
        return made("ab"[number % 2])

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(ask, range(8)))
    assert sorted(calls) == ["a", "b"]
    assert all(result is results[number % 2] for number, result in enumerate(results))
    assert results[0] is not results[1]


def test_it_may_call_itself_and_is_called_again_after_an_error() -> None:
    failures = ["first"]

    @Once
    def depth(count: int) -> int:
        if count == 0 and failures:
            raise ValueError(failures.pop())
        return 1 + depth(count - 1) if count else 0

    with pytest.raises(ValueError, match="first"):
        depth(3)
    assert depth(3) == 3
    depth.cache_clear()
    assert depth(2) == 2


def test_the_name_and_the_docstring_are_those_of_the_function() -> None:
    @Once
    def named() -> None:
        """Do nothing."""

    assert vars(named)["__name__"] == "named"
    assert named.__doc__ == "Do nothing."
