"""Batches whose samples are made on the host; each is copied to the GPU while others are made."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.cuda.launch import Pinned, Shape, staging
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import borrowed_streams, follow

# Alignment of samples in pinned memory, in bytes.
_ALIGNMENT = 256


class Streaming:
    """The copies of one operator's batches to CuPy's current device, on a stream of their own, so that no other work waits for them."""

    def __init__(self) -> None:
        cuda = require_cupy("a batch on the GPU").cuda
        self.device = cuda.Device()
        (self.stream,) = borrowed_streams(self, 1)
        self.event = cuda.Event(disable_timing=True)


class StreamedBatch:
    """A batch whose samples are made on the GPU, or in pinned memory by any thread. Samples in pinned memory are copied while others are
    made.

    Args:
        through: the operator's copies.
        shapes: the shapes of the samples.
        dtype: the elements' dtype.
        layout: the layout of the samples.

    Attributes:
        addresses: the addresses of the samples on the GPU, uint64.
    """

    def __init__(self, through: Streaming, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> None:
        self._through, self._shapes, self._dtype, self._layout = through, shapes, dtype, layout
        self._kind = kind = numpy_dtype(dtype)
        self._sizes = [math.prod(shape) * kind.itemsize for shape in shapes]
        *self._begins, size = itertools.accumulate(self._sizes, initial=0)
        self._staging = staging()
        self._pinned: list[Pinned] = []
        self._hosts: dict[int, np.ndarray] = {}
        cupy = require_cupy()
        # Work queued on the current stream may still read the memory that was allocated for this batch.
        follow(through.stream, cupy.cuda.get_current_stream(), through.event)
        with through.stream:
            self._bytes = cupy.empty(size, np.uint8)
        self.addresses = self._bytes.data.ptr + np.array(self._begins, np.uint64)

    def make_on_host(self, indices: Sequence[int]) -> None:
        """Allocate pinned memory for the samples that the host makes."""
        ends = list(itertools.accumulate(-(-self._sizes[index] // _ALIGNMENT) * _ALIGNMENT for index in indices))
        if not ends:
            return
        pinned = self._staging.take(ends[-1])
        self._pinned.append(pinned)
        for index, begin in zip(indices, [0, *ends]):
            own = pinned.bytes[begin : begin + self._sizes[index]]
            self._hosts[index] = own.view(self._kind).reshape(self._shapes[index])

    def host(self, index: int) -> np.ndarray:
        """Return the array in pinned memory in which to make a sample; call :meth:`make_on_host` first."""
        return self._hosts[index]

    def send(self, index: int) -> None:
        """Start to copy a complete sample from pinned memory to the GPU; may be called on any thread."""
        source, begin = self._hosts[index], self._begins[index]
        if not source.size:
            return
        with self._through.device:
            place = self._bytes[begin : begin + source.nbytes].data
            place.copy_from_host_async(source.ctypes.data, source.nbytes, self._through.stream)

    def finish(self) -> TensorListGPU:
        """Return the batch. Later work on the current stream runs after all copies and all computation of samples on the GPU."""
        for pinned in self._pinned:
            self._staging.give_back(pinned, self._through.stream)
        if self._pinned:
            follow(require_cupy().cuda.get_current_stream(), self._through.stream, self._through.event)
        elements = self._bytes.view(self._kind)
        return TensorListGPU.of_elements(elements, self._shapes, self._layout, len(self._layout), self._dtype)
