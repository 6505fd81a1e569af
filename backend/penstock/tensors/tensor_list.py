"""A batch: samples of one type and rank with possibly different shapes, in one buffer if possible."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from penstock.data_types import DALIDataType, check_readable, dtype_name, from_numpy_dtype, numpy_dtype
from penstock.tensors.cuda import require_cupy
from penstock.tensors.formatting import batch_text
from penstock.tensors.memory import HostPool
from penstock.tensors.pictures import MOST_SHOWN, batch_html
from penstock.tensors.tensor import (
    NOT_GIVEN,
    Tensor,
    TensorCPU,
    TensorGPU,
    buffer_view,
    check_layout,
    copy_device_to,
    device_view,
    host_view,
    only_given,
    reinterpreted_dtype,
)

Shape = tuple[int, ...]


def _volumes(shapes: Sequence[Shape]) -> list[int]:
    return list(map(math.prod, shapes))


_List = TypeVar("_List", bound="TensorList")


class TensorList:
    """The base of :class:`TensorListCPU` and :class:`TensorListGPU`.

    Attributes:
        shapes: the samples' shapes.
        source_infos: the source of each sample (a file's path and the like), or empty.
        positions: of the samples in the pipeline's batch, ascending, if conditionals have split it, or if the samples are
            parts of its samples; otherwise None.
    """

    device_type: ClassVar[str]
    _tensor_class: ClassVar[type[Tensor]]
    # Whether the user asked for the samples not to be copied to one buffer.
    _scattered = False

    def __init__(self) -> None:
        self._dtype: DALIDataType = DALIDataType.NO_TYPE
        self._ndim = 0
        self._layout = ""
        self.shapes: list[Shape] = []
        # The shapes last converted to an array, and that array.
        self._shape_rows: tuple[list[Shape], np.ndarray] | None = None
        self.source_infos: Sequence[str] = []
        self.positions: list[int] | None = None
        self._samples: list[Any] | None = []
        # The elements of all samples as one 1-D array if the batch is contiguous, else None.
        self.elements: Any = None

    # -- making ------------------------------------------------------------------------------------------------

    @classmethod
    def of_samples(
        cls: type[_List],
        samples: Sequence[object],
        layout: str = "",
        dtype: DALIDataType | None = None,
        ndim: int | None = None,
        source_infos: Sequence[str] = (),
    ) -> _List:
        """A batch of arrays that are on this class's device already. Nothing is copied or checked.

        ``dtype`` and ``ndim`` describe an empty batch.
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
    def of_elements(
        cls: type[_List],
        elements: Any,
        shapes: Sequence[Shape],
        layout: str = "",
        ndim: int | None = None,
        dtype: DALIDataType | None = None,
    ) -> _List:
        """A contiguous batch: ``elements`` is 1-D and holds the samples one after the other.

        Args:
            ndim: of a sample, for a batch that may be empty.
            dtype: the type, if it is not the array's.
        """
        self = cls.__new__(cls)
        TensorList.__init__(self)
        self.elements = elements
        self._samples = None
        self.shapes = list(shapes)
        self._dtype = from_numpy_dtype(elements.dtype) if dtype is None else dtype
        self._ndim = len(self.shapes[0]) if self.shapes else (ndim or 0)
        self._layout = layout
        return self

    def relabelled(
        self: _List, layout: str | None = None, shapes: Sequence[Shape] | None = None, ndim: int | None = None
    ) -> _List:
        """The same data with another layout, or with other shapes of the same volume.

        Args:
            ndim: of the new shapes, for a batch that may be empty.
        """
        if self.elements is not None:
            other = type(self).of_elements(self.elements, self.shapes if shapes is None else shapes, ndim=self._ndim)
            other._samples = self._samples if shapes is None else None
        elif shapes is None:
            other = type(self).of_samples(self.samples, self._layout, self._dtype, self._ndim, self.source_infos)
        else:
            other = type(self).of_samples([s.reshape(shape) for s, shape in zip(self.samples, shapes)])
        other._dtype = self._dtype
        other._layout = self._layout if layout is None else layout
        other.source_infos = self.source_infos
        if ndim is not None:
            other._ndim = ndim
        return other

    def subset(self: _List, indices: Sequence[int]) -> _List:
        """The batch of the samples at ``indices``, in that order, sharing memory."""
        samples = self.samples
        infos = [self.source_infos[i] for i in indices] if self.source_infos else ()
        return type(self).of_samples([samples[i] for i in indices], self._layout, self._dtype, self._ndim, infos)

    def made_of(self, start: int, stop: int) -> tuple[int, int]:
        """The range of the samples that were made of those from ``start`` to ``stop`` of the pipeline's batch."""
        if self.positions is None:
            return start, stop
        return bisect_left(self.positions, start), bisect_left(self.positions, stop)

    def emptied(self: _List, indices: Collection[int]) -> _List:
        """The batch with the samples at ``indices`` of size zero, the others sharing memory."""
        samples = [sample.reshape(-1)[:0] if i in indices else sample for i, sample in enumerate(self.samples)]
        return type(self).of_samples(samples, self._layout, self._dtype, self._ndim, self.source_infos)

    def unfolded(self: _List) -> _List:
        """The slices of all samples along their first dimension as one batch, sharing memory."""
        shapes = [shape[1:] for shape in self.shapes for _ in range(shape[0])]
        if self.elements is not None:
            other = type(self).of_elements(self.elements, shapes, self._layout[1:], self._ndim - 1)
        else:
            parts = ((sample, part) for sample in self.samples for part in range(len(sample)))
            # A slice with one dimension less, which stays an array even without dimensions.
            samples = [sample[part : part + 1].reshape(sample.shape[1:]) for sample, part in parts]
            other = type(self).of_samples(samples, self._layout[1:], self._dtype, self._ndim - 1)
        other._dtype = self._dtype
        return other

    def repeated(self: _List, counts: Sequence[int]) -> _List:
        """The batch with each sample repeated, sharing memory."""
        samples = [sample for sample, count in zip(self.samples, counts) for _ in range(count)]
        return type(self).of_samples(samples, self._layout, self._dtype, self._ndim)

    # -- looking -----------------------------------------------------------------------------------------------

    @property
    def samples(self) -> list[Any]:
        """The samples as arrays of the device's library (numpy or CuPy), sharing the batch's memory."""
        if self._samples is None:
            samples, start = [], 0
            for shape in self.shapes:
                stop = start + math.prod(shape)
                samples.append(self.elements[start:stop].reshape(shape))
                start = stop
            self._samples = samples
        return self._samples

    @property
    def dtype(self) -> DALIDataType:
        """The type of the elements."""
        return self._dtype

    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return self._ndim

    def layout(self) -> str:
        """The names of a sample's dimensions, or an empty string."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Names the samples' dimensions; None or an empty string removes the names."""
        self._layout = check_layout(layout, self._ndim)

    def shape(self) -> list[Shape]:
        """The samples' shapes, as a list of tuples."""
        return list(self.shapes)

    def shape_array(self) -> np.ndarray:
        """The samples' shapes as int64 of shape (batch, ndim), an array of the caller's own."""
        known = self._shape_rows
        if known is None or known[0] is not self.shapes:
            rows = np.array(self.shapes, np.int64).reshape(len(self), -1 if self.shapes else self._ndim)
            known = self._shape_rows = self.shapes, rows
        return known[1].copy()

    def __len__(self) -> int:
        return len(self.shapes)

    def source_info(self, index: int) -> str:
        """The source of a sample (a file's path and the like), or an empty string."""
        return self.source_infos[index] if self.source_infos else ""

    def __getitem__(self, index: int) -> Any:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__} index out of range: {index} in a batch of {len(self)} samples")
        sample = self.samples[index]
        return self._tensor_class.of_array(sample, self._layout, self.source_info(index), self._dtype)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def is_dense_tensor(self) -> bool:
        """Whether all samples have the same shape, so that the batch can be viewed as one tensor."""
        shapes = self.shapes
        return not self._scattered and (not shapes or shapes.count(shapes[0]) == len(shapes))

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Views the same bytes as another type of the same size."""
        target = reinterpreted_dtype(self._dtype, new_type)
        if self.elements is not None:
            self.elements, self._samples = self.elements.view(target), None
        else:
            self._samples = [sample.view(target) for sample in self.samples]
        self._dtype = new_type

    def reset(self) -> None:
        """Drops the samples."""
        TensorList.__init__(self)

    def contiguous_elements(self) -> Any:
        raise NotImplementedError

    def as_cpu(self) -> TensorListCPU:
        """The batch in host memory."""
        raise NotImplementedError

    def _dense(self) -> Any:
        if not self.is_dense_tensor():
            raise RuntimeError(
                "The batch cannot be represented as a tensor or an array: that needs samples which all have the same shape, a "
                "uniform one, and which are contiguous in memory"
            )
        shape = self.shapes[0] if self.shapes else (0,) * self._ndim
        return self.contiguous_elements().reshape((len(self), *shape))

    def as_tensor(self) -> Any:
        """The batch as one tensor with a leading batch dimension; raises RuntimeError unless all shapes are equal."""
        return self._tensor_class.of_array(self._dense(), "N" + self._layout if self._layout else "", "", self._dtype)

    def as_reshaped_tensor(self, shape: Sequence[int]) -> Any:
        """The batch's elements as one tensor of ``shape``; raises RuntimeError unless the volumes are equal."""
        elements = self.contiguous_elements()
        if min(shape, default=0) < 0 or math.prod(shape) != elements.size:
            raise RuntimeError(
                f"The requested shape {tuple(shape)} must have the same volume as the batch: {elements.size}"
            )
        # The layout of all samples together, wherever it fits.
        layout = f"N{self._layout}"
        return self._tensor_class.of_array(
            elements.reshape(tuple(shape)), layout if len(layout) == len(shape) else "", "", self._dtype
        )

    def _make_copy(self) -> object:
        copy = type(self).of_samples(
            [sample.copy() for sample in self.samples], self._layout, self._dtype, self._ndim, self.source_infos
        )
        copy.contiguous_elements()
        return copy

    def __str__(self) -> str:
        check_readable(self._dtype)
        return self._text([self._printable(sample) for sample in self.samples])

    def __repr__(self) -> str:
        return self._text(None)

    def _repr_html_(self) -> str:
        """For notebooks: the first samples, as pictures if they are images."""
        heading = f"{type(self).__name__}: {len(self)} samples, {self._dtype}, layout '{self._layout}'"
        shown = self.subset(range(min(len(self), MOST_SHOWN))).as_cpu()
        return batch_html(heading, shown.samples, self._layout, len(self))

    def _text(self, samples: Sequence[np.ndarray] | None) -> str:
        return batch_text(type(self).__name__, samples, self._dtype, self._layout, self.device_type, self.shapes)

    def _printable(self, sample: object) -> Any:
        return sample

    def _adopt(self, samples: Sequence[Any], layout: str | None) -> None:
        """Replaces the contents by these arrays."""
        if samples:
            self._dtype, self._ndim = from_numpy_dtype(samples[0].dtype), samples[0].ndim
        self._samples = list(samples)
        self.shapes = [sample.shape for sample in samples]
        self._layout = check_layout(layout, self._ndim)


