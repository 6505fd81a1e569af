"""``EvalContext``: the context in which operators run."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Protocol

from penstock.dynamic._checkpoints import Checkpoint
from penstock.dynamic._devices import Device, default_device_type
from penstock.dynamic._engine import Engine
from penstock.dynamic._streams import Stream, get_current_stream, stream
from penstock.dynamic._thread_pools import ThreadPool, default_thread_pool


class Runnable(Protocol):
    """A call that can be run."""

    def run(self, context: EvalContext) -> object: ...


class _Entered(threading.local):
    """The contexts that a thread has entered, and its default contexts."""

    def __init__(self) -> None:
        self.stack: list[EvalContext] = []
        self.defaults: dict[int | None, EvalContext] = {}


_entered = _Entered()


class EvalContext:
    """The context in which operators run: a device, threads and a stream. Inside a `with` statement, it is the thread's current one.

    Each thread has a default context, so programs need not create one.

    Args:
        num_threads: the number of threads of a separate thread pool; by default, contexts share a pool (:func:`set_num_threads`).
        device_id: the number of the GPU; by default the current device.
        cuda_stream: the CUDA stream for GPU work; by default the stream that was set for the thread or for all threads, otherwise a new
            one.
        thread_pool: an existing thread pool of the same device; cannot be combined with ``num_threads``.
    """

    def __init__(
        self,
        *,
        num_threads: int | None = None,
        device_id: int | None = None,
        cuda_stream: object = None,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        if thread_pool is not None and num_threads is not None:
            raise ValueError("Give either `thread_pool` or `num_threads`")
        self.device = Device.current() if device_id is None else Device("gpu", device_id)
        if thread_pool is not None and thread_pool.device_id != self.device_id:
            raise ValueError(
                f"The thread pool is of device {thread_pool.device_id}, and the context of device {self.device_id}"
            )
        if num_threads is not None:
            thread_pool = ThreadPool(num_threads, device_id=self.device_id)
        self._thread_pool = thread_pool
        self._chosen_stream = None if cuda_stream is None else stream(stream=cuda_stream, device_id=device_id)
        if self._chosen_stream is None and self.device_id is not None:
            self._chosen_stream = get_current_stream(self.device_id)
        self._fallback_stream: Stream | None = None
        self._pending: list[Callable[[], Runnable | None]] = []
        self._lock = threading.RLock()
        self._depth = 0

    @staticmethod
    def current() -> EvalContext:
        """Return the context that this thread entered last, or its default context."""
        stack = _entered.stack
        return stack[-1] if stack else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """Return the default context of the thread's current device."""
        return EvalContext.default_on(Device.default_device_id(default_device_type()))

    @staticmethod
    def default_on(number: int | None) -> EvalContext:
        """Return this thread's default context for a GPU; None: for the CPU."""
        context = _entered.defaults.get(number)
        if context is None:
            context = _entered.defaults[number] = EvalContext(device_id=number)
            context._chosen_stream = None
        return context

    @property
    def device_id(self) -> int | None:
        """The number of the GPU; None for the CPU."""
        return self.device.device_id

    @property
    def thread_pool(self) -> ThreadPool:
        """The threads that run CPU operators."""
        return self._thread_pool or default_thread_pool(self.device_id)

    @property
    def num_threads(self) -> int:
        """The number of threads that run CPU operators."""
        return self.thread_pool.num_threads

    @property
    def cuda_stream(self) -> Stream | None:
        """The stream for GPU work; None for the CPU."""
        if self._chosen_stream is not None or self.device_id is None:
            return self._chosen_stream
        found = get_current_stream(self.device_id)
        if found is None:
            found = self._fallback_stream = self._fallback_stream or stream(device_id=self.device_id)
        return found

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """A checkpoint for the readers and generators of this context."""
        return Checkpoint()

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.device_id)

    @property
    def engine(self) -> Engine:
        """The engine that runs operators, with the context's current threads and stream."""
        engine = self._engine
        engine.executor.workers = self.thread_pool.workers
        engine.stream = self.cuda_stream
        return engine

    def cached_results(self, invocation: object) -> None:
        """Do nothing. DALI programs call this, but here only users hold references to results."""

    def cache_results(self, invocation: object, results: object) -> None:
        """Do nothing. DALI programs call this, but here only users hold references to results."""

    def defer(self, call: Runnable, weak: bool = True) -> None:
        """Run a call when the context is left, or earlier; ``weak``: only if the call's result is still needed."""
        self._pending.append(weakref.ref(call) if weak else lambda: call)
        if len(self._pending) > 4096:
            self._pending = [known for known in self._pending if known() is not None]

    def evaluate_all(self) -> None:
        """Run the deferred calls whose results are still needed."""
        pending, self._pending = self._pending, []
        for known in pending:
            call = known()
            if call is not None and getattr(call, "is_pending", True):
                call.run(self)

    def entered(self) -> AbstractContextManager[object]:
        """Return a context manager in which this is the thread's current context; it does nothing if it is already."""
        return contextlib.nullcontext() if EvalContext.current() is self else self

    def __enter__(self) -> EvalContext:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("An EvalContext can be current in only one thread at a time")
        try:
            self.device.__enter__()
        except BaseException:
            self._lock.release()
            raise
        self._depth += 1
        _entered.stack.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._depth -= 1
            if not self._depth:
                self.evaluate_all()
        finally:
            _entered.stack.pop()
            self.device.__exit__()
            self._lock.release()

    def __repr__(self) -> str:
        return f"EvalContext(device={self.device}, num_threads={self.num_threads})"
