"""A batch that is made on the host sample by sample, and copied to the GPU meanwhile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.cuda.launch import Shape, capacity_for, staging
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import require_cupy


class StreamedBatch:
    """A batch on CuPy's current device, in the order of its current stream.

    Each sample is made in pinned memory, on any thread, and is copied from there while others are made.

    Args:
        shapes: of the samples.
        dtype: of the elements.
        layout: of the samples.
    """

    def __init__(self, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> None:
        cuda = require_cupy("a batch on the GPU").cuda
        self._shapes, self._dtype, self._layout = shapes, dtype, layout
        kind = numpy_dtype(dtype)
        self._ends = list(itertools.accumulate(map(math.prod, shapes), initial=0))
        size = self._ends[-1]
        self._capacity = capacity_for(size * kind.itemsize)
        self._staging, self._device, self._stream = staging(), cuda.Device(), cuda.get_current_stream()
        self._pinned = self._staging.take(self._capacity)
        self._host = np.frombuffer(self._pinned, kind, size)
        self._elements = require_cupy().empty(size, kind)

    def host(self, index: int) -> np.ndarray:
        """Where a sample is to be made."""
        return self._host[self._ends[index] : self._ends[index + 1]].reshape(self._shapes[index])

    def send(self, index: int) -> None:
        """Copies a sample that is made; on any thread."""
        begin, end = self._ends[index : index + 2]
        if begin == end:
            return
        source = self._host[begin:end]
        with self._device:
            target = self._elements[begin:end].data
            target.copy_from_host_async(source.ctypes.data, source.nbytes, self._stream)

    def finish(self) -> TensorListGPU:
        """The batch, when all that is to be sent was sent."""
        self._staging.give_back(self._pinned, self._capacity, self._stream)
        return TensorListGPU.of_elements(self._elements, self._shapes, self._layout, len(self._layout), self._dtype)
