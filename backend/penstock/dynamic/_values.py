"""What operators are called on: ``Tensor``, one array, and ``Batch``, several of one type and rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex, TypeVar

import numpy as np

from penstock.data_types import check_readable
from penstock.dynamic import _dtypes
from penstock.dynamic._conversion import Array, is_array, of_array, of_numbers, sample_list
from penstock.dynamic._devices import Device, DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._dtypes import DType, DTypeLike
from penstock.dynamic._dtypes import dtype as as_dtype
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._eval_modes import EvalMode
from penstock.dynamic._faculties import Given, Outcome, faculties
from penstock.dynamic._invariants import all_unmarked, unmarked
from penstock.dynamic._pending import Invocation, Result, Work, call_site, raise_at
from penstock.tensors import Tensor as Storage
from penstock.tensors import TensorCPU, TensorGPU, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.formatting import batch_text, tensor_text
from penstock.tensors.tensor import check_layout

_Own = TypeVar("_Own", bound="Value")
_SYNC = (EvalMode.sync_cpu, EvalMode.sync_full)


class Value:
    """What tensors and batches have in common: arithmetic, and where they are."""

    __slots__ = ("__weakref__", "_device", "_external", "_invocation_result")
    # Numpy's operators leave the work to these.
    __array_ufunc__ = None

    _invocation_result: Result | None
    _device: Device | None
    _external: bool

    @property
    def device(self) -> Device:
        """Where the data is, or will be."""
        if self._device is None:
            self._device = Device.CPU if self.device_type() == "cpu" else self._gpu()
        return self._device

    def device_type(self) -> str:
        """``cpu`` or ``gpu``."""
        raise NotImplementedError

    def _gpu(self) -> Device:
        return Device("gpu")

    def is_external(self) -> bool:
        """Whether the memory is the program's, which may change it."""
        return self._external

    def evaluate(self: _Own) -> _Own:
        """Runs the call that this is the result of, if that was not done before; returns the same object."""
        raise NotImplementedError

    def cpu(self: _Own) -> _Own:
        """The same data on the CPU."""
        return self.to_device(Device.CPU)

    def gpu(self: _Own, index: int | None = None) -> _Own:
        """The same data on a GPU, by default the current one."""
        return self.to_device(Device("gpu", index))

    def to_device(self: _Own, device: DeviceLike, force_copy: bool = False) -> _Own:
        """The same data on a device: the same object if it is there already, unless ``force_copy``."""
        target = as_device(unmarked(device))
        assert target is not None, "a device is given"
        if target == self.device and not force_copy:
            return self
        copied: _Own = faculties().call("Copy", (self,), {}, target)
        return copied

    def __add__(self: _Own, other: object) -> _Own:
        return faculties().apply("add", self, other)

    def __radd__(self: _Own, other: object) -> _Own:
        return faculties().apply("add", other, self)

    def __sub__(self: _Own, other: object) -> _Own:
        return faculties().apply("sub", self, other)

    def __rsub__(self: _Own, other: object) -> _Own:
        return faculties().apply("sub", other, self)

    def __mul__(self: _Own, other: object) -> _Own:
        return faculties().apply("mul", self, other)

    def __rmul__(self: _Own, other: object) -> _Own:
        return faculties().apply("mul", other, self)

    def __pow__(self: _Own, other: object) -> _Own:
        return faculties().apply("pow", self, other)

    def __rpow__(self: _Own, other: object) -> _Own:
        return faculties().apply("pow", other, self)

    def __truediv__(self: _Own, other: object) -> _Own:
        return faculties().apply("fdiv", self, other)

    def __rtruediv__(self: _Own, other: object) -> _Own:
        return faculties().apply("fdiv", other, self)

    def __floordiv__(self: _Own, other: object) -> _Own:
        return faculties().apply("div", self, other)

    def __rfloordiv__(self: _Own, other: object) -> _Own:
        return faculties().apply("div", other, self)

    def __mod__(self: _Own, other: object) -> _Own:
        return faculties().apply("mod", self, other)

    def __rmod__(self: _Own, other: object) -> _Own:
        return faculties().apply("mod", other, self)

    def __neg__(self: _Own) -> _Own:
        return faculties().apply("minus", self)

    def __pos__(self: _Own) -> _Own:
        return self

    def __abs__(self: _Own) -> _Own:
        return faculties().apply("abs", self)

    def __invert__(self: _Own) -> _Own:
        return faculties().apply("bitnot", self)

    def __eq__(self: _Own, other: object) -> _Own:  # type: ignore[override]
        return faculties().apply("eq", self, other)

    def __ne__(self: _Own, other: object) -> _Own:  # type: ignore[override]
        return faculties().apply("neq", self, other)

    def __lt__(self: _Own, other: object) -> _Own:
        return faculties().apply("lt", self, other)

    def __le__(self: _Own, other: object) -> _Own:
        return faculties().apply("leq", self, other)

    def __gt__(self: _Own, other: object) -> _Own:
        return faculties().apply("gt", self, other)

    def __ge__(self: _Own, other: object) -> _Own:
        return faculties().apply("geq", self, other)

    def __and__(self: _Own, other: object) -> _Own:
        return faculties().apply("bitand", self, other)

    def __rand__(self: _Own, other: object) -> _Own:
        return faculties().apply("bitand", other, self)

    def __or__(self: _Own, other: object) -> _Own:
        return faculties().apply("bitor", self, other)

    def __ror__(self: _Own, other: object) -> _Own:
        return faculties().apply("bitor", other, self)

    def __xor__(self: _Own, other: object) -> _Own:
        return faculties().apply("bitxor", self, other)

    def __rxor__(self: _Own, other: object) -> _Own:
        return faculties().apply("bitxor", other, self)

    def __lshift__(self: _Own, other: object) -> _Own:
        return faculties().apply("lshift", self, other)

    def __rlshift__(self: _Own, other: object) -> _Own:
        return faculties().apply("lshift", other, self)

    def __rshift__(self: _Own, other: object) -> _Own:
        return faculties().apply("rshift", self, other)

    def __rrshift__(self: _Own, other: object) -> _Own:
        return faculties().apply("rshift", other, self)

    # Comparison makes tensors.
    __hash__ = None  # type: ignore[assignment]


