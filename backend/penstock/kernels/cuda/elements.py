"""Functions of an element and its sample's record, on the GPU; a kernel is generated for each function, record type and set of types."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, launch, upload
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, Struct, cuda_type, declarations, layout_of, records

_BLOCK_ELEMENTS = 2048


class _Elements(NamedTuple):
    """The descriptor of one sample: the addresses of its elements, and its record."""

    source: Pointer
    target: Pointer
    record: Pointer
    size: Int64


SOURCE = KernelSource(__file__, _Elements, BLOCK_ELEMENTS=_BLOCK_ELEMENTS)


@functools.cache
def _preamble(record: Struct, body: str, source: np.dtype, target: np.dtype) -> str:
    """Return the C++ declarations of ``compute``, its types and the record's struct."""
    return (
        f"{declarations([record])}typedef {layout_of(record).name} Record;\n"
        f"typedef {cuda_type(source)} Value;\ntypedef {cuda_type(target)} Result;\n"
        f"__device__ inline Result compute(const Record &record, Value value) {{\n    {body}\n}}\n"
    )


def apply_records(
    record: Struct, body: str, rows: np.ndarray, sources: Sequence[Located], targets: Sequence[Located]
) -> None:
    """Compute each element of each target from the same element of its source and from the sample's record, in one launch.

    Args:
        record: declares the struct of the records.
        body: C++ statements that return a ``Result`` computed from ``value`` and ``record``.
        rows: one record for each sample, of type ``layout_of(record).dtype``.
        sources, targets: contiguous arrays of the same sizes. All sources have one type, and all targets have one type.
    """
    if not any(target.size for target in targets):
        return
    (uploaded,) = upload([rows.view(np.uint8)])
    entries = [
        _Elements(source.address, target.address, uploaded.address + number * rows.itemsize, target.size)
        for number, (source, target) in enumerate(zip(sources, targets))
    ]
    kernel = SOURCE.kernel("apply_records", _preamble(record, body, sources[0].dtype, targets[0].dtype))
    launch(kernel, records(_Elements, entries), [blocks_for(entry.size, _BLOCK_ELEMENTS) for entry in entries])
