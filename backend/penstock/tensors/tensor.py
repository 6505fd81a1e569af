"""One sample: an n-dimensional array with a type and a layout, on the CPU or GPU."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from penstock.data_types import (
    CODED_TYPES,
    DALIDataType,
    NamedEnum,
    check_readable,
    dtype_name,
    from_numpy_dtype,
    numpy_dtype,
)
from penstock.tensors.cuda import require_cupy, stream_at
from penstock.tensors.dlpack import Capsule, is_capsule
from penstock.tensors.formatting import tensor_text
from penstock.tensors.transfers import array_to_host

# The default of arguments for which None is a value.
NOT_GIVEN: object = type("NotGiven", (), {"__repr__": lambda self: "NOT_GIVEN"})()


class DLDeviceType(NamedEnum):
    """A kind of device, by DLPack's name."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def check_layout(layout: str | None, ndim: int) -> str:
    """Return ``layout`` as a string; raise ValueError unless it is empty or names all ``ndim`` dimensions."""
    if layout is not None and not isinstance(layout, str):
        raise TypeError(f"A layout must be a str or None, got {layout!r}")
    text = str(layout) if layout else ""
    if text and len(text) != ndim:
        raise ValueError(
            "A non-empty layout must have the same number of dimensions as the data: "
            f"the layout '{text}' has {len(text)} dimensions, but the data has {ndim}"
        )
    return text


def only_given(arguments: dict[str, object], owner: str) -> Any:
    """Return the value of the only argument that is set; raise TypeError unless exactly one is set."""
    values = [value for value in arguments.values() if value is not NOT_GIVEN]
    if len(values) != 1:
        raise TypeError(
            f"{owner}() takes its data as one argument, {' or '.join(arguments)}; got {len(values)} of them"
        )
    return values[0]


_Tensor = TypeVar("_Tensor", bound="Tensor")


class Tensor:
    """Base class of :class:`TensorCPU` and :class:`TensorGPU`."""

    device_type: str

    array: Any
    _layout: str
    _source_info: str
    # The type of the elements if it differs from the array's, for types that NumPy lacks.
    _type: DALIDataType | None = None

    @classmethod
    def of_array(
        cls: type[_Tensor], array: object, layout: str = "", source_info: str = "", dtype: DALIDataType | None = None
    ) -> _Tensor:
        """Make a tensor of an array that is already on this class's device; nothing is copied or checked.

        Args:
            array: the data.
            layout: one letter per dimension, or empty.
            source_info: the source of the sample, e.g. a file's path.
            dtype: the type of the elements, if it differs from the array's.
        """
        self = cls.__new__(cls)
        self.array, self._layout, self._source_info, self._type = array, layout, source_info, dtype
        return self

    def _set(self, array: Any, layout: str | None) -> None:
        self.array = array
        self._layout = check_layout(layout, array.ndim)
        self._source_info = ""

    @property
    def dtype(self) -> DALIDataType:
        """The type of the elements."""
        return from_numpy_dtype(self.array.dtype) if self._type is None else self._type

    def marked(self, dtype: DALIDataType) -> Tensor:
        """Return this tensor; if NumPy lacks ``dtype``, its elements are reinterpreted as that type."""
        if dtype in CODED_TYPES:
            self._type = dtype
        return self

    def shape(self) -> list[int]:
        """Return the extents, as a list."""
        return list(self.array.shape)

    def ndim(self) -> int:
        """Return the number of dimensions."""
        return int(self.array.ndim)

    def layout(self) -> str:
        """Return the names of the dimensions, or an empty string."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Name the dimensions; None or an empty string removes the names."""
        self._layout = check_layout(layout, self.array.ndim)

    def source_info(self) -> str:
        """Return the source of the data, for example a file's path; or an empty string."""
        return self._source_info

    def get_property(self, name: str) -> str | None:
        """Return the property ``layout`` or ``source_info``; None if the property is empty, and for any other name."""
        return {"layout": self._layout, "source_info": self._source_info}.get(name) or None

    def squeeze(self, dim: int | None = None) -> bool:
        """Remove the dimension ``dim``, or if it is None all dimensions of extent 1, in place; return whether any was removed."""
        shape = self.array.shape
        axes: tuple[int, ...]
        if dim is None:
            axes = tuple(i for i, extent in enumerate(shape) if extent == 1)
        elif not isinstance(dim, (int, np.integer)) or not -len(shape) <= dim < len(shape):
            raise RuntimeError(f"axis {dim!r} is out of bound for a tensor with {len(shape)} dimensions")
        else:
            axes = (int(dim) % len(shape),) if shape[dim] == 1 else ()
        if not axes:
            return False
        self.array = self.array.squeeze(axes)
        self._layout = "".join(c for i, c in enumerate(self._layout) if i not in axes)
        return True

    def reinterpret(self, new_type: DALIDataType) -> None:
        """View the same bytes as elements of another type of the same size."""
        self.array = self.array.view(reinterpreted_dtype(self.dtype, new_type))
        self._type = new_type

    def __str__(self) -> str:
        check_readable(self.dtype)
        return self._text(self._host_array())

    def __repr__(self) -> str:
        return self._text(None)

    def _repr_html_(self) -> str:
        """Return a picture for notebooks, if the tensor is an image or a signal."""
        from penstock.tensors.pictures import sample_html

        return sample_html(self._host_array(), self._layout, edge=320)

    def _text(self, data: np.ndarray | None) -> str:
        return tensor_text(type(self).__name__, data, self.dtype, self._layout, self.device_type, self.array.shape)

    def _make_copy(self) -> object:
        return type(self).of_array(self.array.copy(), self._layout, self._source_info, self._type)

    def _host_array(self) -> np.ndarray:
        raise NotImplementedError

    @property
    def __array_interface__(self) -> dict[str, object]:
        return self._host_interface()

    def _host_interface(self) -> dict[str, object]:
        raise AttributeError("__array_interface__")


