"""Launches of kernels for a batch: the addresses of arrays, a single upload, and memory that is not overwritten too early."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda.launch import Staging, blocks_for, locate, locate_all, packed, scratch, strides_of, upload
from penstock.tensors import TensorListCPU, TensorListGPU


def test_where_samples_are() -> None:
    host = TensorListCPU([np.arange(6).reshape(2, 3), np.arange(20).reshape(4, 5)])
    batch = TensorListGPU.upload(host)
    samples = [SimpleNamespace(index=1), SimpleNamespace(index=0)]
    located = locate_all(batch, samples)
    assert [place.shape for place in located] == [(4, 5), (2, 3)]
    assert [place.address for place in located] == [batch.pointers()[1], batch.pointers()[0]]


def test_what_is_not_contiguous_is_copied() -> None:
    array = xp.put(np.arange(12).reshape(3, 4)).T
    place = locate(array)
    assert place.shape == (4, 3)
    np.testing.assert_array_equal(place.owner, array)
    assert place.owner.flags.c_contiguous


def test_scratch_is_one_allocation() -> None:
    first, second = scratch([(2, 3), (4,)], np.float32)
    assert second.address == first.address + first.size * 4
    assert first.owner is second.owner


def test_small_arrays_go_up_together() -> None:
    arrays = [np.arange(3, dtype=np.uint8), np.float64([[1.5, 2.5]]), np.array(7, np.int32)]
    located = upload(arrays)
    assert len({id(place.owner) for place in located}) == 1
    for place, array in zip(located, arrays):
        assert place.address % 16 == located[0].address % 16
        found = np.frombuffer(ctypes.string_at(place.address, array.nbytes), array.dtype)
        np.testing.assert_array_equal(found.reshape(array.shape), array)


class _Copy:
    """The event of a copy, which is in flight until the test ends the copy."""

    made: list[_Copy] = []

    def __init__(self, **_: Any) -> None:
        self.done = False
        self.made.append(self)

    def record(self, stream: Any) -> None:
        pass


def test_pinned_memory_is_reused_only_after_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    cuda = sys.modules["cupy"].cuda
    alloc_host = cuda.runtime.hostAlloc

    def alloc(size: int, flags: int) -> int:
        taken.append(size)
        address: int = alloc_host(size, flags)
        return address

    monkeypatch.setattr(cuda, "Event", _Copy)
    monkeypatch.setattr(cuda.runtime, "hostAlloc", alloc)
    monkeypatch.setattr(_Copy, "made", [])
    staging = Staging()
    data = [np.zeros(1000, np.uint8)]
    staging.upload(data)
    staging.upload(data)
    assert len(taken) == 2, "the first copy is under way"
    _Copy.made[0].done = True
    staging.upload(data)
    assert len(taken) == 2, "the first copy is done"
    staging.upload([np.zeros(1_000_000, np.uint8)])
    assert taken[-1] == 1 << 20


def test_equal_tables_are_packed_once() -> None:
    one, other = np.float32([1, 2]), np.float32([3])
    array, places = packed([one, other, one], np.float32)
    assert places == [0, 2, 0]
    assert array.tolist() == [1, 2, 3]


def test_strides_and_blocks() -> None:
    assert strides_of((2, 3, 4)) == [12, 4, 1]
    assert blocks_for(0) == 0
    assert blocks_for(257) == 2


def test_memory_may_come_back_while_some_is_taken() -> None:
    """Garbage collection during an allocation returns memory at that moment."""
    held = Staging()
    other = held.take(100)

    class Copied:
        @property
        def done(self) -> bool:
            held.give_back(other, None)
            return True

    held._busy.append(held.take(100)._replace(copied=Copied()))
    taken = [held.take(100) for _ in range(2)]
    assert any(one is other for one in taken)
