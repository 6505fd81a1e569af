"""Batches on the CPU and on the GPU: samples of one type and number of dimensions, in one buffer if possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, check_readable, from_numpy_dtype, numpy_dtype
from penstock.tensors.batch import (
    Shape,
    TensorList,
    arrays_of,
    check_dlpack_list,
    equally_apart,
    total_volume,
    volumes,
)
from penstock.tensors.cuda import require_cupy
from penstock.tensors.memory import HostPool
from penstock.tensors.tensor import (
    NOT_GIVEN,
    Tensor,
    TensorCPU,
    TensorGPU,
    buffer_view,
    copy_device_to,
    device_view,
    host_view,
    only_given,
)
from penstock.tensors.transfers import SMALL_BYTES, Arrival, HostBlocks, Threads, array_to_host, transfers

# The device address of a CuPy array.
_POINTER = attrgetter("data.ptr")


class TensorListCPU(TensorList):
    """A batch in host memory.

    Args:
        b: an array (or a buffer, a DLPack object) whose first dimension is the batch; a list of samples (arrays or
            tensors); or a batch, whose memory is shared.
        layout: the layout of a sample, one letter per dimension.
        is_pinned: ignored, as only the owner of the memory knows whether it is page-locked. As the third positional argument after a list,
            it means ``contiguous``.
        contiguous: whether to copy the samples of a list to one buffer; otherwise they stay where they are.
        tl, object, list_of_tensors: the data; other names of the first argument.

    >>> TensorListCPU([np.zeros((2, 3)), np.zeros((4, 3))]).shape()
    [(2, 3), (4, 3)]
    """

    device_type = "cpu"
    _tensor_class = TensorCPU

    def __init__(
        self,
        b: object = NOT_GIVEN,
        layout: str | None = None,
        is_pinned: bool | None = None,
        *,
        contiguous: bool | None = None,
        tl: object = NOT_GIVEN,
        object: object = NOT_GIVEN,
        list_of_tensors: object = NOT_GIVEN,
    ) -> None:
        super().__init__()
        names = {"b": b, "tl": tl, "object": object, "list_of_tensors": list_of_tensors}
        data = only_given(names, "TensorListCPU")
        if data is None:
            raise ValueError("The source object must not be null: it is None")
        if isinstance(data, list):
            in_one_piece = next((flag for flag in (contiguous, is_pinned) if flag is not None), True)
            self._set_list(data, layout, in_one_piece)
        elif isinstance(data, TensorListCPU):
            self._adopt(data.samples, layout or data.layout(), data.ndim())
            self.elements, self._dtype = data.elements, data._dtype
            self._scattered = data._scattered
        else:
            self._set_array(buffer_view(data), layout)

    def _set_list(self, data: list[object], layout: str | None, contiguous: bool) -> None:
        if not data:
            self._adopt([], layout, len(layout or ""))
            return
        arrays, data_layout = arrays_of(data, buffer_view, "TensorCPU")
        self._adopt([array.copy() for array in arrays] if contiguous else arrays, layout or data_layout)
        self._scattered = not contiguous and len(arrays) > 1

    def _set_array(self, array: np.ndarray, layout: str | None) -> None:
        if array.ndim == 0:
            raise RuntimeError("Cannot create a TensorList from a 0-dim array: its first dimension is the batch")
        self.elements = array.reshape(-1)
        self._dtype = from_numpy_dtype(array.dtype)
        # Each sample is sliced rather than indexed, so that samples without dimensions are arrays, too.
        self._adopt([array[i : i + 1].reshape(array.shape[1:]) for i in range(len(array))], layout, array.ndim - 1)

    @classmethod
    def allocate(
        cls, shapes: Sequence[Shape], dtype: DALIDataType, layout: str = "", pool: HostPool | None = None
    ) -> TensorListCPU:
        """Make an uninitialized contiguous batch."""
        kind = numpy_dtype(dtype)
        count = total_volume(shapes)
        elements = np.empty(count, kind) if pool is None else pool.take(count * kind.itemsize).view(kind)
        return cls.of_elements(elements, shapes, layout, dtype=dtype)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[object], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """Make a batch of objects with ``__dlpack__``; their memory is shared unless ``contiguous`` is set."""
        check_dlpack_list(list_of_objects)
        return TensorListCPU(list(list_of_objects), layout, contiguous=contiguous)

    @staticmethod
    def broadcast(tensor: object, num_samples: int) -> TensorListCPU:
        """Make a batch of ``num_samples`` samples, all of them the same tensor."""
        if num_samples < 0:
            raise ValueError(f"The number of samples can't be negative. Got: {num_samples}.")
        array = host_view(tensor)
        layout = tensor.layout() if isinstance(tensor, Tensor) else ""
        dtype = tensor.dtype if isinstance(tensor, Tensor) else from_numpy_dtype(array.dtype)
        return TensorListCPU.of_samples([array] * num_samples, layout, dtype, array.ndim)

    # Until samples are needed as arrays: the block of memory that contains them, and their offsets in it.
    _parts: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_parts(
        cls,
        block: np.ndarray,
        starts: np.ndarray,
        shapes: Sequence[Shape],
        dtype: DALIDataType,
        ndim: int,
        source_infos: Sequence[str] = (),
    ) -> TensorListCPU:
        """Make a batch of samples that lie anywhere in a block of memory; nothing is copied.

        Args:
            block: uint8 of shape (n,).
            starts: the offset of each sample's first byte in the block, int64 of shape (samples,).
            shapes, dtype, ndim: the shapes, dtype and number of dimensions of the samples.
            source_infos: the source infos of the samples.
        """
        batch = cls.of_samples([], "", dtype, ndim)
        batch.shapes = list(shapes)
        batch.source_infos = source_infos
        batch._samples, batch._parts = None, (block, starts)
        return batch

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The block, and the offsets of the samples' first bytes, as passed to :meth:`of_parts`; None once samples were needed as
        arrays.
        """
        return self._parts

    @property
    def samples(self) -> list[Any]:
        samples = self._samples
        if samples is not None:
            return samples
        # The attribute is read only once, as several threads may need the samples at the same time.
        parts = self._parts
        if parts is not None:
            block, starts = parts
            kind = numpy_dtype(self._dtype)
            sizes = [volume * kind.itemsize for volume in volumes(self.shapes)]
            spans = zip(starts.tolist(), sizes, self.shapes)
            self._samples = [block[start : start + size].view(kind).reshape(shape) for start, size, shape in spans]
            self._parts = None
        return super().samples

    def contiguous_elements(self) -> np.ndarray:
        if self.elements is None:
            samples = self.samples
            if samples:
                self.elements = np.concatenate([sample.reshape(-1) for sample in samples])
            else:
                kind = np.uint8 if self._dtype == DALIDataType.NO_TYPE else numpy_dtype(self._dtype)
                self.elements = np.empty(0, kind)
            self._samples = self.places = None
        elements: np.ndarray = self.elements
        return elements

    def memory(self) -> tuple[np.dtype, HostBlocks]:
        """Return the type and the location of the elements; scattered small samples are gathered first."""
        if self.elements is None and total_volume(self.shapes) * numpy_dtype(self._dtype).itemsize <= SMALL_BYTES:
            self.contiguous_elements()
        if self.elements is not None:
            return self.elements.dtype, HostBlocks.of_arrays([self.elements])
        parts, kind = self._parts, numpy_dtype(self._dtype)
        if parts is not None:
            block, starts = parts
            return kind, HostBlocks(block.ctypes.data + starts, self.sample_volumes() * kind.itemsize, block)
        if self.places is not None:
            return kind, HostBlocks(self.places, self.sample_volumes() * kind.itemsize, self.samples)
        samples = [np.ascontiguousarray(sample) for sample in self.samples]
        return samples[0].dtype, HostBlocks.of_arrays(samples)

    def at(self, index: int) -> np.ndarray:
        """Return a copy of sample ``index``, counted from 0, as a NumPy array."""
        if not 0 <= index < len(self):
            raise RuntimeError(f"Index is out-of-range: {index} in a batch of {len(self)} samples")
        check_readable(self._dtype)
        return np.array(self.samples[index])

    def as_array(self) -> np.ndarray:
        """Return a copy of the batch as one NumPy array, of shape (0,) if the batch is empty; raise RuntimeError unless all shapes are
        equal.

        For an array that shares the batch's memory, see :meth:`as_tensor` and ``numpy.asarray``.
        """
        check_readable(self._dtype)
        if not len(self):
            return np.empty(0, np.float32 if self._dtype == DALIDataType.NO_TYPE else numpy_dtype(self._dtype))
        copied: np.ndarray = self.stacked().copy()
        return copied

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if not self.is_dense_tensor():
            raise ValueError(
                "An array needs samples of the same shape; the samples of this batch have an inhomogeneous shape"
            )
        check_readable(self._dtype)
        # An empty batch is treated as an empty sequence, for which NumPy knows no type.
        array: np.ndarray[Any, Any] = self.stacked() if len(self) else np.empty(0)
        array = array if dtype is None else np.asarray(array, dtype)  # type: ignore[call-overload]
        return array.copy() if copy else array

    def _as_gpu(self) -> TensorListGPU:
        return TensorListGPU.upload(self)

    def as_cpu(self) -> TensorListCPU:
        """Return the batch in host memory."""
        return self

    def data_ptr(self) -> int:
        """Return the address of the first element of a contiguous batch."""
        if self._scattered:
            raise RuntimeError("Only a contiguous batch has a single data pointer")
        return int(self.contiguous_elements().ctypes.data)

    def copy_to_external(self, ptr: object) -> None:
        """Copy all samples, one after the other, to the memory at address ``ptr``."""
        TensorCPU(self.contiguous_elements()).copy_to_external(ptr)


