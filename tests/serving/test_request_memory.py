"""How long a model's batches wait for memory that other batches hold."""

from __future__ import annotations

import pytest

from penstock.errors import MemoryShortageError
from penstock.runtime.memory import BatchMemory
from penstock.serving.memory import RequestMemory
from penstock.serving.settings import Settings


def test_batches_wait_no_longer_than_the_setting_allows() -> None:
    memory = RequestMemory("waiting", "1", Settings(max_model_memory=100, memory_wait_seconds=0.0), lambda: ())

    def work(batch: BatchMemory) -> None:
        batch.wanted = 50

    with memory.reservation() as other:
        assert other.grow(80)
        with pytest.raises(MemoryShortageError, match="50 bytes of memory, which did not become free within 0 s"):
            memory.run([1], work)
