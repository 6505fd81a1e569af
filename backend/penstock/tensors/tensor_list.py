"""A batch: samples of one type and rank whose shapes may differ, owned by one buffer where that can be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from penstock.tensors.cuda import require_cupy
from penstock.tensors.memory import HostPool
from penstock.tensors.tensor import Tensor, TensorCPU, TensorGPU, check_layout, copy_device_to, device_view, host_view
from penstock.types import ENUM_TYPES, DALIDataType, check_readable, dtype_name, from_numpy_dtype, numpy_dtype

Shape = tuple[int, ...]


def _volumes(shapes: Sequence[Shape]) -> list[int]:
    return [math.prod(shape) for shape in shapes]


class TensorList:
    """What :class:`TensorListCPU` and :class:`TensorListGPU` have in common.

    Attributes:
        shapes: the samples' shapes.
        source_infos: where each sample came from (files' paths and the like), or empty.
        positions: of the samples in the pipeline's batch, where conditionals have split it; else None.
    """

    device_type: ClassVar[str]
    _tensor_class: ClassVar[type[Tensor]]

    def __init__(self) -> None:
        self._dtype: DALIDataType = DALIDataType.NO_TYPE
        self._ndim = 0
        self._layout = ""
        self.shapes: list[Shape] = []
        self.source_infos: list[str] = []
        self.positions: list[int] | None = None
        self._samples: list[Any] | None = []
        # A 1-D array of the elements of all samples, one after the other, where the batch is contiguous.
        self._elements: Any = None

    # -- making ------------------------------------------------------------------------------------------------

    @classmethod
    def of_samples(
        cls,
        samples: Sequence[Any],
        layout: str = "",
        dtype: DALIDataType | None = None,
        ndim: int | None = None,
        source_infos: Sequence[str] = (),
    ) -> Any:
        """A batch of arrays that live on this class's device already. Nothing is copied or checked.

        ``dtype`` and ``ndim`` tell what an empty batch holds.
        """
        self = cls.__new__(cls)
        TensorList.__init__(self)
        self._samples = list(samples)
        self.shapes = [sample.shape for sample in self._samples]
        first = self._samples[0] if self._samples else None
        if dtype is None and first is not None:
            dtype = from_numpy_dtype(first.dtype)
        self._dtype = dtype if dtype is not None else DALIDataType.NO_TYPE
        self._ndim = first.ndim if first is not None else (ndim or 0)
        self._layout = layout
        self.source_infos = list(source_infos)
        return self

    @classmethod
    def of_elements(cls, elements: Any, shapes: Sequence[Shape], layout: str = "", ndim: int | None = None) -> Any:
        """A contiguous batch: ``elements`` is 1-D and holds the samples one after the other."""
        self = cls.__new__(cls)
        TensorList.__init__(self)
        self._elements = elements
        self._samples = None
        self.shapes = list(shapes)
        self._dtype = from_numpy_dtype(elements.dtype)
        self._ndim = len(self.shapes[0]) if self.shapes else (ndim or 0)
        self._layout = layout
        return self

    def relabelled(self, layout: str | None = None, shapes: Sequence[Shape] | None = None) -> Any:
        """The same data under another layout, or with each sample in another shape of the same volume."""
        if shapes is None:
            other = type(self).of_samples(self.samples, self._layout, self._dtype, self._ndim, self.source_infos)
            other._elements = self._elements
        elif self._elements is not None:
            other = type(self).of_elements(self._elements, shapes)
        else:
            other = type(self).of_samples([s.reshape(shape) for s, shape in zip(self.samples, shapes)])
        other._dtype = self._dtype
        other._layout = self._layout if layout is None else layout
        other.source_infos = self.source_infos
        return other

    def subset(self, indices: Sequence[int]) -> Any:
        """The batch of the samples at ``indices``, in that order, sharing memory."""
        samples = self.samples
        infos = [self.source_infos[i] for i in indices] if self.source_infos else ()
        return type(self).of_samples([samples[i] for i in indices], self._layout, self._dtype, self._ndim, infos)

    # -- looking -----------------------------------------------------------------------------------------------

    @property
    def samples(self) -> list[Any]:
        """The samples as arrays of the device's library (numpy or CuPy), sharing the batch's memory."""
        if self._samples is None:
            samples, start = [], 0
            for shape in self.shapes:
                stop = start + math.prod(shape)
                samples.append(self._elements[start:stop].reshape(shape))
                start = stop
            self._samples = samples
        return self._samples

    @property
    def dtype(self) -> DALIDataType:
        return self._dtype

    def ndim(self) -> int:
        return self._ndim

    def layout(self) -> str:
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        self._layout = check_layout(layout, self._ndim)

    def shape(self) -> list[Shape]:
        return list(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def source_info(self, index: int) -> str:
        return self.source_infos[index] if self.source_infos else ""

    def __getitem__(self, index: int) -> Any:
        tensor = self._tensor_class(self._sample_at(index), self._layout, self.source_info(index))
        return tensor.marked(self._dtype)

    def _sample_at(self, index: int) -> Any:
        index = int(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"TensorList index {index} is out of range: the batch has {len(self)} samples")
        return self.samples[index]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def is_dense_tensor(self) -> bool:
        """Whether all samples have the same shape."""
        return all(shape == self.shapes[0] for shape in self.shapes)

    def reinterpret(self, new_type: DALIDataType) -> None:
        target = numpy_dtype(new_type)
        if self._dtype != DALIDataType.NO_TYPE and target.itemsize != numpy_dtype(self._dtype).itemsize:
            raise ValueError(f"Cannot reinterpret {dtype_name(self._dtype)} as {dtype_name(new_type)}: sizes differ")
        if self._elements is not None:
            self._elements, self._samples = self._elements.view(target), None
        else:
            self._samples = [sample.view(target) for sample in self.samples]
        self._dtype = new_type

    def reset(self) -> None:
        """Forgets the samples."""
        TensorList.__init__(self)

    def _contiguous_elements(self) -> Any:
        raise NotImplementedError

    def _dense(self) -> Any:
        if not self.is_dense_tensor():
            raise RuntimeError(
                "The batch cannot be seen as one tensor: the tensors in the list do not all have the same shape "
                "(no uniform shape)"
            )
        shape = self.shapes[0] if self.shapes else (0,) * self._ndim
        return self._contiguous_elements().reshape((len(self), *shape))

    def as_tensor(self) -> Any:
        """The batch as one tensor with a leading batch dimension; raises RuntimeError unless all shapes are equal."""
        return self._tensor_class(self._dense(), "N" + self._layout if self._layout else "").marked(self._dtype)

    def as_reshaped_tensor(self, shape: Sequence[int]) -> Any:
        """The batch's elements as one tensor of ``shape``."""
        elements = self._contiguous_elements()
        if math.prod(shape) != elements.size:
            raise RuntimeError(
                f"The requested shape must have the same volume as the batch: {math.prod(shape)} of {elements.size}"
            )
        return self._tensor_class(elements.reshape(tuple(shape))).marked(self._dtype)

    def __str__(self) -> str:
        check_readable(self._dtype)
        name = type(self).__name__
        body = ",\n".join("    " + line for line in str([self._printable(s) for s in self.samples[:8]]).splitlines())
        more = ", ..." if len(self) > 8 else ""
        return (
            f"{name}(\n{body}{more},\n    dtype={self.dtype},\n    layout={self._layout!r},\n"
            f"    num_samples={len(self)},\n    shape={self.shape()})"
        )

    __repr__ = __str__

    def _printable(self, sample: Any) -> Any:
        return sample


def _checked_samples(samples: Sequence[Any]) -> None:
    if not samples:
        return
    first = samples[0]
    for index, sample in enumerate(samples):
        if sample.dtype != first.dtype:
            raise TypeError(
                "All tensors in a batch must have the same type. "
                f"Got: {sample.dtype} at index {index} and {first.dtype} at index 0."
            )
        if sample.ndim != first.ndim:
            raise RuntimeError(
                "All tensors in a batch must have the same number of dimensions. "
                f"Got: {sample.ndim} at index {index} and {first.ndim} at index 0."
            )


class TensorListCPU(TensorList):
    """A batch in host memory.

    Args:
        data: an array whose first dimension is the batch, or a sequence of samples (arrays or tensors).
        layout: layout of a sample, one letter a dimension.

    >>> TensorListCPU([np.zeros((2, 3)), np.zeros((4, 3))]).shape()
    [(2, 3), (4, 3)]
    """

    device_type = "cpu"
    _tensor_class = TensorCPU

    def __init__(self, data: Any = (), layout: str | None = None, is_pinned: bool = False) -> None:
        super().__init__()
        enumeration = DALIDataType.NO_TYPE
        if isinstance(data, (list, tuple)):
            samples = [host_view(sample) for sample in data]
            if data and isinstance(data[0], Tensor):
                layout, enumeration = layout or data[0].layout(), data[0].dtype
        elif isinstance(data, TensorList):
            samples, layout = list(data.as_cpu().samples), layout or data.layout()  # type: ignore[attr-defined]
            enumeration = data.dtype
        else:
            array = host_view(data)
            if isinstance(data, Tensor) and not layout:
                layout = data.layout()[1:]
            if array.ndim and array.flags.c_contiguous:
                self._elements = array.reshape(-1)
            samples = list(array)
            if samples and not isinstance(samples[0], np.ndarray):
                samples = [array[i : i + 1].reshape(()) for i in range(len(array))]
            if not samples:
                self._dtype, self._ndim = from_numpy_dtype(array.dtype), array.ndim - 1
        _checked_samples(samples)
        if samples:
            self._dtype, self._ndim = from_numpy_dtype(samples[0].dtype), samples[0].ndim
        if enumeration in ENUM_TYPES:
            self._dtype = enumeration
        self._samples = samples
        self.shapes = [sample.shape for sample in samples]
        self._layout = check_layout(layout, self._ndim)

    @classmethod
    def allocate(
        cls, shapes: Sequence[Shape], dtype: DALIDataType, layout: str = "", pool: HostPool | None = None
    ) -> Any:
        """A contiguous batch of undefined contents."""
        kind = numpy_dtype(dtype)
        count = sum(_volumes(shapes))
        if pool is None:
            elements = np.empty(count, kind)
        else:
            elements = pool.take(count * kind.itemsize).view(kind)
        batch = cls.of_elements(elements, shapes, layout)
        batch._dtype = dtype
        return batch

    @staticmethod
    def from_dlpack_list(list_of_objects: Sequence[Any], layout: str | None = None, contiguous: bool = False) -> Any:
        batch = TensorListCPU([np.from_dlpack(item) for item in list_of_objects], layout)
        if contiguous:
            batch._contiguous_elements()
        return batch

    @staticmethod
    def broadcast(tensor: Any, num_samples: int) -> Any:
        """A batch in which every sample is the same tensor."""
        array = host_view(tensor)
        layout = tensor.layout() if isinstance(tensor, Tensor) else ""
        dtype = tensor.dtype if isinstance(tensor, Tensor) else from_numpy_dtype(array.dtype)
        return TensorListCPU.of_samples([array] * num_samples, layout, dtype, array.ndim)

    def _contiguous_elements(self) -> np.ndarray:
        if self._elements is None:
            samples = self.samples
            if samples:
                self._elements = np.concatenate([np.ascontiguousarray(s).reshape(-1) for s in samples])
            else:
                kind = np.uint8 if self._dtype == DALIDataType.NO_TYPE else numpy_dtype(self._dtype)
                self._elements = np.empty(0, kind)
            self._samples = None
        return self._elements

    def at(self, index: int) -> np.ndarray:
        """Sample ``index`` as a numpy array that shares the batch's memory; raises RuntimeError if there is none."""
        if not 0 <= int(index) < len(self):
            raise RuntimeError(f"Index {index} is out of range: the batch has {len(self)} samples")
        check_readable(self._dtype)
        return self._sample_at(index)

    def as_array(self) -> np.ndarray:
        """The batch as one numpy array; raises RuntimeError unless all shapes are equal."""
        check_readable(self._dtype)
        return self._dense()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if not self.is_dense_tensor():
            raise ValueError("The batch is of an inhomogeneous shape: the shapes of its samples differ")
        check_readable(self._dtype)
        array = self._dense()
        array = array if dtype is None else array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def as_cpu(self) -> TensorListCPU:
        return self

    def data_ptr(self) -> int:
        return int(self._contiguous_elements().ctypes.data)

    def copy_to_external(self, ptr: Any) -> None:
        """Copies all samples, one after the other, to the memory at address ``ptr``."""
        TensorCPU(self._contiguous_elements()).copy_to_external(ptr)


class TensorListGPU(TensorList):
    """A batch in a GPU's memory.

    Args:
        data: a CuPy array (or a speaker of ``__cuda_array_interface__`` or DLPack) whose first dimension is the
            batch, or a sequence of such samples.
    """

    device_type = "gpu"
    _tensor_class = TensorGPU

    def __init__(self, data: Any = (), layout: str | None = None) -> None:
        super().__init__()
        self._stream: Any = None
        if isinstance(data, (list, tuple)):
            samples = [device_view(sample) for sample in data]
            if not layout and data and isinstance(data[0], Tensor):
                layout = data[0].layout()
        elif isinstance(data, TensorListGPU):
            samples, layout = list(data.samples), layout or data.layout()
        else:
            array = device_view(data)
            if isinstance(data, Tensor) and not layout:
                layout = data.layout()[1:]
            if array.flags.c_contiguous:
                self._elements = array.reshape(-1)
            samples = [array[i] for i in range(len(array))]
            if not samples:
                self._dtype, self._ndim = from_numpy_dtype(array.dtype), array.ndim - 1
        _checked_samples(samples)
        if samples:
            self._dtype, self._ndim = from_numpy_dtype(samples[0].dtype), samples[0].ndim
        self._samples = samples
        self.shapes = [sample.shape for sample in samples]
        self._layout = check_layout(layout, self._ndim)

    _stream: Any = None

    @classmethod
    def allocate(cls, shapes: Sequence[Shape], dtype: DALIDataType, layout: str = "") -> Any:
        """A contiguous batch of undefined contents on the current device, ordered by CuPy's current stream."""
        cupy = require_cupy("a batch on the GPU")
        batch = cls.of_elements(cupy.empty(sum(_volumes(shapes)), numpy_dtype(dtype)), shapes, layout)
        batch._dtype = dtype
        return batch

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, stream: Any = None, contiguous: bool = False
    ) -> Any:
        batch = TensorListGPU(list(list_of_objects), layout)
        if contiguous:
            batch._contiguous_elements()
        return batch

    @staticmethod
    def broadcast(tensor: Any, num_samples: int) -> Any:
        """A batch in which every sample is the same tensor."""
        array = device_view(tensor)
        layout = tensor.layout() if isinstance(tensor, Tensor) else ""
        dtype = tensor.dtype if isinstance(tensor, Tensor) else from_numpy_dtype(array.dtype)
        return TensorListGPU.of_samples([array] * num_samples, layout, dtype, array.ndim)

    @classmethod
    def upload(cls, batch: TensorListCPU) -> TensorListGPU:
        """A copy of a host batch on the current device, ordered by CuPy's current stream."""
        cupy = require_cupy("a batch on the GPU")
        if not len(batch):
            return cls.of_samples([], batch.layout(), batch.dtype, batch.ndim())
        host = batch._contiguous_elements()
        elements = cupy.empty(host.size, host.dtype)
        if host.size:
            elements.data.copy_from_host_async(host.ctypes.data, host.nbytes, cupy.cuda.get_current_stream())
        uploaded = cls.of_elements(elements, batch.shapes, batch.layout())
        uploaded._dtype = batch.dtype
        uploaded.source_infos = batch.source_infos
        # Pageable memory is staged before the call returns, pinned memory is not: keep it alive with the copy.
        uploaded._host_source = host
        return uploaded

    _host_source: Any = None

    def pointers(self) -> np.ndarray:
        """Device addresses of the samples, uint64 of shape (batch,)."""
        if self._elements is not None and self._dtype != DALIDataType.NO_TYPE:
            sizes = np.array(_volumes(self.shapes), np.uint64) * np.uint64(numpy_dtype(self._dtype).itemsize)
            starts = np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes)])[: len(sizes)].astype(np.uint64)
            return np.uint64(self._elements.data.ptr) + starts
        return np.array([sample.data.ptr for sample in self.samples], np.uint64)

    def shape_array(self) -> np.ndarray:
        """The samples' shapes as int64 of shape (batch, ndim)."""
        return np.array(self.shapes, np.int64).reshape(len(self), self._ndim)

    def _contiguous_elements(self) -> Any:
        if self._elements is None:
            cupy = require_cupy("a batch on the GPU")
            samples = self.samples
            kind = np.uint8 if self._dtype == DALIDataType.NO_TYPE else numpy_dtype(self._dtype)
            self._elements = cupy.concatenate([s.reshape(-1) for s in samples]) if samples else cupy.empty(0, kind)
            self._samples = None
        return self._elements

    def at(self, index: int) -> Any:
        """Sample ``index`` as a :class:`TensorGPU`."""
        return self[index]

    @property
    def stream(self) -> Any:
        """The stream in whose order the contents become valid, or None."""
        return self._stream

    def device_id(self) -> int:
        return int(self._contiguous_elements().device.id)

    def as_cpu(self) -> TensorListCPU:
        """A copy in host memory; waits for the copy."""
        if not len(self):
            return TensorListCPU.of_samples([], self._layout, self._dtype, self._ndim)
        host = self._contiguous_elements().get()
        batch = TensorListCPU.of_elements(host, self.shapes, self._layout)
        batch._dtype = self._dtype
        batch.source_infos = self.source_infos
        return batch

    def data_ptr(self) -> int:
        return int(self._contiguous_elements().data.ptr)

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copies all samples, one after the other, to the memory (host or device) at address ``ptr``."""
        copy_device_to(self._contiguous_elements(), ptr, cuda_stream, non_blocking)

    def _printable(self, sample: Any) -> Any:
        return sample.get()
