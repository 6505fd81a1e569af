"""Results that must exist only once: `functools.cache` lets two threads compute the same result, and drops one of them."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

R = TypeVar("R")


class Once(Generic[R]):
    """A function that is called once for each set of arguments: other threads wait for its result, which is kept.

    Use it as a decorator for functions that make objects whose handles or addresses are passed on, such as loaded kernels: if another
    thread's object replaced the first one, that would be freed while it is in use.

    Args:
        function: takes positional arguments only.
    """

    def __init__(self, function: Callable[..., R]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._results: dict[tuple[Hashable, ...], R] = {}
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._renew_lock)

    def __call__(self, *arguments: Hashable) -> R:
        try:
            return self._results[arguments]
        except KeyError:
            pass
        with self._lock:
            if arguments not in self._results:
                self._results[arguments] = self._function(*arguments)
            return self._results[arguments]

    def cache_clear(self) -> None:
        """Forget all results."""
        self._results.clear()

    def _renew_lock(self) -> None:
        """Replace the lock in a forked process: another thread of its parent may have held it."""
        self._lock = threading.RLock()
