"""Batches that are made on the host sample by sample, and copied to the GPU meanwhile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.cuda.launch import Shape, staging
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import borrowed_streams, follow


class Streaming:
    """What copies the batches of one operator to CuPy's current device: a stream, on which nothing else waits for them."""

    def __init__(self) -> None:
        cuda = require_cupy("a batch on the GPU").cuda
        self.device = cuda.Device()
        (self.stream,) = borrowed_streams(self, 1)
        self.event = cuda.Event(disable_timing=True)


class StreamedBatch:
    """A batch, each sample of which is made in pinned memory, on any thread, and copied while others are made.

    Args:
        through: the operator's stream.
        shapes: of the samples.
        dtype: of the elements.
        layout: of the samples.
    """

    def __init__(self, through: Streaming, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> None:
        self._through, self._shapes, self._dtype, self._layout = through, shapes, dtype, layout
        kind = numpy_dtype(dtype)
        self._ends = list(itertools.accumulate(map(math.prod, shapes), initial=0))
        size = self._ends[-1]
        self._staging = staging()
        self._pinned = self._staging.take(size * kind.itemsize)
        self._host = self._pinned.bytes[: size * kind.itemsize].view(kind)
        cupy = require_cupy()
        # The memory may be one that others still read, in the order of the current stream.
        follow(through.stream, cupy.cuda.get_current_stream(), through.event)
        with through.stream:
            self._elements = cupy.empty(size, kind)

    def host(self, index: int) -> np.ndarray:
        """Where a sample is to be made."""
        return self._host[self._ends[index] : self._ends[index + 1]].reshape(self._shapes[index])

    def send(self, index: int) -> None:
        """Copies a sample that is made; on any thread."""
        begin, end = self._ends[index : index + 2]
        if begin == end:
            return
        source = self._host[begin:end]
        with self._through.device:
            target = self._elements[begin:end].data
            target.copy_from_host_async(source.ctypes.data, source.nbytes, self._through.stream)

    def finish(self) -> TensorListGPU:
        """The batch, in the order of the current stream, when all that is to be sent was sent."""
        self._staging.give_back(self._pinned, self._through.stream)
        follow(require_cupy().cuda.get_current_stream(), self._through.stream, self._through.event)
        return TensorListGPU.of_elements(self._elements, self._shapes, self._layout, len(self._layout), self._dtype)
