"""Batches as PyTorch tensors, without copies if possible."""

from __future__ import annotations

from typing import Any

import torch

from penstock.data_types import NUMBER_TYPES, DALIDataType, from_numpy_dtype, numpy_dtype
from penstock.tensors import Tensor, TensorGPU, TensorList
from penstock.tensors.cuda import require_cupy, stream_at

to_torch_type: dict[DALIDataType, torch.dtype] = {
    dtype: getattr(torch, numpy_dtype(dtype).name) for dtype in NUMBER_TYPES
}


class _Lease:
    """Holds an array of a pipeline while PyTorch uses its memory.

    A pipeline computes its batches on its own stream, and reuses memory as soon as nothing refers to it. PyTorch's
    queued work on it must finish first, so the pipeline's stream waits for PyTorch's.
    """

    def __init__(self, array: Any, producer: Any, consumer: Any) -> None:
        self._array = array
        self._producer = producer
        self._consumer = consumer

    def __del__(self) -> None:
        torch.cuda.ExternalStream(self._producer.ptr, self._array.device.id).wait_stream(self._consumer)


def from_host(array: Any) -> torch.Tensor:
    """A tensor that shares the memory of a numpy array; a copy if that is read-only."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def from_device(array: Any, producer: Any = None) -> torch.Tensor:
    """A tensor that shares the memory of a CuPy array with valid contents on PyTorch's current stream.

    Args:
        array: C-contiguous.
        producer: the CuPy stream on which its memory will be reused.
    """
    cupy = require_cupy()
    if producer is None or not array.size:
        with array.device:
            return torch.from_dlpack(array)
    consumer = torch.cuda.current_stream(array.device.id)
    lease = _Lease(array, producer, consumer)
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, lease, array.device.id)
    view = cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))
    # Each device has its own current stream: otherwise that of the wrong device would be used.
    with array.device, stream_at(consumer.cuda_stream, array.device.id):
        return torch.from_dlpack(view)


def to_torch_tensor(dali_tensor: Tensor, copy: bool = False) -> torch.Tensor:
    """A tensor or a dense batch as a PyTorch tensor.

    Args:
        dali_tensor: on either device.
        copy: False: the memory is shared.

    Raises:
        ValueError: a batch whose samples differ in shape.
    """
    if isinstance(dali_tensor, TensorList):
        dali_tensor = dali_tensor.as_tensor()
    array = dali_tensor.array
    tensor = from_device(array) if isinstance(dali_tensor, TensorGPU) else from_host(array)
    return tensor.clone() if copy else tensor


def feed_ndarray(dali_tensor: Any, arr: torch.Tensor, cuda_stream: object = None) -> torch.Tensor:
    """Copies a tensor or a dense batch into a PyTorch tensor of the same shape and type.

    Args:
        dali_tensor: on either device.
        arr: contiguous, where to copy to.
        cuda_stream: the stream to copy on; by default the call waits for the copy.

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