def reinterpreted_dtype(old: DALIDataType, new: DALIDataType) -> np.dtype:
    """Return the numpy type for viewing elements of type ``old`` as ``new``; raise RuntimeError if sizes differ."""
    target = numpy_dtype(new)
    if old == DALIDataType.NO_TYPE or target.itemsize != numpy_dtype(old).itemsize:
        raise RuntimeError(
            f"Cannot reinterpret {dtype_name(old)} as {dtype_name(new)}, which has a different element size"
        )
    return target


class TensorCPU(Tensor):
    """A sample in host memory.

    Args:
        b: a numpy array, or anything that numpy can view without a copy (buffers, DLPack).
        layout: one letter per dimension, e.g. ``"HWC"``, or empty.
        is_pinned: ignored, as only the owner of the memory knows whether it is page-locked.
        object: the data; the other name of the argument, for DLPack capsules.

    >>> TensorCPU(np.zeros((2, 3), np.float32), "HW").shape()
    [2, 3]
    """

    device_type = "cpu"

    def __init__(
        self,
        b: object = NOT_GIVEN,
        layout: str | None = None,
        is_pinned: bool = False,
        *,
        object: object = NOT_GIVEN,
    ) -> None:
        self._set(buffer_view(only_given({"b": b, "object": object}, "TensorCPU")), layout)

    def _host_array(self) -> np.ndarray:
        array: np.ndarray = self.array
        return array

    def as_cpu(self) -> TensorCPU:
        """Return the tensor in host memory."""
        return self

    def _as_gpu(self) -> TensorGPU:
        return TensorGPU.of_array(device_view(self.array), self._layout, self._source_info, self._type)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        check_readable(self.dtype)
        array: np.ndarray = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy and array is self.array else array

    def _host_interface(self) -> dict[str, object]:
        check_readable(self.dtype)
        interface: dict[str, object] = self.array.__array_interface__
        return interface

    def __dlpack__(
        self,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the data; ``stream`` is ignored for host memory."""
        check_readable(self.dtype)
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError(f"A tensor on the CPU cannot be exported to the device {dl_device}")
        versioned = max_version is not None and int(np.__version__.split(".")[0]) >= 2
        # A capsule of DLPack before version 1 cannot mark memory as read-only.
        must_copy = copy or not (versioned or self.array.flags.writeable)
        array = self.array.copy() if must_copy else self.array
        return array.__dlpack__(max_version=max_version) if versioned else array.__dlpack__()

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        return (DLDeviceType.kDLCPU, 0)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self.array.ctypes.data)

    def copy_to_external(self, ptr: Any) -> None:
        """Copy the data to the memory at address ``ptr``."""
        import ctypes

        source = np.ascontiguousarray(self.array)
        address = getattr(ptr, "value", ptr)
        if address is None:
            raise ValueError("The address to copy to must not be null")
        ctypes.memmove(address, source.ctypes.data, source.nbytes)


class TensorGPU(Tensor):
    """A sample in a GPU's memory.

    Args:
        object: a CuPy array, or an object with ``__cuda_array_interface__`` or ``__dlpack__``.
        layout: one letter per dimension, or empty.
        device_id: ignored, as the memory determines the device.
        stream: the stream on which the contents become valid.
    """

    device_type = "gpu"
    stream: Any = None

    def __init__(
        self, object: object, layout: str | None = None, device_id: int = -1, *, stream: object = None
    ) -> None:
        self._set(device_view(object), layout)
        self.stream = stream

    def _make_copy(self) -> Any:
        with self.array.device:
            return super()._make_copy()

    def _host_array(self) -> np.ndarray:
        return array_to_host(self.array)

    def as_cpu(self) -> TensorCPU:
        """Return the tensor in host memory."""
        return TensorCPU.of_array(self._host_array(), self._layout, self._source_info, self._type)

    def device_id(self) -> int:
        """Return the number of the GPU."""
        return int(self.array.device.id)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        interface: dict[str, object] = self.array.__cuda_array_interface__
        return interface

    def __dlpack__(self, **kwargs: object) -> Any:
        # The capsule is ordered by the stream that is current on the array's device.
        with self.array.device:
            return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        return (DLDeviceType.kDLCUDA, self.device_id())

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self.array.data.ptr)

    def copy_to_external(
        self, ptr: object, cuda_stream: object = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copy the data to the memory at address ``ptr``, which may be on the host or a device."""
        copy_device_to(self.array, ptr, cuda_stream, non_blocking)


def copy_device_to(array: Any, ptr: Any, cuda_stream: object, non_blocking: bool) -> None:
    """Copy the bytes of a CuPy array to an address; wait for the copy unless ``non_blocking``."""
    cupy = require_cupy("copying from a GPU")
    with array.device:
        stream = as_cupy_stream(cuda_stream)
        source = cupy.ascontiguousarray(array)
        runtime = cupy.cuda.runtime
        runtime.memcpyAsync(
            int(getattr(ptr, "value", ptr)), source.data.ptr, source.nbytes, runtime.memcpyDefault, stream.ptr
        )
        if not non_blocking:
            stream.synchronize()


def as_cupy_stream(stream: Any) -> Any:
    """Return a CuPy stream for ``stream``: None (the current stream), the address of a stream on the current device, or a stream object of
    another library.
    """
    cuda = require_cupy("a CUDA stream").cuda
    if stream is None:
        return cuda.get_current_stream()
    if type(stream).__module__.partition(".")[0] == "cupy":
        return stream
    pointer = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    device_id = getattr(getattr(stream, "device", None), "index", None)
    return stream_at(int(getattr(pointer, "value", pointer) or 0), cuda.Device().id if device_id is None else device_id)


def host_view(data: object) -> np.ndarray:
    """Return a numpy view of host data, without a copy if possible.

    Accepts NumPy arrays, tensors, buffers, DLPack producers (such as torch's tensors) and Python sequences of numbers.
    """
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, Tensor):
        return data._host_array()
    if is_capsule(data):
        return np.from_dlpack(Capsule(data))
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):
        return np.from_dlpack(data)
    return np.asarray(data)


