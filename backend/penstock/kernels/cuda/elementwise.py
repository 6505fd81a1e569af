"""Element-wise functions of broadcast operands on the GPU; a kernel is generated for each function and set of types."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, division_by, launch, locate, strides_of
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Address, Int32, Int64, Pointer, Repeated, cuda_type, records
from penstock.tensors.cuda import require_cupy

_DIMS, _OPERANDS = 6, 3
# Arrays with fewer elements than this have 32-bit indices, which are much faster.
_INT32_INDEX_LIMIT = 1 << 31
# Elements per block.
_BLOCK_ELEMENTS = 4096


class _Dimension(NamedTuple):
    """A dimension of the broadcast operands.

    Attributes:
        strides: each operand's stride, in elements; 0 if the operand is broadcast.
        divisor: see :func:`division_by`.
    """

    extent: Int64
    strides: Annotated[Sequence[int], Repeated(np.int64, _OPERANDS)]
    divisor: Int64


class _Elementwise(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        dims: the dimensions, innermost first; at least two.
        rank: the number of dimensions in use.
    """

    target: Pointer
    operands: Annotated[Sequence[int], Repeated(Address(), _OPERANDS)]
    volume: Int64
    dims: Annotated[list[_Dimension], Repeated(_Dimension, _DIMS)]
    rank: Int32


SOURCE = KernelSource(__file__, _Elementwise, DIMS=_DIMS, OPERANDS=_OPERANDS, BLOCK_ELEMENTS=_BLOCK_ELEMENTS)


@functools.cache
def _preamble(body: str, types: tuple[np.dtype, ...], result: np.dtype, promoted: bool) -> str:
    """Return the C++ function ``compute``, which loads the operands a, b and c and runs ``body``, and its types."""
    loads = []
    for index, (name, dtype) in enumerate(zip("abc", types)):
        value = f"reinterpret_cast<const {cuda_type(dtype)} *>(operands[{index}])[offsets[{index}]]"
        loads.append(f"Result {name} = Result({value});" if promoted else f"const auto &{name} = {value};")
    return (
        f"typedef {cuda_type(result)} Result;\n"
        "__device__ inline Result compute(const uint64 *operands, const int64 *offsets, int *divided_by_zero) {\n"
        f"    {' '.join(loads)}\n    {body}\n}}\n"
    )


def evaluate_batch(
    body: str, jobs: Sequence[tuple[Sequence[OnGpu], OnGpu]], promoted: bool = True, dividing: bool = False
) -> None:
    """Run ``body`` for each element of all samples, in one launch.

    Args:
        body: C++ statements that return a ``Result`` computed from the operands ``a``, ``b`` and ``c``; ``offsets[0]``
            is the index of ``a`` in the first operand.
        jobs: the operands (arrays on the GPU, broadcast against each other) and the target of each sample.
        promoted: whether to convert operands to the result's type first, as C++ does. Otherwise they are references of
            their original type, so that ``(&b)[index]`` looks up an entry where ``b`` is a table.
        dividing: whether ``body`` sets ``*divided_by_zero``; if so, this call waits for the kernel and reads it.

    Raises:
        ValueError: an integer was divided by zero.
    """
    located = [([locate(operand) for operand in operands], locate(target)) for operands, target in jobs]
    located = [job for job in located if job[1].size]
    if not located:
        return
    entries = [_entry(operands, target) for operands, target in located]
    index = "uint32" if max(entry.volume for entry in entries) < _INT32_INDEX_LIMIT else "uint64"
    operands, target = located[0]
    preamble = _preamble(body, tuple(operand.dtype for operand in operands), target.dtype, promoted)
    function = SOURCE.kernel(f"evaluate<{index}>", preamble)
    flag = require_cupy().zeros(1, np.int32) if dividing else None
    counts = [blocks_for(entry.volume, _BLOCK_ELEMENTS) for entry in entries]
    launch(function, records(_Elementwise, entries), counts, None if flag is None else locate(flag))
    if flag is not None and int(flag.get()[0]):
        raise ValueError("Integer division by zero.")


def _entry(operands: Sequence[Located], target: Located) -> _Elementwise:
    extents, strides = _merged(target.shape, [_broadcast_strides(o.shape, len(target.shape)) for o in operands])
    if len(extents) > _DIMS:
        raise RuntimeError(f"Data of {len(extents)} dimensions is not supported on GPU: at most {_DIMS}")
    unused = _OPERANDS - len(operands)
    # The dimensions, innermost first.
    steps = [(*own, *[0] * unused) for own in zip(*strides)][::-1]
    dims = [_Dimension(extent, own, division_by(extent)) for extent, own in zip(extents[::-1], steps)]
    return _Elementwise(
        target.address,
        [operand.address for operand in operands] + [0] * unused,
        target.size,
        dims + [_ONE] * (_DIMS - len(dims)),
        len(dims),
    )


# The extent and strides of a dimension of extent 1.
_ONE = _Dimension(1, (0,) * _OPERANDS, division_by(1))


def _broadcast_strides(shape: Sequence[int], rank: int) -> list[int]:
    strides = [0 if extent == 1 else step for extent, step in zip(shape, strides_of(shape))]
    return [0] * (rank - len(shape)) + strides


def _merged(extents: Sequence[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Merge adjacent dimensions that all operands can step through as one; drop dimensions of extent 1."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(extents):
        if extent == 1:
            continue
        if sizes and all(own[-1] == own_all[axis] * extent for own, own_all in zip(steps, strides)):
            sizes[-1] *= extent
            for own, own_all in zip(steps, strides):
                own[-1] = own_all[axis]
        else:
            sizes.append(extent)
            for own, own_all in zip(steps, strides):
                own.append(own_all[axis])
    return sizes, steps