def check_samples(samples: Sequence[Any]) -> None:
    """Raises TypeError unless all arrays have one type, RuntimeError unless they have one rank."""
    if not samples:
        return
    first = samples[0]
    for index, sample in enumerate(samples):
        if sample.dtype != first.dtype:
            found, expected = (dtype_name(from_numpy_dtype(item.dtype)) for item in (sample, first))
            raise TypeError(
                f"Tensors cannot have different data types. Tensor at position {index} has type '{found}' expected to have "
                f"type '{expected}'."
            )
        if sample.ndim != first.ndim:
            raise RuntimeError(
                "All tensors in a batch must have the same number of dimensions. "
                f"Got: {sample.ndim} at index {index} and {first.ndim} at index 0."
            )


def _arrays_of(items: Sequence[object], view: Callable[[Any], Any], kind: str) -> tuple[list[Any], str]:
    """The listed samples as arrays, and their layout."""
    arrays, layout = [], ""
    for position, item in enumerate(items):
        try:
            arrays.append(view(item))
        except (TypeError, RuntimeError) as error:
            raise TypeError(f"Object at position {position} cannot be converted to {kind}: {error}") from None
        own = item.layout() if isinstance(item, Tensor) else ""
        if position == 0:
            layout = own
        elif (own and own != layout) or arrays[-1].ndim != arrays[0].ndim:
            what = f"its layout is '{own}'" if own != layout else f"it has {arrays[-1].ndim} dimensions"
            raise TypeError(
                f"Object at position {position} cannot be converted to {kind} of this batch: {what}, but the first one's is "
                f"'{layout}' of {arrays[0].ndim} dimensions"
            )
    check_samples(arrays)
    return arrays, layout


