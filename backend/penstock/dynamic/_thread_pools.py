"""``ThreadPool``: the threads on which CPU operators run."""

from __future__ import annotations

import operator
import os
import threading
import weakref

from penstock.dynamic._devices import Device
from penstock.runtime.workers import WorkerPool

_CURRENT_DEVICE = -1


class ThreadPool:
    """Threads that share the samples of a batch.

    Args:
        num_threads: the number of threads; by default one for each core that this process may use.
        device_id: the number of the GPU whose operators also use the threads; by default the current device.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = _CURRENT_DEVICE) -> None:
        self._num_threads = _cores() if num_threads is None else _positive(num_threads)
        self._device_id = Device.current().device_id if device_id == _CURRENT_DEVICE else device_id
        self.workers = WorkerPool(self._num_threads)
        weakref.finalize(self, self.workers.close)

    @property
    def num_threads(self) -> int:
        """The number of threads."""
        return self._num_threads

    @property
    def device_id(self) -> int | None:
        """The number of the GPU whose operators also use the threads; None: there is none."""
        return self._device_id

    def __repr__(self) -> str:
        return f"ThreadPool(num_threads={self.num_threads}, device_id={self.device_id})"


class _Default:
    """The pool of all contexts that have no pool of their own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.num_threads: int | None = None
        self.pools: dict[int | None, ThreadPool] = {}


_default = _Default()


def _positive(num_threads: int) -> int:
    """Return the number of threads as a Python int; raise TypeError unless it is an integer, and ValueError unless it is positive."""
    try:
        number = operator.index(num_threads)
    except TypeError:
        raise TypeError(f"The number of threads must be an integer, got {num_threads!r}") from None
    if number < 1:
        raise ValueError(f"The number of threads must be at least 1, got {number}")
    return number


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_num_threads() -> int:
    """Return the number of threads of contexts that do not set it themselves."""
    return _default.num_threads or _cores()


def set_num_threads(n: int | None) -> None:
    """Set the number of threads of contexts that do not set it themselves; None: one for each core."""
    if n is not None:
        n = _positive(n)
    with _default.lock:
        if n != _default.num_threads:
            _default.num_threads = n
            _default.pools = {}


def default_thread_pool(device_id: int | None) -> ThreadPool:
    """Return the thread pool of contexts of a device that do not set a number of threads."""
    pool = _default.pools.get(device_id)
    if pool is None:
        with _default.lock:
            pool = _default.pools.setdefault(device_id, ThreadPool(_default.num_threads, device_id=device_id))
    return pool