class Tensor(Value):
    """One array, with a type, a layout and a device. :func:`tensor` and :func:`as_tensor` make them, and operators do.

    Args:
        data: an array of any library, numbers and lists of them, or a tensor.
        dtype: to convert to; by default the data's own, or INT32 and FLOAT for Python's numbers.
        device: to copy to; by default where the data is.
        layout: the names of the dimensions, e.g. ``HWC``.
        copy: copy the data, so that it may change afterwards.

    >>> Tensor([[1, 2], [3, 4]], layout="HW")[1] * 2
    Tensor(
        [6 8],
        dtype=i32,
        layout="W",
        device="cpu",
        shape=(2,))
    """

    __slots__ = ("_batch", "_index_in_batch", "_storage")

    _storage: Array
    _batch: Batch | None

    def __init__(
        self,
        data: object = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        batch: Batch | None = None,
        index_in_batch: int = 0,
        invocation_result: Result | None = None,
        copy: bool = False,
    ) -> None:
        self._storage = self._device = None
        self._external = False
        self._batch, self._index_in_batch = batch, index_in_batch
        self._invocation_result = invocation_result
        if invocation_result is None and batch is None:
            self._take(unmarked(data), unmarked(dtype), as_device(unmarked(device)), unmarked(layout), copy)
        elif EvalMode.current() in _SYNC:
            self.evaluate()

    def _take(
        self, data: object, dtype: DTypeLike | None, device: Device | None, layout: str | None, copy: bool
    ) -> None:
        if data is None:
            raise ValueError("A tensor needs data: an array, a number or a list of numbers")
        if layout is not None and not isinstance(layout, str):
            raise ValueError(f"A layout must be a string, got {layout!r}")
        wanted = None if dtype is None else as_dtype(dtype)
        if isinstance(data, Tensor):
            self._share(data)
        elif is_array(data):
            self._storage = of_array(data, "")
            self._external = not copy
            copy_now = copy and wanted in (None, self.dtype) and device in (None, self.device)
            if copy_now:
                self._storage = _copied(self._storage)
            copy = copy and not copy_now
        else:
            array, kind = of_numbers(all_unmarked(data), wanted)
            self._storage = TensorCPU.of_array(array, "", "", kind)
            copy = False
        if wanted is not None and wanted != self.dtype:
            self._share(faculties().call("Cast", (self._alias(),), {"dtype": wanted.type_id}, None).evaluate())
            copy = False
        if device is not None and device != self.device:
            self._share(self._alias().to_device(device).evaluate())
        elif copy:
            self._share(self._alias().to_device(self.device, force_copy=True).evaluate())
        if layout and layout != self.layout:
            self._storage = of_array(self.storage, check_layout(layout, self.ndim))

    @classmethod
    def of(cls, storage: Storage) -> Tensor:
        """The tensor with this data."""
        self = cls.__new__(cls)
        self._storage = storage
        self._device = self._invocation_result = self._batch = None
        self._external = False
        self._index_in_batch = 0
        return self

    def _alias(self) -> Tensor:
        """Another object for the same data, for calls whose result this one becomes."""
        other = Tensor.__new__(Tensor)
        other._share(self)
        return other

    def _share(self, other: Tensor) -> None:
        for name in ("_storage", "_device", "_external", "_batch", "_index_in_batch", "_invocation_result"):
            setattr(self, name, getattr(other, name))

    # -- data ------------------------------------------------------------------------------------------------------

    def evaluate(self) -> Tensor:
        """Runs the call that this is the result of, if that was not done before; returns the same object."""
        if self._storage is None:
            if self._batch is not None:
                self._storage = self._batch.storage[self._index_in_batch]
            else:
                assert self._invocation_result is not None
                self._storage = self._invocation_result.value()[0]
        return self

    @property
    def storage(self) -> Array:
        """The data, as pipelines have it: a ``TensorCPU`` or ``TensorGPU``."""
        return self._storage if self._storage is not None else self.evaluate()._storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """The data as the batch in which each of ``count`` samples is this tensor."""
        result = self._invocation_result
        if result is not None and count == 1:
            return result.value()
        return sample_list(self.storage, count)

    def sketch(self) -> TensorList:
        """A batch, maybe without samples, of this type, rank and layout."""
        if self._storage is None and self._invocation_result is not None:
            return self._invocation_result.sketch()
        return sample_list(self.storage)

    def _is_same_tensor(self, other: Tensor) -> bool:
        return self._storage is other._storage and self._invocation_result is other._invocation_result

    def device_type(self) -> str:
        if self._storage is not None:
            return self._storage.device_type
        if self._batch is not None:
            return self._batch.device.device_type
        assert self._invocation_result is not None
        return self._invocation_result.device

    def _gpu(self) -> Device:
        return Device("gpu", self.storage.device_id()) if self._storage is not None else Device("gpu")

    # -- properties ------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return DType.from_type_id(self.sketch().dtype if self._storage is None else self._storage.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.sketch().ndim() if self._storage is None else self._storage.array.ndim

    @property
    def layout(self) -> str | None:
        """The names of the dimensions, or None."""
        return (self.sketch() if self._storage is None else self._storage).layout() or None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self.storage.array.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an element, in bytes."""
        return self.dtype.bytes

    @property
    def nbytes(self) -> int:
        """The size of all elements, in bytes."""
        return self.size * self.itemsize

    def item(self) -> Outcome:
        """The one element as Python's number; raises ValueError if there are more, or none."""
        if self.size != 1:
            raise ValueError(f"Only a tensor of one element can be a number; this one has {self.size}")
        return self.cpu().storage.array.reshape(-1)[0].item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"A tensor of {self.size} elements is neither true nor false")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in (_dtypes.Kind.signed, _dtypes.Kind.unsigned):
            raise TypeError(f"A tensor of {self.dtype} cannot be an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("A tensor without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    # -- other libraries -------------------------------------------------------------------------------------------

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        storage = self.storage
        if not isinstance(storage, TensorCPU):
            raise TypeError("This tensor is on a GPU: `.cpu()` copies it to where numpy can see it")
        return storage.__array__(dtype, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        if self.device.device_type == "cpu":
            raise AttributeError("This tensor is on the CPU: `.gpu()` copies it to a GPU")
        return self.storage.__cuda_array_interface__

    def __dlpack__(self, **options: object) -> object:
        return self.storage.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.storage.__dlpack_device__()

    def torch(self, copy: bool = False) -> Outcome:
        """The data as a tensor of PyTorch, which shares the memory unless ``copy``."""
        made = require_torch("Tensor.torch()").from_dlpack(self)
        return made.clone() if copy else made

    # -- text and indices ------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        host = self.storage.as_cpu()
        return tensor_text("Tensor", host.array, self.dtype, host.layout(), str(self.device), self.shape)

    def _repr_html_(self) -> str:
        return self.storage._repr_html_()

    def __getitem__(self, index: object) -> Tensor:
        """Part of the tensor, as numpy's: integers, slices with any step, ``...``; also tensors of one element."""
        indices = index if isinstance(index, tuple) else (index,)
        if all(
            item is Ellipsis or item == slice(None) for item in indices if isinstance(item, (slice, type(...)))
        ) and all(isinstance(item, (slice, type(...))) for item in indices):
            return self
        if sum(item is not Ellipsis for item in indices) > self.ndim:
            raise ValueError(f"The number of ranges ({len(indices)}) is greater than that of dimensions ({self.ndim})")
        if sum(item is Ellipsis for item in indices) > 1:
            raise ValueError("Only one Ellipsis is allowed in an index")
        return value_of(_Part(self, indices), None, self._external)


class _Part:
    """The work of indexing a tensor."""

    count = 1

    def __init__(self, whole: Tensor, indices: Sequence[object]) -> None:
        self._whole, self._indices = whole, indices

    @property
    def device(self) -> str:
        return self._whole.device.device_type

    def sketch(self, context: EvalContext) -> None:
        """Nothing is known before."""

    def run(self, context: EvalContext) -> list[TensorList]:
        storage = self._whole.storage
        array = storage.array
        indices = tuple(map(_position, self._indices))
        part = array[(*indices, Ellipsis) if Ellipsis not in indices else indices]
        layout = _kept(storage.layout(), indices)
        if isinstance(storage, TensorCPU):
            part = np.ascontiguousarray(part).reshape(part.shape)
            return [sample_list(TensorCPU.of_array(part, layout, "", storage.dtype))]
        with array.device:
            return [sample_list(TensorGPU.of_array(part.copy(), layout, "", storage.dtype))]


def _position(item: Given) -> Outcome:
    if isinstance(item, slice):
        return slice(*(None if bound is None else int(bound) for bound in (item.start, item.stop, item.step)))
    if item is Ellipsis:
        return item
    if isinstance(item, (Tensor, SupportsIndex)):
        return int(item)
    raise TypeError(f"A tensor is indexed by integers, slices, `...` and tensors of one element, got {item!r}")


def _kept(layout: str, indices: Sequence[object]) -> str:
    """The names of the dimensions that are left after indexing."""
    if not layout:
        return ""
    around = list(indices)
    spread = len(layout) - len([item for item in around if item is not Ellipsis])
    place = around.index(Ellipsis) if Ellipsis in around else len(around)
    whole: list[object] = [*around[:place], *[slice(None)] * spread, *around[place + 1 :]]
    return "".join(name for name, item in zip(layout, whole) if isinstance(item, slice))


class _Tensors(Sequence[Tensor]):
    """The samples of a batch, as tensors; made when they are asked for."""

    def __init__(self, batch: Batch, indices: Sequence[int]) -> None:
        self._batch, self._indices = batch, indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, selection: Given) -> Outcome:
        if isinstance(selection, slice):
            return _Tensors(self._batch, self._indices[selection])
        if isinstance(selection, list):
            return _Tensors(self._batch, [self._indices[index] for index in selection])
        return self._batch.sample(self._indices[selection])

    def select(self, selection: Given) -> Outcome:
        """The same as indexing: a tensor, or several for a slice or a list."""
        return self[selection]

    def tolist(self) -> list[Tensor]:
        """All of them, in a list."""
        return list(self)

    def as_batch(self, copy: bool = False) -> Batch:
        """The batch of these samples."""
        return (batch if copy else as_batch)(self)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self))}]"


