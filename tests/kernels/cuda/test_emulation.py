"""Properties of the emulated GPU that other tests rely on."""

from __future__ import annotations

import sys
from typing import Any


class Interrupted:
    """A block of pinned memory: when its length is read, another block is freed, as another thread or garbage collection may do."""

    def __init__(self, runtime: Any, other: int) -> None:
        self._runtime, self._other = runtime, [other]

    def __len__(self) -> int:
        for address in self._other:
            self._runtime.freeHost(address)
        self._other.clear()
        return 8


def test_page_locked_memory_may_be_freed_while_it_is_looked_through() -> None:
    # When the code iterated over the dictionary itself, it sometimes failed with "dictionary changed size during iteration", so that
    # a good video was skipped.
    runtime = sys.modules["cupy"].cuda.runtime
    for look in (lambda: runtime.hostAlloc(8, 0), lambda: runtime.pointerGetAttributes(1).type):
        first = runtime.hostAlloc(8, 0)
        runtime.host._blocks[2] = Interrupted(runtime, runtime.hostAlloc(8, 0))
        look()
        assert runtime.pointerGetAttributes(first).type == 1
        runtime.freeHost(2)
