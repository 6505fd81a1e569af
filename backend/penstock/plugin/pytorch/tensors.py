"""Batches as PyTorch tensors, without copies if possible."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from penstock.data_types import NUMBER_TYPES, DALIDataType, from_numpy_dtype, numpy_dtype
from penstock.tensors import Tensor, TensorGPU, TensorList
from penstock.tensors.cuda import require_cupy, stream_at

if TYPE_CHECKING:
    from penstock.tensors.streams import Stream

# The largest number of bytes that are retained for work that PyTorch has queued; above this, a pipeline waits for the work.
_MAX_RETAINED_BYTES = 256 << 20

to_torch_type: dict[DALIDataType, torch.dtype] = {
    dtype: getattr(torch, numpy_dtype(dtype).name) for dtype in NUMBER_TYPES
}


class Lender:
    """Lends memory of pipelines to PyTorch, and releases it once PyTorch's work on it is done.

    PyTorch queues work, and a program may release a batch long before PyTorch reads it. If the pipeline's stream waited for
    this work before it reuses the memory, the next batches would not be prepared while PyTorch computes, and PyTorch would have
    to wait for them. So the memory is retained until the work is done, and the stream waits only if too much memory is
    retained.

    Attributes:
        bytes: the number of retained bytes.
    """

    def __init__(self) -> None:
        # Reentrant: the garbage collector may release tensors at any time, also while the lock is held.
        self._lock = threading.RLock()
        self._retained: deque[_RetainedArray] = deque()
        self.bytes = 0

    def take_back(self) -> None:
        """Release the retained memory that PyTorch no longer reads."""
        with self._lock:
            while self._retained and (self.bytes > _MAX_RETAINED_BYTES or self._retained[0].read.query()):
                self._release_oldest()

    def keep(self, array: Any, producer: Stream, consumer: torch.cuda.Stream) -> None:
        """Retain an array until the work queued so far on PyTorch's stream is done.

        Args:
            producer: the stream on which the array's memory will be used again.
        """
        with self._lock:
            self._retained.append(_RetainedArray(array, consumer.record_event(), producer))
            self.bytes += array.nbytes
        self.take_back()

    def _release_oldest(self) -> None:
        oldest = self._retained.popleft()
        self.bytes -= oldest.array.nbytes
        if not oldest.read.query():
            torch.cuda.ExternalStream(oldest.producer.ptr, oldest.array.device.id).wait_event(oldest.read)

    def __del__(self) -> None:
        while self._retained:
            self._release_oldest()


class _RetainedArray(NamedTuple):
    """An array, the event on PyTorch's stream after its last use, and the stream that will use its memory again."""

    array: Any
    read: torch.cuda.Event
    producer: Stream


class _Lease:
    """Owns an array of a pipeline as long as PyTorch tensors that share its memory exist."""

    def __init__(self, lender: Lender, array: Any, producer: Stream, consumer: torch.cuda.Stream) -> None:
        self._lender, self._array, self._producer, self._consumer = lender, array, producer, consumer

    def __del__(self) -> None:
        self._lender.keep(self._array, self._producer, self._consumer)


def from_host(array: Any) -> torch.Tensor:
    """Return a tensor that shares the memory of a numpy array; a copy if the array is read-only."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def lend(array: Any, producer: Stream, lender: Lender) -> torch.Tensor:
    """Return a tensor that shares the memory of a pipeline's array, whose contents must be valid on PyTorch's current stream.

    Args:
        array: a CuPy array, C-contiguous.
        producer: the stream on which the array's memory will be used again.
        lender: retains the memory after the tensor is released.
    """
    cupy = require_cupy()
    lender.take_back()
    if not array.size:
        return _from_device(array)
    consumer = torch.cuda.current_stream(array.device.id)
    lease = _Lease(lender, array, producer, consumer)
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, lease, array.device.id)
    view = cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))
    # The current stream is set for the array's device: each device has a separate current stream.
    with array.device, stream_at(consumer.cuda_stream, array.device.id):
        return torch.from_dlpack(view)


def _from_device(array: Any) -> torch.Tensor:
    with array.device:
        return torch.from_dlpack(array)


def to_torch_tensor(dali_tensor: Tensor, copy: bool = False) -> torch.Tensor:
    """Return a tensor or a dense batch as a PyTorch tensor.

    Args:
        dali_tensor: a tensor on either device.
        copy: whether to copy the memory; False: the tensor shares it.

    Raises:
        ValueError: the samples of a batch differ in shape.
    """
    if isinstance(dali_tensor, TensorList):
        dali_tensor = dali_tensor.as_tensor()
    array = dali_tensor.array
    tensor = _from_device(array) if isinstance(dali_tensor, TensorGPU) else from_host(array)
    return tensor.clone() if copy else tensor


def feed_ndarray(dali_tensor: Any, arr: torch.Tensor, cuda_stream: object = None) -> torch.Tensor:
    """Copy a tensor or a dense batch into a PyTorch tensor of the same shape and type.

    Args:
        dali_tensor: a tensor on either device.
        arr: the tensor to copy to, which must be contiguous.
        cuda_stream: the stream on which to copy; by default, the call waits for the copy.

    Raises:
        AssertionError: shapes or types differ.
    """
    source = dali_tensor.as_tensor() if isinstance(dali_tensor, TensorList) else dali_tensor
    dtype = to_torch_type[from_numpy_dtype(source.array.dtype)]
    if dtype != arr.dtype:
        raise AssertionError(
            "The element type of DALI Tensor/TensorList doesn't match the element type of the target PyTorch Tensor: "
            f"{dtype} vs {arr.dtype}"
        )
    if tuple(source.shape()) != tuple(arr.size()):
        raise AssertionError(f"Shapes do not match: {list(source.shape())} is to be copied to {list(arr.size())}")
    if isinstance(source, TensorGPU):
        source.copy_to_external(arr.data_ptr(), cuda_stream, non_blocking=cuda_stream is not None)
    else:
        source.copy_to_external(arr.data_ptr())
    return arr
