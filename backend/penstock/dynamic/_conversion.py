"""Makes arrays of users' data: arrays of any library, numbers, and lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from penstock.data_types import DALIDataType, enum_type, from_numpy_dtype
from penstock.dynamic._dtypes import DType, Kind, array_dtype
from penstock.errors import ElementTypeError
from penstock.tensors import Tensor, TensorCPU, TensorGPU, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.tensor import check_layout, device_view

TensorStorage: TypeAlias = TensorCPU | TensorGPU
"""One array, in the form that pipelines use."""


def is_array(data: object) -> bool:
    """Return whether data are a tensor or an array of any library, rather than a number or a list."""
    return isinstance(data, (np.ndarray, Tensor)) or any(
        hasattr(data, name)
        for name in ("__dlpack_device__", "__array__", "__array_interface__", "__cuda_array_interface__")
    )


def is_on_gpu(data: object) -> bool:
    """Return whether an array is on a GPU."""
    if isinstance(data, (np.ndarray, np.generic)):
        return False
    if hasattr(data, "__dlpack_device__"):
        return data.__dlpack_device__()[0] in (2, 13)
    return hasattr(data, "__cuda_array_interface__")


def of_array(data: object, layout: str) -> TensorStorage:
    """Return an array as a tensor that shares its memory if possible."""
    if isinstance(data, (TensorCPU, TensorGPU)):
        copied = type(data).of_array(data.array, data.layout(), data.source_info(), data.dtype)
        if layout:
            copied.set_layout(layout)
        return copied
    if is_on_gpu(data):
        return TensorGPU(device_view(data), layout)
    array = _host_array(data)
    _element_type(array)
    return TensorCPU.of_array(np.ascontiguousarray(array).reshape(array.shape), check_layout(layout, array.ndim))


def _element_type(array: np.ndarray) -> DALIDataType:
    try:
        return from_numpy_dtype(array.dtype)
    except TypeError as error:
        raise ElementTypeError(f"An array of type {array.dtype} cannot be a tensor: {error}") from None


def _host_array(data: Any) -> np.ndarray:
    if isinstance(data, np.ndarray):
        return data
    if hasattr(data, "__dlpack_device__") and not isinstance(data, np.generic):
        try:
            return np.from_dlpack(data)
        except (BufferError, TypeError, RuntimeError):
            # The array is read-only, or of a type that DLPack does not support.
            return np.array(data)
    return np.asarray(data)


def of_numbers(data: object, dtype: DType | None) -> tuple[np.ndarray, DALIDataType]:
    """Return a number, or lists of numbers, as an array of ``dtype``, and the array's type.

    By default, integers become INT32, or UINT32 if they only fit into that type, and floating-point numbers become FLOAT.

    Raises:
        OverflowError: an integer fits into neither type.
        TypeError: the data are not numbers.
    """
    if dtype is not None:
        kind = np.dtype(np.int32) if dtype.kind is Kind.enum else array_dtype(dtype)
        assert dtype.type_id is not None
        return np.array(data, kind), dtype.type_id
    array = np.array(data)
    if array.dtype.kind == "O":
        array = _enumerated(array, data)
    elif array.dtype.kind in "iu":
        found = enum_type(np.asarray(data, object).flat[0]) if array.size else None
        if found is not None:
            return array.astype(np.int32), found
        if array.dtype.itemsize == 8:
            array = _narrowed(array)
    elif array.dtype == np.float64:
        array = array.astype(np.float32)
    return array, _element_type(array)


def _enumerated(array: np.ndarray, data: object) -> np.ndarray:
    """Return Python integers that are too large for NumPy; raise TypeError for anything else."""
    if array.size and all(type(item) is int for item in array.flat):
        return _narrowed(array)
    raise TypeError(f"A tensor must be made of numbers of one type, in lists of equal lengths; got {data!r}")


def _narrowed(array: np.ndarray) -> np.ndarray:
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    kind = np.uint32 if low >= 0 and high >= 2**31 else np.int32
    limits = np.iinfo(kind)
    if low < limits.min or high > limits.max:
        beyond = low if low < limits.min else high
        raise OverflowError(
            f"The integer {beyond} is out of range for {limits.dtype}. Give a `dtype` or a numpy array."
        )
    return array.astype(kind)


def sample_list(tensor: Tensor, count: int = 1) -> TensorListCPU | TensorListGPU:
    """Return a batch in which all ``count`` samples are this tensor."""
    kind = TensorListCPU if isinstance(tensor, TensorCPU) else TensorListGPU
    infos = [tensor.source_info()] * count if tensor.source_info() else ()
    return kind.of_samples([tensor.array] * count, tensor.layout(), tensor.dtype, tensor.array.ndim, infos)


def copied(storage: TensorStorage) -> TensorStorage:
    """Return a tensor with a copy of the data."""
    return type(storage).of_array(storage.array.copy(), storage.layout(), storage.source_info(), storage.dtype)


def gathered(samples: Sequence[Tensor]) -> TensorList:
    """Return a batch of one or more tensors."""
    kind = TensorListCPU if isinstance(samples[0], TensorCPU) else TensorListGPU
    infos = [sample.source_info() for sample in samples]
    arrays = [sample.array for sample in samples]
    return kind.of_samples(arrays, samples[0].layout(), samples[0].dtype, arrays[0].ndim, infos if any(infos) else ())