def _own_device_view(item: object) -> object:
    if isinstance(item, TensorCPU):
        raise TypeError("it is on the CPU")
    return device_view(item)


class TensorListGPU(TensorList):
    """A batch in a GPU's memory.

    Args:
        object: a CuPy array (or an object with ``__cuda_array_interface__`` or ``__dlpack__``) whose first dimension is
            the batch, or a list of such samples, or a batch, whose memory is shared.
        layout: the layout of a sample, one letter per dimension.
        device_id: ignored, as the memory determines the device.
        contiguous: whether to copy the samples of a list to one buffer; otherwise they stay where they are.
        stream: the stream on which the contents become valid.
        tl, list_of_tensors: the data; other names of the first argument.
    """

    device_type = "gpu"
    _tensor_class = TensorGPU

    def __init__(
        self,
        object: object = (),
        layout: str | None = None,
        device_id: int = -1,
        *,
        contiguous: bool = True,
        stream: object = None,
        tl: object = None,
        list_of_tensors: object = None,
    ) -> None:
        super().__init__()
        self._stream: Any = stream
        data = next((candidate for candidate in (tl, list_of_tensors) if candidate is not None), object)
        if isinstance(data, (list, tuple)):
            if not data:
                self._adopt([], layout, len(layout or ""))
                return
            arrays, data_layout = arrays_of(data, _own_device_view, "TensorGPU")
            self._adopt(arrays, layout or data_layout)
            if contiguous:
                self.contiguous_elements()
            self._scattered = not contiguous and len(arrays) > 1
        elif isinstance(data, TensorListGPU):
            self._adopt(data.samples, layout or data.layout(), data.ndim())
            self.elements, self._dtype = data.elements, data._dtype
        else:
            array = device_view(data)
            if array.flags.c_contiguous:
                self.elements = array.reshape(-1)
            self._dtype = from_numpy_dtype(array.dtype)
            self._adopt([array[i] for i in range(len(array))], layout, array.ndim - 1)

    _stream: Any = None
    # The locations of the samples, until these are needed as arrays.
    located: Sequence[Any] | None = None

    @classmethod
    def of_located(cls, samples: Sequence[Any], layout: str, dtype: DALIDataType, ndim: int) -> TensorListGPU:
        """Make a batch of samples in memory that CuPy does not own (:class:`penstock.kernels.cuda.launch.Located`)."""
        self = cls.__new__(cls)
        self._layout, self._dtype, self._ndim = layout, dtype, ndim
        # Classes for the locations of many samples store the shapes separately.
        self.shapes = list(getattr(samples, "shapes", None) or [sample.shape for sample in samples])
        self.located = samples
        return self

    @property
    def samples(self) -> list[Any]:
        if self._samples is None and self.located is not None:
            self._samples, self.located = [location.array() for location in self.located], None
        return super().samples

    @classmethod
    def allocate(cls, shapes: Sequence[Shape], dtype: DALIDataType, layout: str = "") -> TensorListGPU:
        """Make an uninitialized contiguous batch on the current device, ordered by CuPy's current stream."""
        cupy = require_cupy("a batch on the GPU")
        return cls.of_elements(cupy.empty(total_volume(shapes), numpy_dtype(dtype)), shapes, layout, dtype=dtype)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[object], layout: str | None = None, stream: object = None, contiguous: bool = False
    ) -> TensorListGPU:
        """Make a batch of objects with ``__dlpack__``; their memory is shared unless ``contiguous`` is set."""
        check_dlpack_list(list_of_objects)
        return TensorListGPU(list(list_of_objects), layout, contiguous=contiguous, stream=stream)

    @staticmethod
    def broadcast(tensor: object, num_samples: int) -> TensorListGPU:
        """Make a batch of ``num_samples`` samples, all of them the same tensor."""
        if num_samples < 0:
            raise ValueError(f"The number of samples can't be negative. Got: {num_samples}.")
        array = device_view(tensor)
        layout = tensor.layout() if isinstance(tensor, Tensor) else ""
        dtype = tensor.dtype if isinstance(tensor, Tensor) else from_numpy_dtype(array.dtype)
        return TensorListGPU.of_samples([array] * num_samples, layout, dtype, array.ndim)

    @classmethod
    def upload(cls, batch: TensorListCPU, copy_threads: Threads | None = None) -> TensorListGPU:
        """Return a copy of a host batch on the current device, ordered by CuPy's current stream.

        Args:
            batch: the host batch. When this returns, it has been read, except page-locked memory, which must not change until the copy is
                done.
            copy_threads: the threads that share the copying; None: as many as there are cores.
        """
        return cls._uploaded(batch, lambda blocks: transfers().upload(blocks, copy_threads))

    @classmethod
    def begin_upload(
        cls, batch: TensorListCPU, copy_threads: Threads | None = None
    ) -> tuple[TensorListGPU, Arrival | None]:
        """Copy a host batch like :meth:`upload`, but let threads read it while the caller does other work.

        Returns:
            The copy, and an arrival. Wait for the arrival before queuing work on the copy; until then, the host batch must not change. If
            the arrival is None, there is no need to wait.
        """
        arrivals: list[Arrival | None] = [None]

        def begun(blocks: HostBlocks) -> Any:
            memory, arrivals[0] = transfers().begin_upload(blocks, copy_threads)
            return memory

        return cls._uploaded(batch, begun), arrivals[0]

    @classmethod
    def _uploaded(cls, batch: TensorListCPU, upload: Callable[[HostBlocks], Any]) -> TensorListGPU:
        """Return a copy of a host batch; ``upload`` copies the batch's blocks, and returns the memory of the copy."""
        cupy = require_cupy("a batch on the GPU")
        if not len(batch):
            return cls.of_samples([], batch.layout(), batch.dtype, batch.ndim())
        kind, blocks = batch.memory()
        elements = cupy.ndarray(total_volume(batch.shapes), kind, upload(blocks))
        uploaded = cls.of_elements(elements, batch.shapes, batch.layout())
        uploaded._dtype = batch.dtype
        uploaded.source_infos = batch.source_infos
        return uploaded

    def pointers(self) -> np.ndarray:
        """Return the device addresses of the samples, uint64 of shape (batch,)."""
        if self.elements is not None and self._dtype is not DALIDataType.NO_TYPE:
            shapes, first, itemsize = self.shapes, self.elements.data.ptr, numpy_dtype(self._dtype).itemsize
            if shapes and shapes.count(shapes[0]) == len(shapes):
                return equally_apart(first, math.prod(shapes[0]) * itemsize, len(shapes)).view(np.uint64)
            sizes = self.sample_volumes() * itemsize
            starts: np.ndarray = sizes.cumsum() - sizes + first
            return starts.view(np.uint64)
        return np.array(list(map(_POINTER, self.samples)), np.uint64)

    def contiguous_elements(self) -> Any:
        if self.elements is None:
            cupy = require_cupy("a batch on the GPU")
            samples = self.samples
            kind = np.uint8 if self._dtype == DALIDataType.NO_TYPE else numpy_dtype(self._dtype)
            if samples:
                # Concatenate on the samples' device, which may not be the current one.
                with samples[0].device:
                    self.elements = cupy.concatenate([sample.reshape(-1) for sample in samples])
            else:
                self.elements = cupy.empty(0, kind)
            self._samples = None
        elements: np.ndarray = self.elements
        return elements

    def _make_copy(self) -> Any:
        if not len(self):
            return super()._make_copy()
        with self.samples[0].device:
            return super()._make_copy()

    def at(self, index: int) -> Any:
        """Return sample ``index`` as a :class:`TensorGPU`."""
        return self[index]

    @property
    def stream(self) -> Any:
        """The stream on which the contents become valid, or None."""
        return self._stream

    def device_id(self) -> int:
        """Return the number of the GPU."""
        holder = self.elements if self.elements is not None or not len(self) else self.samples[0]
        return int((self.contiguous_elements() if holder is None else holder).device.id)

    def as_cpu(self) -> TensorListCPU:
        """Return a copy in host memory; wait for the copy."""
        if not len(self):
            return TensorListCPU.of_samples([], self._layout, self._dtype, self._ndim)
        host = array_to_host(self.contiguous_elements())
        batch = TensorListCPU.of_elements(host, self.shapes, self._layout)
        batch._dtype = self._dtype
        batch.source_infos = self.source_infos
        return batch

    def data_ptr(self) -> int:
        """Return the address of the first element of a contiguous batch."""
        return int(self.contiguous_elements().data.ptr)

    def copy_to_external(
        self, ptr: object, cuda_stream: object = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copy all samples, one after the other, to the memory at address ``ptr``, which may be on the host or a device."""
        copy_device_to(self.contiguous_elements(), ptr, cuda_stream, non_blocking)

    def _printable(self, sample: Any) -> Any:
        return sample.get()
