"""`ReservedOutput`: computes an output of a batch in the memory of the requests' answers, so that it need not be copied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, element_size, numpy_dtype
from penstock.serving.requests import OutputSpec, Request, shape_of_part
from penstock.tensors import TensorList, TensorListCPU

Shape = tuple[int, ...]

_MIN_RESERVED_BYTES = 1 << 15
"""The size in bytes of the smallest output for which reserving memory takes less time than copying."""


class ReservedOutput:
    """The destination of one output of a batch: the samples of each request lie in the memory of its answer, one after the other.

    Args:
        spec: the specification of the output.
        shares: all requests of the batch, in order, including those that do not request the output, with their numbers of samples.
    """

    def __init__(self, spec: OutputSpec, shares: Sequence[tuple[Request, int]]) -> None:
        self._spec = spec
        self._shares = shares
        self._batch: TensorListCPU | None = None
        self._tensors: dict[int, np.ndarray] = {}

    def allocate(self, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> TensorListCPU | None:
        """Return the batch that the operator fills; None if no request's memory can be used."""
        kind = np.dtype(numpy_dtype(dtype))
        self._tensors.clear()
        # If samples are split into parts, it is not known which shapes belong to which request.
        if len(shapes) != sum(count for _, count in self._shares):
            return None
        if sum(map(math.prod, shapes)) * kind.itemsize < _MIN_RESERVED_BYTES:
            return None
        samples, start = list[Any](), 0
        for request, count in self._shares:
            sample_shapes = shapes[start : start + count]
            tensor = self._reserve(request, sample_shapes, dtype)
            if tensor is None:
                samples += [np.empty(shape, kind) for shape in sample_shapes]
            else:
                self._tensors[start] = tensor
                samples += list(tensor.reshape(count, *sample_shapes[0]))
            start += count
        if not self._tensors:
            return None
        self._batch = TensorListCPU.of_samples(samples, layout, dtype)
        if len(self._shares) == 1:
            self._batch.elements = self._tensors[0].reshape(-1)
        return self._batch

    def part_of(self, batch: TensorList, start: int) -> np.ndarray | None:
        """Return the reserved tensor of the request whose samples begin at ``start``; None if the samples were not written there."""
        tensor = self._tensors.get(start) if batch is self._batch else None
        # If the batch was made contiguous by a copy, the samples are elsewhere.
        return tensor if tensor is not None and batch.samples[start].ctypes.data == tensor.ctypes.data else None

    def _reserve(self, request: Request, shapes: Sequence[Shape], dtype: DALIDataType) -> np.ndarray | None:
        size = math.prod(shapes[0]) * len(shapes) * element_size(dtype)
        if size < _MIN_RESERVED_BYTES or any(shape != shapes[0] for shape in shapes):
            return None
        if self._spec.name not in request.wanted:
            return None
        tensor = request.reserve(self._spec.name, shape_of_part(shapes, self._spec), dtype)
        return tensor if tensor is None or tensor.flags.aligned else None