def check_dlpack_list(objects: object) -> None:
    """Raises TypeError unless this is a list of objects with ``__dlpack__``."""
    if not isinstance(objects, list):
        raise TypeError(f"from_dlpack_list() takes a list, which is incompatible with {type(objects).__name__}")
    for position, item in enumerate(objects):
        if not hasattr(item, "__dlpack__"):
            raise TypeError(f"Object at position {position} does not support the DLPack protocol.")


class TensorListCPU(TensorList):
    """A batch in host memory.

    Args:
        b: an array (or a buffer, a DLPack object) whose first dimension is the batch; a list of samples (arrays or
            tensors); or a batch, whose memory is shared.
        layout: of a sample, one letter per dimension.
        is_pinned: ignored: only the owner of memory knows whether it is page-locked. As third argument after a list, it
            means ``contiguous``.
        contiguous: copy the samples of a list to one buffer; False: leave them where they are.
        tl, object, list_of_tensors: the data, under other names.

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
            self._adopt(data.samples, layout or data.layout())
            self.elements, self._dtype, self._ndim = data.elements, data._dtype, data._ndim
            self._scattered = data._scattered
        else:
            self._set_array(buffer_view(data), layout)

    def _set_list(self, data: list[Any], layout: str | None, contiguous: bool) -> None:
        if not data:
            self._samples, self._layout = [], layout or ""
            return
        arrays, own = _arrays_of(data, buffer_view, "TensorCPU")
        self._adopt([array.copy() for array in arrays] if contiguous else arrays, layout or own)
        self._scattered = not contiguous and len(arrays) > 1

    def _set_array(self, array: np.ndarray, layout: str | None) -> None:
        if array.ndim == 0:
            raise RuntimeError("Cannot create a TensorList from a 0-dim array: its first dimension is the batch")
        self.elements = array.reshape(-1)
        self._dtype, self._ndim = from_numpy_dtype(array.dtype), array.ndim - 1
        # A slice rather than an index, so that samples without dimensions are arrays, too.
        self._adopt([array[i : i + 1].reshape(array.shape[1:]) for i in range(len(array))], layout)

    @classmethod
    def allocate(
        cls, shapes: Sequence[Shape], dtype: DALIDataType, layout: str = "", pool: HostPool | None = None
    ) -> TensorListCPU:
        """An uninitialized contiguous batch."""
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
    def from_dlpack_list(
        list_of_objects: Sequence[object], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """A batch of objects with ``__dlpack__``; their memory is shared unless ``contiguous``."""
        check_dlpack_list(list_of_objects)
        return TensorListCPU(list(list_of_objects), layout, contiguous=contiguous)

    @staticmethod
    def broadcast(tensor: object, num_samples: int) -> TensorListCPU:
        """A batch in which every sample is the same tensor."""
        if num_samples < 0:
            raise ValueError(f"The number of samples can't be negative. Got: {num_samples}.")
        array = host_view(tensor)
        layout = tensor.layout() if isinstance(tensor, Tensor) else ""
        dtype = tensor.dtype if isinstance(tensor, Tensor) else from_numpy_dtype(array.dtype)
        return TensorListCPU.of_samples([array] * num_samples, layout, dtype, array.ndim)

    # The block of memory that holds the samples, and where they begin in it, until they are needed as arrays.
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
        """A batch of samples that lie anywhere in a block of memory; nothing is copied.

        Args:
            block: uint8 of shape (n,).
            starts: the samples' first bytes, int64 of shape (samples,).
            shapes, dtype, ndim: of the samples.
            source_infos: of the samples.
        """
        batch = cls.of_samples([], "", dtype, ndim)
        batch.shapes = list(shapes)
        batch.source_infos = source_infos
        batch._samples, batch._parts = None, (block, starts)
        return batch

    @property
    def samples(self) -> list[Any]:
        samples = self._samples
        if samples is not None:
            return samples
        # Several threads may need the samples at once.
        parts = self._parts
        if parts is not None:
            block, starts = parts
            kind = numpy_dtype(self._dtype)
            sizes = [volume * kind.itemsize for volume in _volumes(self.shapes)]
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
            self._samples = None
        return self.elements

    def at(self, index: int) -> np.ndarray:
        """A copy of sample ``index``, counted from 0, as a numpy array."""
        if not 0 <= index < len(self):
            raise RuntimeError(f"Index is out-of-range: {index} in a batch of {len(self)} samples")
        check_readable(self._dtype)
        return np.array(self.samples[index])

    def as_array(self) -> np.ndarray:
        """A copy of the batch as one numpy array; raises RuntimeError unless all shapes are equal.

        For an array that shares the batch's memory, see :meth:`as_tensor` and ``numpy.asarray``.
        """
        check_readable(self._dtype)
        return self._dense().copy()

    def stacked(self) -> np.ndarray:
        """The samples as one array, which shares the batch's memory if the batch is contiguous; raises RuntimeError
        unless all shapes are equal."""
        stacked: np.ndarray = self._dense()
        return stacked

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if not self.is_dense_tensor():
            raise ValueError("An array needs samples of one shape; those of this batch have an inhomogeneous shape")
        check_readable(self._dtype)
        array = self._dense()
        array = array if dtype is None else array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def _as_gpu(self) -> TensorListGPU:
        return TensorListGPU.upload(self)

    def as_cpu(self) -> TensorListCPU:
        """The batch in host memory."""
        return self

    def data_ptr(self) -> int:
        """The address of the first element of a contiguous batch."""
        if self._scattered:
            raise RuntimeError("Only the samples of a contiguous batch have one data pointer")
        return int(self.contiguous_elements().ctypes.data)

    def copy_to_external(self, ptr: object) -> None:
        """Copies all samples, contiguously, to the memory at address ``ptr``."""
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
        layout: of a sample, one letter per dimension.
        device_id: ignored: the memory knows its device.
        contiguous: copy the samples of a list to one buffer; False: leave them where they are.
        stream: the stream on which the contents become valid.
        tl, list_of_tensors: the data, under other names.
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
        data = next((given for given in (tl, list_of_tensors) if given is not None), object)
        if isinstance(data, (list, tuple)):
            if not data:
                self._samples, self._layout = [], layout or ""
                return
            arrays, own = _arrays_of(data, _own_device_view, "TensorGPU")
            self._adopt(arrays, layout or own)
            if contiguous:
                self.contiguous_elements()
            self._scattered = not contiguous and len(arrays) > 1
        elif isinstance(data, TensorListGPU):
            self._adopt(data.samples, layout or data.layout())
            self.elements, self._dtype, self._ndim = data.elements, data._dtype, data._ndim
        else:
            array = device_view(data)
            if array.flags.c_contiguous:
                self.elements = array.reshape(-1)
            self._dtype, self._ndim = from_numpy_dtype(array.dtype), array.ndim - 1
            self._adopt([array[i] for i in range(len(array))], layout)

    _stream: Any = None
    # The samples' locations, until they are needed as arrays.
    located: Sequence[Any] | None = None

    @classmethod
    def of_located(cls, places: Sequence[Any], layout: str, dtype: DALIDataType, ndim: int) -> TensorListGPU:
        """A batch of samples in memory that CuPy does not own (:class:`penstock.kernels.cuda.launch.Located`)."""
        batch = cls.of_samples([], layout, dtype, ndim)
        # Whoever holds many locations has the shapes apart.
        batch.shapes = list(getattr(places, "shapes", None) or (place.shape for place in places))
        batch._samples, batch.located = None, places
        return batch

    @property
    def samples(self) -> list[Any]:
        if self._samples is None and self.located is not None:
            self._samples, self.located = [place.array() for place in self.located], None
        return super().samples

    @classmethod
    def allocate(cls, shapes: Sequence[Shape], dtype: DALIDataType, layout: str = "") -> TensorListGPU:
        """An uninitialized contiguous batch on the current device, ordered by CuPy's current stream."""
        cupy = require_cupy("a batch on the GPU")
        batch = cls.of_elements(cupy.empty(sum(_volumes(shapes)), numpy_dtype(dtype)), shapes, layout)
        batch._dtype = dtype
        return batch

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[object], layout: str | None = None, stream: object = None, contiguous: bool = False
    ) -> TensorListGPU:
        """A batch of objects with ``__dlpack__``; their memory is shared unless ``contiguous``."""
        check_dlpack_list(list_of_objects)
        return TensorListGPU(list(list_of_objects), layout, contiguous=contiguous, stream=stream)

    @staticmethod
    def broadcast(tensor: object, num_samples: int) -> TensorListGPU:
        """A batch in which every sample is the same tensor."""
        if num_samples < 0:
            raise ValueError(f"The number of samples can't be negative. Got: {num_samples}.")
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
        host = batch.contiguous_elements()
        elements = cupy.empty(host.size, host.dtype)
        if host.size:
            elements.data.copy_from_host_async(host.ctypes.data, host.nbytes, cupy.cuda.get_current_stream())
        uploaded = cls.of_elements(elements, batch.shapes, batch.layout())
        uploaded._dtype = batch.dtype
        uploaded.source_infos = batch.source_infos
        # Pageable memory is staged before the call returns, pinned memory is not: keep it alive with the copy.
        uploaded._host_source = host
        return uploaded

    _host_source: object = None

    def pointers(self) -> np.ndarray:
        """Device addresses of the samples, uint64 of shape (batch,)."""
        if self.elements is not None and self._dtype != DALIDataType.NO_TYPE:
            sizes = np.array(_volumes(self.shapes), np.int64) * numpy_dtype(self._dtype).itemsize
            starts = np.cumsum(sizes) - sizes + self.elements.data.ptr
            return starts.astype(np.uint64)
        return np.array([sample.data.ptr for sample in self.samples], np.uint64)

    def contiguous_elements(self) -> Any:
        if self.elements is None:
            cupy = require_cupy("a batch on the GPU")
            samples = self.samples
            kind = np.uint8 if self._dtype == DALIDataType.NO_TYPE else numpy_dtype(self._dtype)
            if samples:
                # On the samples' device, which may not be the current one.
                with samples[0].device:
                    self.elements = cupy.concatenate([sample.reshape(-1) for sample in samples])
            else:
                self.elements = cupy.empty(0, kind)
            self._samples = None
        return self.elements

    def _make_copy(self) -> Any:
        if not len(self):
            return super()._make_copy()
        with self.samples[0].device:
            return super()._make_copy()

    def at(self, index: int) -> Any:
        """Sample ``index`` as a :class:`TensorGPU`."""
        return self[index]

    @property
    def stream(self) -> Any:
        """The stream on which the contents become valid, or None."""
        return self._stream

    def device_id(self) -> int:
        """The number of the GPU."""
        return int(self.contiguous_elements().device.id)

    def as_cpu(self) -> TensorListCPU:
        """A copy in host memory; waits for the copy."""
        if not len(self):
            return TensorListCPU.of_samples([], self._layout, self._dtype, self._ndim)
        host = self.contiguous_elements().get()
        batch = TensorListCPU.of_elements(host, self.shapes, self._layout)
        batch._dtype = self._dtype
        batch.source_infos = self.source_infos
        return batch

    def data_ptr(self) -> int:
        """The address of the first element of a contiguous batch."""
        return int(self.contiguous_elements().data.ptr)

    def copy_to_external(
        self, ptr: object, cuda_stream: object = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copies all samples, contiguously, to the memory (host or device) at address ``ptr``."""
        copy_device_to(self.contiguous_elements(), ptr, cuda_stream, non_blocking)

    def _printable(self, sample: Any) -> Any:
        return sample.get()
