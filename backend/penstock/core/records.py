"""Calls of kernels that need only a record, made by the compiled core; see `backend/core/core.h`."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from penstock.core.arrays import address
from penstock.core.chains import WORTH_WAKING_NS
from penstock.core.loading import core

# ``PenstockRecords`` and ``PenstockCrew``.
_RECORDS, _CREW = struct.Struct("5q"), struct.Struct("3q")


def compute_records(
    kernel: int,
    records: np.ndarray,
    scratch_bytes: int,
    threads: int,
    cores: Sequence[int] | None = None,
    is_large: bool = False,
) -> None:
    """Call a kernel for each record, without the GIL.

    Args:
        kernel: the kernel's address.
        records: the records, a contiguous array.
        scratch_bytes: the size in bytes of the kernel's scratch memory.
        threads: the maximum number of threads that share the records; for little work, fewer are used.
        cores: the cores to which threads are bound in turn while they work, the calling thread first; None: threads are
            not bound.
        is_large: whether to wake other threads at once, without measuring first whether that pays off.

    Raises:
        MemoryError: there is not enough scratch memory.
    """
    bound = () if cores is None else cores
    launch = _RECORDS.pack(kernel, address(records), records.itemsize, len(records), scratch_bytes)
    crew = _CREW.pack(threads, 0 if is_large else WORTH_WAKING_NS, len(bound))
    if core().penstock_compute_records(launch, crew, struct.pack(f"{len(bound)}q", *bound)):
        raise MemoryError("there is not enough memory for the results between two steps")
