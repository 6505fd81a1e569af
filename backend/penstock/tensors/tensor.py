"""One sample: an n-dimensional array with a type and a layout, on CPU or on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.tensors.cuda import require_cupy
from penstock.types import ENUM_TYPES, DALIDataType, check_readable, dtype_name, from_numpy_dtype, numpy_dtype


def check_layout(layout: str | None, ndim: int) -> str:
    """``layout`` as text; raises ValueError unless it is empty or names each of ``ndim`` dimensions."""
    text = str(layout) if layout else ""
    if text and len(text) != ndim:
        raise ValueError(f"The layout '{text}' has {len(text)} dimensions, but the data has {ndim}")
    return text


class Tensor:
    """What :class:`TensorCPU` and :class:`TensorGPU` have in common.

    Args:
        array: the data; it is not copied.
        layout: one letter a dimension, e.g. ``"HWC"``, or empty.
        source_info: where the sample came from, e.g. a file's path.
    """

    device_type: str

    def __init__(self, array: Any, layout: str | None = None, source_info: str = "") -> None:
        self._array = array
        self._layout = check_layout(layout, array.ndim)
        self._source_info = source_info
        # Set for elements that are members of an enumeration, which numpy keeps as integers.
        self._enum: DALIDataType | None = None

    @property
    def dtype(self) -> DALIDataType:
        return from_numpy_dtype(self._array.dtype) if self._enum is None else self._enum

    def marked(self, dtype: DALIDataType) -> Tensor:
        """This tensor; its elements are from now on those of ``dtype``, if that is an enumeration."""
        if dtype in ENUM_TYPES:
            self._enum = dtype
        return self

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def ndim(self) -> int:
        return int(self._array.ndim)

    def layout(self) -> str:
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        self._layout = check_layout(layout, self._array.ndim)

    def source_info(self) -> str:
        return self._source_info

    def get_property(self, name: str) -> Any:
        if name == "layout":
            return self._layout
        if name == "source_info":
            return self._source_info
        raise RuntimeError(f"Tensor has no property '{name}': it has 'layout' and 'source_info'")

    def squeeze(self, dim: int | None = None) -> bool:
        """Removes dimension ``dim``, or all dimensions of extent 1, in place; tells whether anything was removed."""
        shape = self._array.shape
        axes: tuple[int, ...]
        if dim is not None:
            axes = (dim % len(shape),) if shape and shape[dim] == 1 else ()
        else:
            axes = tuple(i for i, extent in enumerate(shape) if extent == 1)
        if not axes:
            return False
        self._array = self._array.squeeze(axes)
        self._layout = "".join(c for i, c in enumerate(self._layout) if i not in axes)
        return True

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Views the same bytes as another type of the same size."""
        target = numpy_dtype(new_type)
        if target.itemsize != self._array.dtype.itemsize:
            raise ValueError(f"Cannot reinterpret {dtype_name(self.dtype)} as {dtype_name(new_type)}: sizes differ")
        self._array = self._array.view(target)
        self._enum = new_type if new_type in ENUM_TYPES else None

    def __str__(self) -> str:
        check_readable(self.dtype)
        name = type(self).__name__
        layout = self._layout or ""
        return (
            f"{name}(\n{_indented(np.array2string(self._host_array(), separator=', '))},\n"
            f"    dtype={self.dtype},\n    layout={layout!r},\n    shape={self.shape()})"
        )

    __repr__ = __str__

    def _host_array(self) -> np.ndarray:
        raise NotImplementedError

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._host_interface()

    def _host_interface(self) -> dict[str, Any]:
        raise AttributeError("__array_interface__")


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


