"""``EvalMode``: when operators run."""

from __future__ import annotations

import threading
from enum import Enum


class _Entered(threading.local):
    """The modes that a thread has entered."""

    def __init__(self) -> None:
        self.modes: list[EvalMode] = []


_entered = _Entered()


class EvalMode(Enum):
    """When operators run. Inside a `with` statement, a mode is the thread's current one.

    Attributes:
        deferred: operators run when a result is needed.
        eager: operators run when they are called; on a GPU, the call does not wait for the result. The default.
        sync_cpu: like ``eager``, but errors are raised unchanged, rather than chained to an error that names the call.
        sync_full: like ``sync_cpu``, and calls also wait for the GPU.
    """

    deferred = 1
    eager = 2
    default = eager
    sync_cpu = 3
    sync_full = 4

    @staticmethod
    def current() -> EvalMode:
        """Return the mode that this thread entered last; ``eager`` if it entered none."""
        modes = _entered.modes
        return modes[-1] if modes else EvalMode.eager

    def __enter__(self) -> EvalMode:
        _entered.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.modes.pop()


SYNCHRONOUS = (EvalMode.sync_cpu, EvalMode.sync_full)
"""The modes in which calls run at once and raise their errors immediately."""
