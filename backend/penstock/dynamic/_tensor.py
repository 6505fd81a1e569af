"""``Tensor``: one array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.dynamic import _dtypes
from penstock.dynamic._conversion import TensorStorage, copied, is_array, of_array, of_numbers, sample_list
from penstock.dynamic._devices import Device, DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._dtypes import DType, DTypeLike
from penstock.dynamic._dtypes import dtype as as_dtype
from penstock.dynamic._eval_modes import SYNCHRONOUS, EvalMode
from penstock.dynamic._indexing import Part
from penstock.dynamic._invariants import all_unmarked, unmarked
from penstock.dynamic._pending import Result, Work, deferred, evaluated
from penstock.dynamic._value import Value, operations
from penstock.tensors import TensorCPU, TensorGPU, TensorList
from penstock.tensors.formatting import tensor_text
from penstock.tensors.tensor import check_layout

if TYPE_CHECKING:
    import torch


class _Samples(Protocol):
    """The batch that a tensor is a sample of."""

    @property
    def storage(self) -> TensorList: ...

    @property
    def device(self) -> Device: ...


class Tensor(Value):
    """One array, with a type, a layout and a device. Made by :func:`tensor`, :func:`as_tensor` and operators.

    Args:
        data: an array of any library, a number or lists of numbers, or a tensor.
        dtype: the dtype to convert to; by default that of the data, or INT32 and FLOAT for Python's numbers.
        device: the device to copy to; by default that of the data.
        layout: the names of the dimensions, e.g. ``HWC``.
        copy: whether to copy the data, so that the original may change afterwards.

    >>> Tensor([[1, 2], [3, 4]], layout="HW")[1] * 2
    Tensor(
        [6 8],
        dtype=i32,
        layout="W",
        device="cpu",
        shape=(2,))
    """

    __slots__ = ("_batch", "_index_in_batch", "_storage")

    _storage: TensorStorage | None
    _batch: _Samples | None

    def __init__(
        self,
        data: object = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        batch: _Samples | None = None,
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
        elif EvalMode.current() in SYNCHRONOUS:
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
                self._storage = copied(self._storage)
            copy = copy and not copy_now
        else:
            array, kind = of_numbers(all_unmarked(data), wanted)
            self._storage = TensorCPU.of_array(array, "", "", kind)
            copy = False
        if wanted is not None and wanted != self.dtype:
            self._share(operations().call("Cast", self._alias(), {"dtype": wanted.type_id}, None).evaluate())
            copy = False
        if device is not None and device != self.device:
            self._share(self._alias().to_device(device).evaluate())
        elif copy:
            self._share(self._alias().to_device(self.device, force_copy=True).evaluate())
        if layout and layout != self.layout:
            self._storage = of_array(self.storage, check_layout(layout, self.ndim))

    @classmethod
    def of(cls, storage: TensorStorage) -> Tensor:
        """Make a tensor with this data."""
        self = cls.__new__(cls)
        self._storage = storage
        self._device = self._invocation_result = self._batch = None
        self._external = False
        self._index_in_batch = 0
        return self

    @classmethod
    def results_of(cls, work: Work, external: bool = False) -> list[Tensor]:
        """Make the results of a call that returns tensors; see :func:`~penstock.dynamic._pending.evaluated`."""
        lists = evaluated(work, external)
        if lists is None:
            return [cls(invocation_result=result) for result in deferred(work, None)]
        return [cls.of(found[0]) for found in lists]

    def _alias(self) -> Tensor:
        """Return another object for the same data, for a call whose result this object becomes."""
        other = Tensor.__new__(Tensor)
        other._share(self)
        return other

    def _share(self, other: Tensor) -> None:
        for name in ("_storage", "_device", "_external", "_batch", "_index_in_batch", "_invocation_result"):
            setattr(self, name, getattr(other, name))

    # -- data ------------------------------------------------------------------------------------------------------

    def evaluate(self) -> Tensor:
        """Run the call that this tensor is a result of, unless it has run already; return this object."""
        if self._storage is None:
            self._storage = self._computed()
        return self

    def _computed(self) -> TensorStorage:
        if self._batch is not None:
            return self._batch.storage[self._index_in_batch]
        assert self._invocation_result is not None
        return self._invocation_result.value()[0]

    @property
    def storage(self) -> TensorStorage:
        """The data in the form that pipelines use: a ``TensorCPU`` or ``TensorGPU``."""
        if self._storage is None:
            self._storage = self._computed()
        return self._storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """Return the data as a batch in which all ``count`` samples are this tensor."""
        result = self._invocation_result
        if result is not None and count == 1:
            return result.value()
        return sample_list(self.storage, count)

    def placeholder(self) -> TensorList:
        """Return a batch, possibly without samples, with this type, number of dimensions and layout."""
        if self._storage is None and self._invocation_result is not None:
            return self._invocation_result.placeholder()
        return sample_list(self.storage)

    def device_type(self) -> str:
        if self._storage is not None:
            return self._storage.device_type
        if self._batch is not None:
            return self._batch.device.device_type
        assert self._invocation_result is not None
        return self._invocation_result.device

    def _gpu(self) -> Device:
        if self._storage is not None:
            assert isinstance(self._storage, TensorGPU)
            return Device("gpu", self._storage.device_id())
        if self._batch is not None:
            return self._batch.device
        assert self._invocation_result is not None
        return Device("gpu", self._invocation_result.device_id)

    # -- properties ------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return DType.from_type_id(self.placeholder().dtype if self._storage is None else self._storage.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.placeholder().ndim() if self._storage is None else self._storage.array.ndim

    @property
    def layout(self) -> str | None:
        """The names of the dimensions, or None."""
        return (self.placeholder() if self._storage is None else self._storage).layout() or None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tensor."""
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

    def item(self) -> int | float | bool:
        """Return the only element as a Python number; raise ValueError unless there is exactly one."""
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
        storage = self.storage
        assert isinstance(storage, TensorGPU)
        return storage.__cuda_array_interface__

    def __dlpack__(self, **options: Any) -> object:
        return self.storage.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.storage.__dlpack_device__()

    def torch(self, copy: bool = False) -> torch.Tensor:
        """Return the data as a PyTorch tensor, which shares the memory unless ``copy`` is set."""
        made = require_torch("Tensor.torch()").from_dlpack(self)
        return made.clone() if copy else made

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **options: object) -> Value:
        """Apply NumPy's operators like those of dynamic mode; other functions of NumPy return NumPy arrays."""
        result = super().__array_ufunc__(function, method, *inputs, **options)
        if result is not NotImplemented:
            return result
        arrays = [np.asarray(item) if isinstance(item, Tensor) else item for item in inputs]
        return getattr(function, method)(*arrays, **options)

    # -- text and indices ------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        host = self.storage.as_cpu()
        return tensor_text("Tensor", host.array, self.dtype, host.layout(), str(self.device), self.shape)

    def _repr_html_(self) -> str:
        return self.storage._repr_html_()

    def __getitem__(self, index: object) -> Tensor:
        """Return a part of the tensor, with NumPy's indexing: integers, slices with any step, ``...``; also tensors with one element."""
        indices = index if isinstance(index, tuple) else (index,)
        if all(
            item is Ellipsis or item == slice(None) for item in indices if isinstance(item, (slice, type(...)))
        ) and all(isinstance(item, (slice, type(...))) for item in indices):
            return self
        if sum(item is not Ellipsis for item in indices) > self.ndim:
            raise ValueError(f"The number of ranges ({len(indices)}) is greater than that of dimensions ({self.ndim})")
        if sum(item is Ellipsis for item in indices) > 1:
            raise ValueError("Only one Ellipsis is allowed in an index")
        return Tensor.results_of(Part(self, indices), self._external)[0]


def require_torch(purpose: str) -> ModuleType:
    """Return the module `torch`; raise RuntimeError if it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        raise RuntimeError(f"{purpose} requires PyTorch to be installed.") from None
    return torch
