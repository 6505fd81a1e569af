"""Batches that the host makes sample by sample, copying each to the GPU while others are made."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.cuda.launch import Located, Shape, staging
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import borrowed_streams, follow

# Of what replaces a sample.
_ALIGNMENT = 256


class Streaming:
    """Copies the batches of one operator to CuPy's current device, on a stream of its own."""

    def __init__(self) -> None:
        cuda = require_cupy("a batch on the GPU").cuda
        self.device = cuda.Device()
        (self.stream,) = borrowed_streams(self, 1)
        self.event = cuda.Event(disable_timing=True)


class StreamedBatch:
    """A batch whose samples are made in pinned memory, on any thread, and copied while others are made.

    Instead of a sample, the host may make something from which the GPU makes it.

    Args:
        through: the operator's stream.
        shapes: of the samples.
        dtype: of the elements.
        layout: of the samples.
        rooms: bytes for what may replace each sample.
    """

    def __init__(
        self, through: Streaming, shapes: Sequence[Shape], dtype: DALIDataType, layout: str, rooms: Sequence[int] = ()
    ) -> None:
        self._through, self._shapes, self._dtype, self._layout = through, shapes, dtype, layout
        self._kind = kind = numpy_dtype(dtype)
        self._sizes = [math.prod(shape) * kind.itemsize for shape in shapes]
        self._ends = list(itertools.accumulate(self._sizes, initial=0))
        spaces = [-(-max(pair) // _ALIGNMENT) * _ALIGNMENT for pair in zip(self._sizes, rooms or self._sizes)]
        self._begins = list(itertools.accumulate(spaces, initial=0))
        self._staging = staging()
        self._pinned = self._staging.take(self._begins[-1])
        self._host = self._pinned.bytes
        cupy = require_cupy()
        # The memory may be one that others still read, in the order of the current stream.
        follow(through.stream, cupy.cuda.get_current_stream(), through.event)
        with through.stream:
            self._bytes = cupy.empty(self._ends[-1], np.uint8)
            self._others = cupy.empty(self._begins[-1] if rooms else 0, np.uint8)

    def host(self, index: int) -> np.ndarray:
        """Where a sample is to be made."""
        begin = self._begins[index]
        return self._host[begin : begin + self._sizes[index]].view(self._kind).reshape(self._shapes[index])

    def room(self, index: int) -> np.ndarray:
        """Where its replacement may be made."""
        return self._host[self._begins[index] : self._begins[index + 1]]

    def send(self, index: int) -> None:
        """Copies a finished sample; on any thread."""
        self._copy(self.host(index), self._bytes, self._ends[index])

    def send_other(self, made: np.ndarray, index: int) -> Located:
        """Copies what replaces the sample into a part of its room; on any thread."""
        self._copy(made, self._others, self._begins[index])
        address = self._others.data.ptr + self._begins[index]
        return Located(address, made.shape, made.dtype, self._others)

    def _copy(self, source: np.ndarray, target: Any, begin: int) -> None:
        if not source.size:
            return
        with self._through.device:
            place = target[begin : begin + source.nbytes].data
            place.copy_from_host_async(source.ctypes.data, source.nbytes, self._through.stream)

    def finish(self) -> TensorListGPU:
        """The batch, in the order of the current stream, once everything has been sent."""
        self._staging.give_back(self._pinned, self._through.stream)
        follow(require_cupy().cuda.get_current_stream(), self._through.stream, self._through.event)
        elements = self._bytes.view(self._kind)
        return TensorListGPU.of_elements(elements, self._shapes, self._layout, len(self._layout), self._dtype)
