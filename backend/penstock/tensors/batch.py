"""The base class of batches on the CPU and on the GPU."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar, TypeVar, overload

import numpy as np

from penstock.data_types import DALIDataType, check_readable, dtype_name, from_numpy_dtype
from penstock.tensors.formatting import batch_text
from penstock.tensors.tensor import Tensor, check_layout, reinterpreted_dtype

Shape = tuple[int, ...]


def volumes(shapes: Sequence[Shape]) -> list[int]:
    """Return the numbers of elements of arrays of these shapes."""
    return list(map(math.prod, shapes))


def equally_apart(first: int, step: int, count: int) -> np.ndarray:
    """Return the addresses of ``count`` consecutive items of ``step`` bytes each, int64."""
    return np.arange(first, first + step * count, step) if step else np.full(count, first, np.int64)


def stacked(batch: TensorList) -> np.ndarray | None:
    """Return the samples of a batch on the CPU as one array with a leading batch dimension; None if there are none, or if their shapes
    differ.

    The array shares the batch's memory if the batch is contiguous.
    """
    shapes = batch.shapes
    if not shapes or shapes.count(shapes[0]) != len(shapes):
        return None
    elements = batch.elements
    if elements is None:
        elements = np.concatenate([sample.reshape(-1) for sample in batch.samples])
    whole: np.ndarray = elements.reshape(len(shapes), *shapes[0])
    return whole


def total_volume(shapes: Sequence[Shape]) -> int:
    """Return the total number of elements of arrays of these shapes."""
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return len(shapes) * math.prod(shapes[0])
    return sum(map(math.prod, shapes))


class ShapeRows(Sequence[Shape]):
    """Shapes that are created on first use.

    Attributes:
        rows: the shapes, int64 of shape (number, ndim).
    """

    __slots__ = ("rows",)

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Shape]:
        return map(tuple, self.rows.tolist())

    @overload
    def __getitem__(self, index: int) -> Shape: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Shape]: ...

    def __getitem__(self, index: int | slice) -> Shape | Sequence[Shape]:
        chosen = self.rows[index]
        return ShapeRows(chosen) if isinstance(index, slice) else tuple(chosen.tolist())


kind_of = operator.attrgetter("_dtype", "_ndim", "_layout")
"""The properties that all samples of a batch share: type, number of dimensions and layout."""
_List = TypeVar("_List", bound="TensorList")


class TensorList:
    """Base class of :class:`TensorListCPU` and :class:`TensorListGPU`.

    Attributes:
        shapes: the samples' shapes.
        source_infos: the source of each sample, for example a file's path; or empty.
        positions: the position of each sample in the pipeline's batch, or of the sample that it is a part of; ascending. None unless
            conditionals have split the batch, or its samples have been split into parts.
    """

    device_type: ClassVar[str]
    _tensor_class: ClassVar[type[Tensor]]
    # Defaults of most batches are class attributes, as each step of a pipeline creates batches.

    # Whether the user asked that samples not be copied to one buffer.
    _scattered = False
    _dtype = DALIDataType.NO_TYPE
    _ndim = 0
    _layout = ""
    # Whether each sample is known to be contiguous. For many samples, CuPy takes long to determine this.
    are_dense = False
    # The addresses of the samples, int64, while they are known.
    places: np.ndarray | None = None
    # The shapes that were last converted to an array, and that array.
    _shape_rows: tuple[Sequence[Shape], np.ndarray] | None = None
    # The shapes whose volumes were last requested, and the volumes.
    _volumes: tuple[Sequence[Shape], np.ndarray] | None = None
    source_infos: Sequence[str] = ()
    positions: list[int] | None = None
    # The elements of all samples as a single 1-D array if the batch is contiguous, otherwise None.
    elements: Any = None
    _samples: list[Any] | None = None

    def __init__(self) -> None:
        self.shapes: Sequence[Shape] = []
        self._samples = []

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
        """Make a batch of arrays that are already on this class's device. Nothing is copied or checked.

        ``dtype`` and ``ndim`` are needed for an empty batch.
        """
        self = cls.__new__(cls)
        self._samples, self._layout = list(samples), layout
        arrays = self._samples
        self.shapes = [array.shape for array in arrays]
        if arrays:
            self._ndim = arrays[0].ndim
            self._dtype = from_numpy_dtype(arrays[0].dtype) if dtype is None else dtype
        else:
            self._ndim, self._dtype = ndim or 0, DALIDataType.NO_TYPE if dtype is None else dtype
        if source_infos:
            self.source_infos = list(source_infos)
        return self

    @classmethod
    def without_data(
        cls: type[_List], shapes: Sequence[Shape], layout: str, dtype: DALIDataType, ndim: int | None
    ) -> _List:
        """Make a batch that has only these properties; its samples are None."""
        self = cls.__new__(cls)
        self.shapes, self._samples = shapes, [None] * len(shapes)
        if type(shapes) is ShapeRows:
            self._shape_rows = shapes, shapes.rows
        self._layout, self._dtype, self._ndim = layout, dtype, ndim or 0
        return self

    @classmethod
    def of_dense(cls: type[_List], samples: Sequence[object], shapes: Sequence[Shape], dtype: DALIDataType) -> _List:
        """Make a batch of at least one contiguous array on this class's device. Nothing is copied or checked."""
        self = cls.__new__(cls)
        self._samples, self.shapes, self.are_dense = list(samples), shapes, True
        self._dtype, self._ndim = dtype, len(shapes[0])
        return self

    @classmethod
    def of_described(
        cls: type[_List], samples: Sequence[object], shapes: Sequence[Shape], dtype: DALIDataType, table: np.ndarray
    ) -> _List:
        """Make a batch like :meth:`of_dense`, from at least one array that the core has described.

        Args:
            table: the descriptions, one ``ARRAY`` (:mod:`penstock.core.arrays`) for each sample.
        """
        self = cls.of_dense(samples, shapes, dtype)
        self.places = np.ascontiguousarray(table["data"])
        self._shape_rows = shapes, np.ascontiguousarray(table["extents"][:, : self._ndim])
        self._volumes = shapes, np.ascontiguousarray(table["elements"])
        return self

    @classmethod
    def of_flat(
        cls: type[_List], samples: Sequence[object], places: np.ndarray, sizes: np.ndarray, dtype: DALIDataType
    ) -> _List:
        """Make a batch of contiguous one-dimensional arrays on this class's device. Nothing is copied or checked.

        Args:
            places, sizes: the addresses and lengths of the arrays, int64.
        """
        self = cls.__new__(cls)
        self._samples, self.are_dense, self.places = list(samples), True, places
        self.shapes, self._dtype, self._ndim = list(zip(sizes.tolist())), dtype, 1
        self._volumes = self.shapes, sizes
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
        """Make a contiguous batch of ``elements``, which is 1-D and contains the samples one after the other.

        Args:
            ndim: the number of dimensions of a sample, for a batch that may be empty.
            dtype: the type of the elements, if it differs from the array's.
        """
        self = cls.__new__(cls)
        self.elements = elements
        self.shapes = list(shapes)
        self._dtype = from_numpy_dtype(elements.dtype) if dtype is None else dtype
        self._ndim = len(self.shapes[0]) if self.shapes else (ndim or 0)
        self._layout = layout
        return self

    def relabelled(
        self: _List, layout: str | None = None, shapes: Sequence[Shape] | None = None, ndim: int | None = None
    ) -> _List:
        """Return the same data with another layout, or with other shapes of the same volume.

        Args:
            ndim: the new number of dimensions of a sample, for a batch that may be empty.
        """
        if self.elements is not None:
            other = type(self).of_elements(self.elements, self.shapes if shapes is None else shapes, ndim=self._ndim)
            other._samples = self._samples if shapes is None else None
        elif shapes is None:
            other = type(self).of_samples(self.samples, self._layout, self._dtype, self._ndim, self.source_infos)
        else:
            other = type(self).of_samples([s.reshape(shape) for s, shape in zip(self.samples, shapes)])
        other._dtype = self._dtype
        if shapes is None:
            other.know_volumes(self)
        other._layout = self._layout if layout is None else layout
        other.are_dense = self.are_dense
        other.source_infos = self.source_infos
        if ndim is not None:
            other._ndim = ndim
        return other

    def shallow_copy(self: _List) -> _List:
        """Return the same samples as another batch, whose positions and source infos can be set separately."""
        other = type(self).__new__(type(self))
        other.__dict__ = vars(self).copy()
        return other

    def subset(self: _List, indices: Sequence[int]) -> _List:
        """Return the batch of the samples at ``indices``, in that order, sharing memory."""
        samples, shapes = self.samples, self.shapes
        other = type(self).__new__(type(self))
        other._samples, other.shapes = [samples[i] for i in indices], [shapes[i] for i in indices]
        other._layout, other._dtype, other._ndim = self._layout, self._dtype, self._ndim
        other.are_dense = self.are_dense
        if self.source_infos:
            other.source_infos = [self.source_infos[i] for i in indices]
        return other

    def made_of(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of this batch's samples that were made from samples ``start`` to ``stop`` of the pipeline's batch."""
        if self.positions is None:
            return start, stop
        return bisect_left(self.positions, start), bisect_left(self.positions, stop)

    def emptied(self: _List, indices: Collection[int]) -> _List:
        """Return the batch with the samples at ``indices`` replaced by empty ones; other samples share this batch's memory."""
        samples = [sample.reshape(-1)[:0] if i in indices else sample for i, sample in enumerate(self.samples)]
        return type(self).of_samples(samples, self._layout, self._dtype, self._ndim, self.source_infos)

    def unfolded(self: _List) -> _List:
        """Return the slices of all samples along the first dimension as one batch, which shares this batch's memory."""
        shapes = [shape[1:] for shape in self.shapes for _ in range(shape[0])]
        if self.elements is not None:
            other = type(self).of_elements(self.elements, shapes, self._layout[1:], self._ndim - 1)
        else:
            parts = ((sample, part) for sample in self.samples for part in range(len(sample)))
            # A slice has one dimension less, and is an array even if no dimension is left.
            samples = [sample[part : part + 1].reshape(sample.shape[1:]) for sample, part in parts]
            other = type(self).of_samples(samples, self._layout[1:], self._dtype, self._ndim - 1)
        other._dtype = self._dtype
        return other

    def repeated(self: _List, counts: Sequence[int]) -> _List:
        """Return a batch in which sample ``i`` occurs ``counts[i]`` times; it shares this batch's memory."""
        samples = [sample for sample, count in zip(self.samples, counts) for _ in range(count)]
        return type(self).of_samples(samples, self._layout, self._dtype, self._ndim)

    # -- looking -----------------------------------------------------------------------------------------------

    @property
    def samples(self) -> list[Any]:
        """The samples as arrays of the device's library (NumPy or CuPy), which share the batch's memory."""
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
        """Return the number of dimensions of a sample."""
        return self._ndim

    def layout(self) -> str:
        """Return the names of a sample's dimensions, or an empty string."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Name the samples' dimensions; None or an empty string removes the names."""
        self._layout = check_layout(layout, self._ndim)

    def shape(self) -> list[Shape]:
        """Return the samples' shapes, as a list of tuples."""
        return list(self.shapes)

    def shape_array(self) -> np.ndarray:
        """Return the samples' shapes as a new int64 array of shape (batch, ndim)."""
        known = self._shape_rows
        if known is None or known[0] is not self.shapes:
            known = self._shape_rows = self.shapes, _rows_of(self.shapes, self._ndim)
        return known[1].copy()

    def sample_volumes(self) -> np.ndarray:
        """Return the number of elements of each sample, int64 of shape (batch,). The array may be shared, so it must not be changed."""
        known = self._volumes
        if known is None or known[0] is not self.shapes:
            shapes = self.shapes
            are_alike = shapes and shapes.count(shapes[0]) == len(shapes)
            found = [math.prod(shapes[0])] * len(shapes) if are_alike else list(map(math.prod, shapes))
            known = self._volumes = shapes, np.array(found, np.int64)
        return known[1]

    def know_volumes(self, other: TensorList) -> None:
        """Take over the cached volumes of another batch, whose samples must have the same shapes."""
        if other._volumes is not None and other._volumes[0] is other.shapes:
            self._volumes = self.shapes, other._volumes[1]

    def __len__(self) -> int:
        return len(self.shapes)

    def source_info(self, index: int) -> str:
        """Return the source of a sample, for example a file's path; or an empty string."""
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
        """Return whether all samples have the same shape, so that the batch can be viewed as one tensor."""
        shapes = self.shapes
        return not self._scattered and (not shapes or shapes.count(shapes[0]) == len(shapes))

    def reinterpret(self, new_type: DALIDataType) -> None:
        """View the same bytes as elements of another type of the same size."""
        target = reinterpreted_dtype(self._dtype, new_type)
        if self.elements is not None:
            self.elements, self._samples = self.elements.view(target), None
        else:
            self._samples = [sample.view(target) for sample in self.samples]
        self._dtype = new_type

    def reset(self) -> None:
        """Remove all samples."""
        vars(self).clear()
        TensorList.__init__(self)

    def contiguous_elements(self) -> Any:
        raise NotImplementedError

    def as_cpu(self) -> TensorList:
        """Return the batch in host memory."""
        raise NotImplementedError

    def stacked(self) -> Any:
        """Return the samples as one array of the device's library, which shares the batch's memory if the batch is contiguous.

        Raises:
            RuntimeError: shapes differ.
        """
        if not self.is_dense_tensor():
            raise RuntimeError(
                "The batch cannot be represented as a tensor or an array: all samples must have the same shape, a uniform one, and "
                "they must be contiguous in memory"
            )
        shape = self.shapes[0] if self.shapes else (0,) * self._ndim
        return self.contiguous_elements().reshape((len(self), *shape))

    def as_tensor(self) -> Any:
        """Return the batch as one tensor with a leading batch dimension.

        The tensor of an empty batch has as many dimensions as a sample, as no extents are known.

        Raises:
            RuntimeError: shapes differ, or the batch is empty and the type or rank of samples is unknown.
        """
        self._check_typed()
        if not len(self):
            if not self._ndim:
                raise RuntimeError("An empty batch of samples without dimensions cannot be made a tensor")
            return self.as_reshaped_tensor((0,) * self._ndim)
        return self._tensor_class.of_array(self.stacked(), "N" + self._layout if self._layout else "", "", self._dtype)

    def as_reshaped_tensor(self, shape: Sequence[int]) -> Any:
        """Return the elements of the batch as one tensor of ``shape``; raise RuntimeError unless both have the same number of elements."""
        self._check_typed()
        elements = self.contiguous_elements()
        if min(shape, default=0) < 0 or math.prod(shape) != elements.size:
            raise RuntimeError(
                f"The requested shape {tuple(shape)} must have the same volume as the batch: {elements.size}"
            )
        # The layout of the batch as one tensor, if the new shape has as many dimensions.
        layout = f"N{self._layout}"
        return self._tensor_class.of_array(
            elements.reshape(tuple(shape)), layout if len(layout) == len(shape) else "", "", self._dtype
        )

    def _check_typed(self) -> None:
        if self._dtype == DALIDataType.NO_TYPE:
            raise RuntimeError("An empty batch whose type is not known cannot be viewed as a tensor")

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
        """Return the first samples as HTML for notebooks: images as pictures."""
        from penstock.tensors.pictures import MAX_SHOWN, batch_html

        heading = f"{type(self).__name__}: {len(self)} samples, {self._dtype}, layout '{self._layout}'"
        shown = self.subset(range(min(len(self), MAX_SHOWN))).as_cpu()
        return batch_html(heading, shown.samples, self._layout, len(self))

    def _text(self, samples: Sequence[np.ndarray] | None) -> str:
        return batch_text(type(self).__name__, samples, self._dtype, self._layout, self.device_type, self.shapes)

    def _printable(self, sample: object) -> Any:
        return sample

    def _adopt(self, samples: Sequence[Any], layout: str | None, ndim: int = 0) -> None:
        """Replace the contents by these arrays; ``ndim`` is the number of dimensions of a sample, used only if ``samples`` is empty."""
        self._ndim = ndim
        if samples:
            self._dtype, self._ndim = from_numpy_dtype(samples[0].dtype), samples[0].ndim
        self._samples = list(samples)
        self.shapes = [sample.shape for sample in samples]
        self._layout = check_layout(layout, self._ndim)


def _rows_of(shapes: Sequence[Shape], ndim: int) -> np.ndarray:
    """Return shapes as int64 of shape (samples, ndim)."""
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return np.array([shapes[0]], np.int64).repeat(len(shapes), axis=0)
    return np.array(shapes, np.int64).reshape(len(shapes), -1 if shapes else ndim)


def check_samples(samples: Sequence[Any]) -> None:
    """Raise TypeError unless all arrays have the same type, and RuntimeError unless they have the same number of dimensions."""
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


def arrays_of(items: Sequence[object], view: Callable[[Any], Any], kind: str) -> tuple[list[Any], str]:
    """Return samples as arrays, and their common layout; raise TypeError, which names the sample, if they cannot form a batch.

    Args:
        items: the samples: arrays, tensors, or anything that ``view`` accepts.
        view: function that returns a sample as an array.
        kind: the word for a sample in error messages.
    """
    arrays, layout = [], ""
    for position, item in enumerate(items):
        try:
            arrays.append(view(item))
        except (TypeError, RuntimeError) as error:
            raise TypeError(f"Object at position {position} cannot be converted to {kind}: {error}") from None
        item_layout = item.layout() if isinstance(item, Tensor) else ""
        if position == 0:
            layout = item_layout
        elif (item_layout and item_layout != layout) or arrays[-1].ndim != arrays[0].ndim:
            what = f"its layout is '{item_layout}'" if item_layout != layout else f"it has {arrays[-1].ndim} dimensions"
            raise TypeError(
                f"Object at position {position} cannot be converted to {kind} of this batch: {what}, but the first one's is "
                f"'{layout}' of {arrays[0].ndim} dimensions"
            )
    check_samples(arrays)
    return arrays, layout


def check_dlpack_list(objects: object) -> None:
    """Raise TypeError unless the argument is a list of objects with ``__dlpack__``."""
    if not isinstance(objects, list):
        raise TypeError(f"from_dlpack_list() takes a list, which is incompatible with {type(objects).__name__}")
    for position, item in enumerate(objects):
        if not hasattr(item, "__dlpack__"):
            raise TypeError(f"Object at position {position} does not support the DLPack protocol.")