class _BatchSlice:
    """Indexing of each sample: ``batch.slice[...]``."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getitem__(self, index: object) -> Batch:
        """Each sample indexed. Bounds and positions may be batches, which hold those of each sample."""
        indices = index if isinstance(index, tuple) else (index,)
        arguments: dict[str, object] = {}
        axis = 0
        for position, item in enumerate(indices):
            if item is Ellipsis:
                axis = self._batch.ndim - (len(indices) - position - 1)
                continue
            if isinstance(item, slice):
                bounds = {"lo": item.start, "hi": item.stop, "step": item.step}
                arguments |= {f"{name}_{axis}": bound for name, bound in bounds.items() if bound is not None}
            else:
                arguments[f"at_{axis}"] = item
            axis += 1
        if not arguments:
            return self._batch
        sliced: Batch = faculties().call("_TensorSubscript", (self._batch,), arguments, None)
        return sliced


class Batch(Value):
    """Several tensors of one type, rank and layout, whose shapes may differ. :func:`batch` and :func:`as_batch` make them.

    Args:
        tensors: tensors, arrays or lists of numbers, or one array whose first dimension is the batch.
        dtype: to convert to; by default that of the first. A batch without samples needs it.
        device: to copy to; by default where the first is.
        layout: the names of a sample's dimensions, e.g. ``HWC``.
        copy: copy the data, so that it may change afterwards.

    >>> Batch([[1, 2, 3], [4]]) + 10
    Batch(
        [[11 12 13],
        [14]],
        dtype=i32,
        device="cpu",
        num_samples=2,
        shape=[(3,), (1,)])
    """

    __slots__ = ("_storage", "_tensors")

    _storage: Array
    _tensors: list[Tensor | None] | None

    def __init__(
        self,
        tensors: Given = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        invocation_result: Result | None = None,
        copy: bool = False,
    ) -> None:
        self._storage = self._tensors = self._device = None
        self._external = False
        self._invocation_result = invocation_result
        if invocation_result is None:
            dtype = unmarked(dtype)
            wanted = None if dtype is None else as_dtype(dtype)
            self._take(unmarked(tensors), wanted, as_device(unmarked(device)), unmarked(layout), copy)
        if EvalMode.current() in _SYNC:
            self.evaluate()

    def _take(self, data: Given, dtype: DType | None, device: Device | None, layout: str | None, copy: bool) -> None:
        if data is None:
            raise ValueError("A batch needs tensors")
        if isinstance(data, TensorList):
            self._storage = data if not copy else data.relabelled()
            self._convert(dtype, device, layout, copy)
        elif isinstance(data, Batch):
            self._share(data)
            self._convert(dtype, device, layout, copy)
        elif is_array(data):
            self._take_array(data, dtype, device, layout, copy)
        else:
            self._take_samples(list(data), dtype, device, layout, copy)

    def _convert(self, dtype: DType | None, device: Device | None, layout: str | None, copy: bool) -> None:
        if (device is not None and device != self.device) or copy:
            self._share(self._alias().to_device(device or self.device, force_copy=copy))
        if dtype is not None and dtype != self.dtype:
            self._share(faculties().call("Cast", (self._alias(),), {"dtype": dtype.type_id}, None))
        if layout is not None and layout != (self.layout or ""):
            self._storage = self.storage.relabelled(check_layout(layout, self.ndim))
            self._tensors = self._invocation_result = None

    def _take_array(
        self, data: Given, dtype: DType | None, device: Device | None, layout: str | None, copy: bool
    ) -> None:
        whole = Tensor(data, dtype, device, None, copy=copy)
        if not whole.ndim:
            raise ValueError("A batch cannot be made of a single number: its first dimension is that of the samples")
        storage, own = whole.storage, whole.layout or ""
        kind = TensorListCPU if isinstance(storage, TensorCPU) else TensorListGPU
        array = storage.array
        self._storage = kind.of_elements(
            array.reshape(-1), [array.shape[1:]] * len(array), layout or own[1:], array.ndim - 1, storage.dtype
        )
        check_layout(self._storage.layout(), self._storage.ndim())
        self._external = whole.is_external()

    def _take_samples(
        self, items: list[object], dtype: DType | None, device: Device | None, layout: str | None, copy: bool
    ) -> None:
        samples: list[Tensor | None] = []
        for index, item in enumerate(items):
            if item is None:
                raise TypeError(f"The samples of a batch are tensors, arrays or numbers; got None at index {index}")
            sample = item if isinstance(item, Tensor) and _fits(item, dtype, device, layout, copy) else None
            sample = Tensor(item, dtype, device, layout, copy=copy) if sample is None else sample
            if samples and samples[0] is not None and sample.ndim != samples[0].ndim:
                raise ValueError(
                    f"The samples of a batch have one rank: the first has {samples[0].ndim} dimensions, the one at index "
                    f"{index} has {sample.ndim}"
                )
            dtype, device = dtype or sample.dtype, device or sample.device
            layout = sample.layout or "" if layout is None else layout
            self._external = self._external or sample.is_external()
            samples.append(sample)
        if not samples:
            if dtype is None:
                raise ValueError("Element type must be specified if there are no samples: give `dtype`")
            kind = TensorListGPU if device is not None and device.device_type == "gpu" else TensorListCPU
            self._storage = kind.of_samples([], layout or "", dtype.type_id, len(layout or ""))
            return
        self._tensors, self._device = samples, device

    def _share(self, other: Batch) -> None:
        if type(other) is not Batch:
            # It knows itself how it is computed.
            other.evaluate()
        for name in ("_storage", "_tensors", "_device", "_external", "_invocation_result"):
            setattr(self, name, getattr(other, name))

    def _alias(self) -> Batch:
        """Another object for the same data, for calls whose result this one becomes."""
        other = Batch.__new__(Batch)
        other._share(self)
        return other

    @classmethod
    def of(cls, storage: TensorList) -> Batch:
        """The batch with this data."""
        self = cls.__new__(cls)
        self._storage = storage
        self._tensors = self._device = self._invocation_result = None
        self._external = False
        return self

    @staticmethod
    def broadcast(
        sample: object, batch_size: int, device: DeviceLike | None = None, dtype: DTypeLike | None = None
    ) -> Batch:
        """The batch in which each of ``batch_size`` samples is ``sample``, without copies."""
        if isinstance(sample, Batch):
            raise ValueError("A batch cannot be repeated as a sample of another batch")
        single = Tensor(sample, dtype, device)
        made = Batch.of(sample_list(single.storage, unmarked(batch_size)))
        made._external = single.is_external()
        return made

    # -- data ------------------------------------------------------------------------------------------------------

    def evaluate(self) -> Batch:
        """Runs the call that this is the result of, if that was not done before; returns the same object."""
        if self._storage is None:
            if self._invocation_result is not None:
                self._storage = self._invocation_result.value()
            else:
                assert self._tensors is not None
                self._storage = _gathered([tensor.storage for tensor in self._tensors if tensor is not None])
        return self

    @property
    def storage(self) -> Array:
        """The data, as pipelines have it: a ``TensorListCPU`` or ``TensorListGPU``."""
        return self._storage if self._storage is not None else self.evaluate()._storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """The data; ``count`` is that of tensors, which are repeated."""
        return self._storage if self._storage is not None else self.storage

    def sketch(self) -> TensorList:
        """A batch, maybe without samples, of this type, rank and layout."""
        if self._storage is None and self._invocation_result is not None:
            return self._invocation_result.sketch()
        return self.storage

    def sample(self, index: int) -> Tensor:
        """One of the samples; its memory is the batch's."""
        if self._tensors is None:
            self._tensors = [None] * self.batch_size
        found = self._tensors[index]
        if found is None:
            found = self._tensors[index] = Tensor(batch=self, index_in_batch=range(self.batch_size)[index])
            found._external = self._external
            if self._storage is not None:
                found.evaluate()
        return found

    def device_type(self) -> str:
        if self._storage is not None:
            return self._storage.device_type
        if self._invocation_result is not None:
            return self._invocation_result.device
        return self.sample(0).device.device_type

    def _gpu(self) -> Device:
        return Device("gpu", self._storage.device_id()) if self._storage is not None else Device("gpu")

    # -- properties ------------------------------------------------------------------------------------------------

    @property
    def batch_size(self) -> int:
        """The number of samples."""
        if self._storage is not None:
            return len(self._storage)
        if self._tensors is not None:
            return len(self._tensors)
        assert self._invocation_result is not None
        known = self._invocation_result.batch_size
        return len(self.storage) if known is None else known

    def __len__(self) -> int:
        return self.batch_size

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        if self._storage is None and self._invocation_result is None:
            return self.sample(0).dtype
        return DType.from_type_id(self.sketch().dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return (
            self.sample(0).ndim if self._storage is None and self._invocation_result is None else self.sketch().ndim()
        )

    @property
    def layout(self) -> str | None:
        """The names of a sample's dimensions, or None."""
        if self._storage is None and self._invocation_result is None:
            return self.sample(0).layout
        return self.sketch().layout() or None

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """The samples' extents."""
        if self._storage is None and self._invocation_result is None:
            return [self.sample(index).shape for index in range(self.batch_size)]
        return self.storage.shape()

    @property
    def tensors(self) -> Outcome:
        """The samples; a sequence of tensors."""
        return _Tensors(self, range(self.batch_size))

    @property
    def slice(self) -> _BatchSlice:
        """Indexing of each sample: ``batch.slice[:, 0]``. Bounds and positions may be batches, with those of each sample."""
        return _BatchSlice(self)

    def select(self, sample_range: Given) -> Batch | Tensor:
        """Some samples: a batch for a slice or a list of indices, a tensor for one index; ``...`` is the batch itself."""
        if sample_range is Ellipsis:
            return self
        chosen = self.tensors[sample_range]
        return chosen if isinstance(chosen, Tensor) else as_batch(chosen, dtype=self.dtype)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __bool__(self) -> bool:
        return True

    # -- other libraries -------------------------------------------------------------------------------------------

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """The samples in one array, for numpy and matplotlib; ValueError unless they have one shape."""
        if self.device.device_type != "cpu":
            raise TypeError("This batch is on a GPU: `.cpu()` copies it to where numpy can see it")
        return self.storage.__array__(dtype, copy)

    def torch(self, copy: bool | None = None, pad: bool = False) -> Outcome:
        """The samples as one tensor of PyTorch.

        Args:
            copy: True: always; False: never, and ValueError where it cannot be avoided; None: where it cannot.
            pad: fill up smaller samples with zeros; else ValueError unless they have one shape.
        """
        require_torch("Batch.torch()")
        if not pad and len(set(self.shape)) > 1:
            raise ValueError("Only a dense batch can be a tensor; these samples differ in shape: give `pad=True`")
        if copy is False and self.storage.elements is None:
            raise ValueError("The samples of this batch are not one after the other in memory: that needs a copy")
        return as_tensor(self, pad=pad).torch(bool(copy))

    def __repr__(self) -> str:
        host = self.storage.as_cpu()
        check_readable(host.dtype)
        return batch_text("Batch", host.samples, self.dtype, host.layout(), str(self.device), host.shapes)

    def _repr_html_(self) -> str:
        return self.storage._repr_html_()


def _copied(storage: Storage) -> Storage:
    return type(storage).of_array(storage.array.copy(), storage.layout(), storage.source_info(), storage.dtype)


def _fits(item: Tensor, dtype: DType | None, device: Device | None, layout: str | None, copy: bool) -> bool:
    """Whether a tensor can be a sample as it is."""
    return (
        not copy
        and dtype in (None, item.dtype)
        and device in (None, item.device)
        and (layout is None or layout == (item.layout or ""))
    )


def _gathered(samples: Sequence[Storage]) -> TensorList:
    kind = TensorListCPU if isinstance(samples[0], TensorCPU) else TensorListGPU
    infos = [sample.source_info() for sample in samples]
    arrays: list[Array] = [sample.array for sample in samples]
    return kind.of_samples(arrays, samples[0].layout(), samples[0].dtype, arrays[0].ndim, infos if any(infos) else ())


def require_torch(purpose: str) -> Outcome:
    """PyTorch; raises RuntimeError if it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        raise RuntimeError(f"{purpose} requires PyTorch to be installed.") from None
    return torch


# -- results -------------------------------------------------------------------------------------------------------


def results_of(work: Work, batch_size: int | None, external: bool = False) -> list[Outcome]:
    """The results of a call: computed now, or when they are needed, as the mode says.

    Args:
        work: what to do.
        batch_size: of the results, which are batches; None: they are tensors.
        external: some input is in memory of the program, which may change it: the call is run now.
    """
    mode, context = EvalMode.current(), EvalContext.current()
    if mode is EvalMode.deferred and not external:
        call = Invocation(work, context, batch_size)
        context.defer(call)
        kind = Tensor if batch_size is None else Batch
        return [kind(invocation_result=Result(call, index)) for index in range(work.count)]
    try:
        lists = work.run(context)
    except Exception as error:
        if mode in _SYNC:
            raise
        raise_at(error, call_site())
    if mode is EvalMode.sync_full and work.device == "gpu":
        stream = context.engine.executor.stream
        if stream is not None:
            stream.synchronize()
    if batch_size is None:
        return [Tensor.of(found[0]) for found in lists]
    return [Batch.of(found) for found in lists]


def value_of(work: Work, batch_size: int | None, external: bool = False) -> Outcome:
    """The one result of a call; see :func:`results_of`."""
    return results_of(work, batch_size, external)[0]


class _Dense:
    """The work of making one tensor of a batch."""

    count = 1

    def __init__(self, batch: Batch, copy: bool) -> None:
        self._batch, self._copy = batch, copy

    @property
    def device(self) -> str:
        return self._batch.device.device_type

    def sketch(self, context: EvalContext) -> None:
        """Nothing is known before."""

    def run(self, context: EvalContext) -> list[TensorList]:
        storage = self._batch.storage
        if len(set(storage.shapes)) > 1:
            raise ValueError(
                f"The samples have the shapes {sorted(set(storage.shapes))}. One tensor needs one shape: `pad=True` fills up with "
                "zeros."
            )
        whole = storage.as_tensor()
        return [sample_list(_copied(whole) if self._copy and storage.elements is not None else whole)]


def _from_batch(
    data: Batch, dtype: DTypeLike | None, device: DeviceLike | None, layout: str | None, pad: bool, copy: bool
) -> Tensor:
    if unmarked(pad) and data.ndim:
        data = faculties().call("Pad", (data,), {}, None)
    whole: Tensor = value_of(_Dense(data, copy), None)
    if dtype is None and device is None and layout is None:
        return whole
    return Tensor(whole, dtype, device, layout)


def tensor(
    data: object,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """A tensor with a copy of the data.

    Args:
        data: an array of any library, numbers and lists of them, a tensor, or a batch.
        dtype: to convert to; by default the data's own, or INT32 and FLOAT for Python's numbers.
        device: to copy to; by default where the data is.
        layout: the names of the dimensions, e.g. ``HWC``.
        pad: fill up smaller samples of a batch with zeros; else its samples must have one shape.
    """
    data = unmarked(data)
    if isinstance(data, Batch):
        return _from_batch(data, dtype, device, layout, pad, copy=True)
    return Tensor(data, dtype, device, layout, copy=True)


def as_tensor(
    data: object,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """A tensor that shares the data's memory if possible. The arguments are those of :func:`tensor`."""
    data = unmarked(data)
    if isinstance(data, Batch):
        return _from_batch(data, dtype, device, layout, pad, copy=False)
    return Tensor(data, dtype, device, layout)


def batch(
    tensors: Iterable[object] | object,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """A batch with a copy of the data.

    Args:
        tensors: tensors, arrays or lists of numbers; one array whose first dimension is the batch; or a batch.
        dtype: to convert to; by default that of the first. A batch without samples needs it.
        device: to copy to; by default where the first is.
        layout: the names of a sample's dimensions, e.g. ``HWC``.
    """
    return Batch(tensors, dtype, device, layout, copy=True).evaluate()


def as_batch(
    tensors: Iterable[object] | object,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """A batch that shares the data's memory if possible. The arguments are those of :func:`batch`."""
    tensors = unmarked(tensors)
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)
