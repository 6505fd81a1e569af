"""Reuse of host memory."""

from __future__ import annotations

import numpy as np

from penstock.tensors import HostPool

MB = 1 << 20


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_free_block_is_handed_out_again() -> None:
    pool = HostPool()
    first = pool.take(MB)
    place = address(first)
    del first
    assert address(pool.take(MB)) == place


def test_smaller_request_takes_a_larger_block() -> None:
    pool = HostPool()
    pool.take(4 * MB)
    reserved = pool.reserved
    pool.take(MB)
    assert pool.reserved == reserved


def test_kept_view_is_never_overwritten() -> None:
    pool = HostPool()
    kept = pool.take(MB)[100:200].view(np.uint32)
    kept[:] = 7
    other = pool.take(MB)
    other[:] = 1
    assert (kept == 7).all()


def test_memory_is_what_was_in_use_at_once() -> None:
    pool = HostPool()
    rng = np.random.default_rng(0)
    for _ in range(500):
        held = [pool.take(int(size)) for size in rng.integers(MB, 8 * MB, 3)]
        assert all(address(block) % 64 == 0 for block in held)
        del held
    # Three blocks at a time, of at most 8 MB; a block is at most a quarter larger than the array for which it was made.
    assert pool.reserved <= 3 * 10 * MB


def test_limit_gives_free_memory_back() -> None:
    pool = HostPool(limit=4 * MB)
    held = [pool.take(MB) for _ in range(4)]
    del held
    pool.take(4 * MB)
    assert pool.reserved <= 5 * MB


def test_release_keeps_what_is_in_use() -> None:
    pool = HostPool()
    kept = pool.take(MB)
    free = pool.take(2 * MB)
    del free
    pool.release()
    assert MB <= pool.reserved < 2 * MB
    assert kept.size == MB
