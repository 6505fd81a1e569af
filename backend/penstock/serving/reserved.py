"""`ReservedOutput`: an output of a batch in the memory of the requests' answers, so that it is not copied there."""

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
"""The smallest part of a request, in bytes, for which reserving costs less than copying."""


class ReservedOutput:
    """The destination of one output: each request's samples lie in its answer, one after the other.

    Args:
        spec: the output's spec.
        shares: all requests of the batch, in order, whether or not they want the output, with their numbers of samples.
    """

    def __init__(self, spec: OutputSpec, shares: Sequence[tuple[Request, int]]) -> None:
        self._spec = spec
        self._shares = shares
        self._batch: TensorListCPU | None = None
        self._tensors: dict[int, np.ndarray] = {}

    def allocate(self, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> TensorListCPU | None:
        """Return the batch that its operator fills; None if none of it goes to an answer."""
        kind = np.dtype(numpy_dtype(dtype))
        self._tensors.clear()
        # A sample may have any number of parts.
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
        """Return the output tensor of the request whose samples begin at ``start``, if they were written there."""
        tensor = self._tensors.get(start) if batch is self._batch else None
        # The samples are elsewhere if the batch was made contiguous by a copy.
        return tensor if tensor is not None and batch.samples[start].ctypes.data == tensor.ctypes.data else None

    def _reserve(self, request: Request, shapes: Sequence[Shape], dtype: DALIDataType) -> np.ndarray | None:
        size = math.prod(shapes[0]) * len(shapes) * element_size(dtype)
        if size < _MIN_RESERVED_BYTES or any(shape != shapes[0] for shape in shapes):
            return None
        if self._spec.name not in request.wanted:
            return None
        tensor = request.reserve(self._spec.name, shape_of_part(shapes, self._spec), dtype)
        return tensor if tensor is None or tensor.flags.aligned else None
