"""Caching of results that must exist only once: with `functools.cache`, two threads may compute the same result, of which one is
dropped.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

R = TypeVar("R")


class Once(Generic[R]):
    """A function that is called only once for each set of arguments; its result is cached, and other threads wait for it.

    Use it as a decorator for functions that make objects whose handles or addresses are passed on, such as loaded kernels: if a second
    thread's object replaced the first one, the first one would be freed while it is in use.

    Args:
        function: the function; it may have positional arguments only.
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
        """Remove all cached results."""
        self._results.clear()

    def _renew_lock(self) -> None:
        """Replace the lock in a forked process, because another thread of the parent may have held it."""
        self._lock = threading.RLock()