def buffer_view(data: object) -> np.ndarray:
    """Return a NumPy view of a buffer: of a NumPy array, an object with the buffer protocol or DLPack, or a DLPack capsule.

    Raises:
        TypeError: the data has another type, e.g. a sequence of numbers.
        RuntimeError: tensors do not support the elements' type, or the elements are not contiguous.
    """
    array = _any_buffer_view(data)
    try:
        from_numpy_dtype(array.dtype)
    except TypeError as error:
        raise RuntimeError(f"Cannot create a tensor of elements of unknown format: {error}") from None
    return check_dense(array)


_Array = TypeVar("_Array", bound=Any)


def check_dense(array: _Array) -> _Array:
    """Return a NumPy or CuPy array unchanged; raise RuntimeError unless its elements are packed in row-major order."""
    if not array.flags.c_contiguous:
        raise RuntimeError(
            f"Strided data is not supported: an array of shape {array.shape} has the strides {array.strides}; "
            "numpy.ascontiguousarray makes it densely packed."
        )
    return array


def _any_buffer_view(data: Any) -> np.ndarray:
    if isinstance(data, np.ndarray):
        # View it as a plain array, as items of a `numpy.matrix` would be matrices.
        return data.view(np.ndarray)
    if isinstance(data, Tensor):
        return data._host_array()
    if is_capsule(data):
        return np.from_dlpack(Capsule(data))
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    try:
        return np.asarray(memoryview(data))
    except TypeError:
        if hasattr(data, "is_dense_tensor"):
            raise BufferError("A batch is not a single buffer: use one of its samples, or `as_tensor()`") from None
        raise TypeError(
            "A tensor needs a buffer (such as a numpy array) or a DLPack object, which is incompatible with "
            f"{type(data).__name__}"
        ) from None


def device_view(data: object) -> Any:
    """Return a CuPy view of device data, without a copy; host data are uploaded."""
    cupy = require_cupy("a tensor on the GPU")
    if isinstance(data, cupy.ndarray):
        return data
    if isinstance(data, TensorGPU):
        return data.array
    if hasattr(data, "__cuda_array_interface__"):
        return cupy.asarray(data)
    if hasattr(data, "__dlpack_device__") and data.__dlpack_device__()[0] != 1:
        return cupy.from_dlpack(data)
    return cupy.asarray(host_view(data))
