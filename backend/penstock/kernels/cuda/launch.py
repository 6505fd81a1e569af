"""Compiling kernels, and launching one for a whole batch."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.tensors.cuda import require_cupy
from penstock.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
)

_FOLDER = Path(__file__).parent
THREADS = 256
CUDA_TYPES = {
    BOOL: "bool",
    UINT8: "uint8",
    UINT16: "uint16",
    UINT32: "uint32",
    UINT64: "uint64",
    INT8: "int8",
    INT16: "int16",
    INT32: "int32",
    INT64: "int64",
    FLOAT16: "float16",
    FLOAT: "float",
    FLOAT64: "double",
}


def cuda_type(dtype: DALIDataType) -> str:
    """The name of a type in the kernels' sources."""
    return CUDA_TYPES[dtype]


@functools.cache
def _source(name: str) -> str:
    return (_FOLDER / "common.cuh").read_text() + (_FOLDER / f"{name}.cu").read_text()


@functools.cache
def kernel(file: str, instance: str, preamble: str = "") -> Any:
    """The kernel ``instance`` (e.g. ``window<uint8, float>``) of ``file``.cu, compiled for the current device.

    Args:
        preamble: source that goes between the common part and the file, for generated functions.
    """
    cupy = require_cupy("a CUDA kernel")
    common, own = (_FOLDER / "common.cuh").read_text(), (_FOLDER / f"{file}.cu").read_text()
    module = cupy.RawModule(
        code=common + preamble + own, options=("-std=c++17", "--fmad=false"), name_expressions=(instance,)
    )
    return module.get_function(instance)


def upload(array: np.ndarray) -> Any:
    """A copy of a small host array on the device, ordered by the current stream."""
    cupy = require_cupy("a descriptor")
    # Through pageable memory the driver stages the bytes before it returns, so the array may go at once.
    return cupy.asarray(array.view(np.uint8).reshape(-1) if array.dtype.names else array)


def packed(arrays: Sequence[np.ndarray], dtype: Any) -> tuple[np.ndarray, list[int]]:
    """Arrays one behind the other, and where each begins; the same array is packed once."""
    offsets: list[int] = []
    known: dict[int, int] = {}
    parts: list[np.ndarray] = []
    total = 0
    for array in arrays:
        place = known.get(id(array))
        if place is None:
            place = known[id(array)] = total
            parts.append(np.ascontiguousarray(array, dtype).reshape(-1))
            total += parts[-1].size
        offsets.append(place)
    return (np.concatenate(parts) if parts else np.empty(0, dtype)), offsets


def first_blocks(counts: Sequence[int]) -> tuple[np.ndarray, int]:
    """The first block of each sample, and the number of all blocks."""
    ends = np.cumsum(np.asarray(counts, np.int64))
    return np.concatenate([[0], ends[:-1]]).astype(np.int64), int(ends[-1]) if len(ends) else 0


def blocks_for(shape: Sequence[int], threads: int = THREADS) -> int:
    """How many blocks of threads it takes to have one thread for each element."""
    return -(-math.prod(shape) // threads)


def launch(function: Any, descriptors: np.ndarray, counts: Sequence[int], *extra: Any, shared: int = 0) -> None:
    """Launches a kernel over all samples.

    Args:
        function: takes the samples' first blocks, the descriptors, their number, and ``extra``.
        descriptors: a structured array, one entry a sample.
        counts: blocks of each sample.
        extra: further arguments.
        shared: bytes of dynamic shared memory.
    """
    starts, blocks = first_blocks(counts)
    if not blocks:
        return
    # One upload for both: a transfer costs more than its few bytes.
    both = np.concatenate([starts.view(np.uint8), descriptors.view(np.uint8).reshape(-1)])
    buffer = upload(both)
    if shared > 48 * 1024:
        function.max_dynamic_shared_size_bytes = shared
    function(
        (blocks,), (THREADS,), (buffer, buffer[starts.nbytes :], np.int32(len(descriptors)), *extra), shared_mem=shared
    )


def contiguous(samples: Sequence[Any]) -> list[Any]:
    """The samples, those that are not contiguous copied."""
    cupy = require_cupy()
    return [cupy.ascontiguousarray(sample) for sample in samples]
