"""When operators run: ``EvalMode``."""

from __future__ import annotations

import threading
from enum import Enum


class _Entered(threading.local):
    """The modes that a thread has entered."""

    def __init__(self) -> None:
        self.modes: list[EvalMode] = []


_entered = _Entered()


class EvalMode(Enum):
    """When operators run. As a context manager, a mode is the current one of its thread.

    Attributes:
        deferred: they run when a result is needed.
        eager: they run when they are called; on a GPU, the call does not wait for the result. The default.
        sync_cpu: like ``eager``; errors are raised as they are, without one that names the call.
        sync_full: like ``sync_cpu``, and calls wait for the GPU.
    """

    deferred = 1
    eager = 2
    default = eager
    sync_cpu = 3
    sync_full = 4

    @staticmethod
    def current() -> EvalMode:
        """Return the mode entered last on this thread; ``eager`` if none was."""
        modes = _entered.modes
        return modes[-1] if modes else EvalMode.eager

    def __enter__(self) -> EvalMode:
        _entered.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.modes.pop()


SYNCHRONOUS = (EvalMode.sync_cpu, EvalMode.sync_full)
"""The modes in which calls run at once and raise their errors immediately."""