class TensorCPU(Tensor):
    """A sample in host memory.

    Args:
        array: a numpy array, or anything that numpy can view without a copy (buffers, DLPack).

    >>> TensorCPU(np.zeros((2, 3), np.float32), "HW").shape()
    [2, 3]
    """

    device_type = "cpu"

    def __init__(self, array: Any, layout: str | None = None, source_info: str = "", is_pinned: bool = False) -> None:
        super().__init__(host_view(array), layout, source_info)

    def _host_array(self) -> np.ndarray:
        return self._array

    def as_cpu(self) -> TensorCPU:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        check_readable(self.dtype)
        array = self._array if dtype is None else self._array.astype(dtype, copy=False)
        return array.copy() if copy and array is self._array else array

    def _host_interface(self) -> dict[str, Any]:
        check_readable(self.dtype)
        return self._array.__array_interface__

    def __dlpack__(self, **kwargs: Any) -> Any:
        check_readable(self.dtype)
        return self._array.__dlpack__(**_supported_dlpack_arguments(kwargs))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the data to the memory at address ``ptr``."""
        import ctypes

        source = np.ascontiguousarray(self._array)
        address = getattr(ptr, "value", ptr)
        ctypes.memmove(address, source.ctypes.data, source.nbytes)


def _supported_dlpack_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    """numpy 1.26 knows only ``stream``; consumers written for newer array libraries pass more."""
    if int(np.__version__.split(".")[0]) >= 2:
        return kwargs
    return {"stream": kwargs["stream"]} if kwargs.get("stream") is not None else {}


class TensorGPU(Tensor):
    """A sample in a GPU's memory.

    Args:
        array: a CuPy array, or anything that speaks ``__cuda_array_interface__`` or DLPack.
    """

    device_type = "gpu"

    def __init__(self, array: Any, layout: str | None = None, source_info: str = "", stream: Any = None) -> None:
        super().__init__(device_view(array), layout, source_info)
        self.stream = stream

    def _host_array(self) -> np.ndarray:
        return self._array.get()

    def as_cpu(self) -> TensorCPU:
        tensor = TensorCPU(self._host_array(), self._layout, self._source_info)
        tensor.marked(self.dtype)
        return tensor

    def device_id(self) -> int:
        return int(self._array.device.id)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._array.__cuda_array_interface__

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device_id())

    def data_ptr(self) -> int:
        return int(self._array.data.ptr)

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copies the data to the memory, on host or device, at address ``ptr``."""
        copy_device_to(self._array, ptr, cuda_stream, non_blocking)


def copy_device_to(array: Any, ptr: Any, cuda_stream: Any, non_blocking: bool) -> None:
    """Copies a CuPy array's bytes to an address; waits unless ``non_blocking``."""
    cupy = require_cupy("copying from a GPU")
    stream = as_cupy_stream(cuda_stream)
    source = cupy.ascontiguousarray(array)
    runtime = cupy.cuda.runtime
    runtime.memcpyAsync(
        int(getattr(ptr, "value", ptr)), source.data.ptr, source.nbytes, runtime.memcpyDefault, stream.ptr
    )
    if not non_blocking:
        stream.synchronize()


def as_cupy_stream(stream: Any) -> Any:
    """A CuPy stream for None (the current one), an address, or another library's stream object."""
    cupy = require_cupy("a CUDA stream")
    if stream is None:
        return cupy.cuda.get_current_stream()
    if isinstance(stream, cupy.cuda.Stream | cupy.cuda.ExternalStream):
        return stream
    pointer = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    return cupy.cuda.ExternalStream(int(getattr(pointer, "value", pointer) or 0))


def host_view(data: Any) -> np.ndarray:
    """A numpy view of host data, without a copy where its memory allows it.

    Takes numpy arrays, tensors, buffers, DLPack producers (torch) and Python sequences of numbers.
    """
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, Tensor):
        return data._host_array()
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):
        return np.from_dlpack(data)
    return np.asarray(data)


def device_view(data: Any) -> Any:
    """A CuPy view of device data, without a copy; host data is uploaded."""
    cupy = require_cupy("a tensor on the GPU")
    if isinstance(data, cupy.ndarray):
        return data
    if isinstance(data, TensorGPU):
        return data._array
    if hasattr(data, "__cuda_array_interface__"):
        return cupy.asarray(data)
    if hasattr(data, "__dlpack_device__") and data.__dlpack_device__()[0] != 1:
        return cupy.from_dlpack(data)
    return cupy.asarray(host_view(data))
