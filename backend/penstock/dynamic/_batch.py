"""``Batch``: several tensors of the same type and number of dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from penstock.data_types import check_readable
from penstock.dynamic._conversion import copied, gathered, is_array, sample_list
from penstock.dynamic._devices import Device, DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._dtypes import DType, DTypeLike
from penstock.dynamic._dtypes import dtype as as_dtype
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._eval_modes import SYNCHRONOUS, EvalMode
from penstock.dynamic._indexing import subscript_arguments
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._pending import Result, Work, deferred, evaluated
from penstock.dynamic._tensor import Tensor, require_torch
from penstock.dynamic._value import Value, operations
from penstock.errors import BatchError
from penstock.tensors import TensorCPU, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.formatting import batch_text
from penstock.tensors.tensor import check_layout

if TYPE_CHECKING:
    import torch

Selection: TypeAlias = int | slice | list[int]
"""The index of one sample, or a selection of several."""


class Tensors(Sequence[Tensor]):
    """The samples of a batch, as tensors that are created on demand."""

    def __init__(self, batch: Batch, indices: Sequence[int]) -> None:
        self._batch, self._indices = batch, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, selection: int) -> Tensor: ...

    @overload
    def __getitem__(self, selection: slice | list[int]) -> Tensors: ...

    def __getitem__(self, selection: Selection) -> Tensor | Tensors:
        if isinstance(selection, slice):
            return Tensors(self._batch, self._indices[selection])
        if isinstance(selection, list):
            return Tensors(self._batch, [self._indices[index] for index in selection])
        return self._batch.sample(self._indices[selection])

    def select(self, selection: Selection) -> Tensor | Tensors:
        """Return a tensor for an index, or several tensors for a slice or a list, like indexing."""
        return self[selection]

    def tolist(self) -> list[Tensor]:
        """Return all samples as a list."""
        return list(self)

    def as_batch(self, copy: bool = False) -> Batch:
        """Return a batch of these samples."""
        made = Batch(self, copy=copy)
        return made.evaluate() if copy else made

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self))}]"


class _Slicing:
    """Indexes every sample of a batch: ``batch.slice[...]``."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getitem__(self, index: object) -> Batch:
        """Index every sample. Bounds and positions may be batches, with one value for each sample."""
        arguments = subscript_arguments(index, self._batch.ndim)
        if not arguments:
            return self._batch
        return operations().call("_TensorSubscript", self._batch, arguments, None)


class Batch(Value):
    """Several tensors of the same type, number of dimensions and layout, whose shapes may differ. Made by :func:`batch` and
    :func:`as_batch`.

    Args:
        tensors: tensors, arrays or lists of numbers, or one array whose first dimension is the batch.
        dtype: the dtype to convert to; by default the first tensor's. Required for a batch without samples.
        device: the device to copy to; by default the first tensor's.
        layout: the names of a sample's dimensions, e.g. ``HWC``.
        copy: whether to copy the data, so that the original may change afterwards.

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

    _storage: TensorList | None
    _tensors: list[Tensor | None] | None

    def __init__(
        self,
        tensors: Any = None,
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
        if EvalMode.current() in SYNCHRONOUS:
            self.evaluate()

    def _take(self, data: Any, dtype: DType | None, device: Device | None, layout: str | None, copy: bool) -> None:
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
            self._share(operations().call("Cast", self._alias(), {"dtype": dtype.type_id}, None))
        if layout is not None and layout != (self.layout or ""):
            self._storage = self.storage.relabelled(check_layout(layout, self.ndim))
            self._tensors = self._invocation_result = None

    def _take_array(
        self, data: object, dtype: DType | None, device: Device | None, layout: str | None, copy: bool
    ) -> None:
        whole = Tensor(data, dtype, device, None, copy=copy)
        if not whole.ndim:
            raise ValueError(
                "Cannot make a batch from a single number: the first dimension of the data must be the batch"
            )
        storage, default = whole.storage, whole.layout or ""
        kind = TensorListCPU if isinstance(storage, TensorCPU) else TensorListGPU
        array = storage.array
        self._storage = kind.of_elements(
            array.reshape(-1), [array.shape[1:]] * len(array), layout or default[1:], array.ndim - 1, storage.dtype
        )
        check_layout(self._storage.layout(), self._storage.ndim())
        self._external = whole.is_external()

    def _take_samples(
        self, items: list[object], dtype: DType | None, device: Device | None, layout: str | None, copy: bool
    ) -> None:
        samples: list[Tensor | None] = []
        for index, item in enumerate(items):
            if item is None:
                raise TypeError(f"The samples of a batch must be tensors, arrays or numbers; got None at index {index}")
            sample = item if isinstance(item, Tensor) and _fits(item, dtype, device, layout, copy) else None
            sample = Tensor(item, dtype, device, layout, copy=copy) if sample is None else sample
            if samples and samples[0] is not None and sample.ndim != samples[0].ndim:
                raise BatchError(
                    f"The samples of a batch must have equally many dimensions: the first has {samples[0].ndim}, the one at index "
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
            # Evaluate the other batch first, as it can recompute its data.
            other.evaluate()
        for name in ("_storage", "_tensors", "_device", "_external", "_invocation_result"):
            setattr(self, name, getattr(other, name))

    def _alias(self) -> Batch:
        """Return another object for the same data, for a call whose result this object becomes."""
        other = Batch.__new__(Batch)
        other._share(self)
        return other

    @classmethod
    def of(cls, storage: TensorList) -> Batch:
        """Make a batch with this data."""
        self = cls.__new__(cls)
        self._storage = storage
        self._tensors = self._device = self._invocation_result = None
        self._external = False
        return self

    @classmethod
    def results_of(cls, work: Work, batch_size: int, external: bool = False) -> list[Batch]:
        """Make the results of a call that returns batches; see :func:`~penstock.dynamic._pending.evaluated`."""
        lists = evaluated(work, external)
        if lists is None:
            return [cls(invocation_result=result) for result in deferred(work, batch_size)]
        return [cls.of(found) for found in lists]

    @staticmethod
    def broadcast(
        sample: object, batch_size: int, device: DeviceLike | None = None, dtype: DTypeLike | None = None
    ) -> Batch:
        """Make a batch in which all ``batch_size`` samples are ``sample``, without copies."""
        if isinstance(sample, Batch):
            raise ValueError("A batch cannot be repeated as a sample of another batch")
        single = Tensor(sample, dtype, device)
        made = Batch.of(sample_list(single.storage, unmarked(batch_size)))
        made._external = single.is_external()
        return made

    # -- data ------------------------------------------------------------------------------------------------------

    def evaluate(self) -> Batch:
        """Run the call that this batch is a result of, unless it has run already; return this object."""
        if self._storage is None:
            self._storage = self._computed()
        return self

    def _computed(self) -> TensorList:
        if self._invocation_result is not None:
            return self._invocation_result.value()
        assert self._tensors is not None
        return gathered([tensor.storage for tensor in self._tensors if tensor is not None])

    @property
    def storage(self) -> TensorList:
        """The data in the form that pipelines use: a ``TensorListCPU`` or ``TensorListGPU``."""
        if self._storage is None:
            self._storage = self._computed()
        return self._storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """Return the data; ``count`` has no effect on batches, only on tensors, which are repeated that many times."""
        return self._storage if self._storage is not None else self.storage

    def placeholder(self) -> TensorList:
        """Return a batch, possibly without samples, with this type, number of dimensions and layout."""
        if self._storage is None and self._invocation_result is not None:
            return self._invocation_result.placeholder()
        return self.storage

    def sample(self, index: int) -> Tensor:
        """Return one of the samples, which shares the batch's memory."""
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
        if self._storage is not None:
            assert isinstance(self._storage, TensorListGPU)
            return Device("gpu", self._storage.device_id())
        if self._invocation_result is not None:
            return Device("gpu", self._invocation_result.device_id)
        return self.sample(0).device

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
        return DType.from_type_id(self.placeholder().dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return (
            self.sample(0).ndim
            if self._storage is None and self._invocation_result is None
            else self.placeholder().ndim()
        )

    @property
    def layout(self) -> str | None:
        """The names of a sample's dimensions, or None."""
        if self._storage is None and self._invocation_result is None:
            return self.sample(0).layout
        return self.placeholder().layout() or None

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """The shape of each sample."""
        if self._storage is None and self._invocation_result is None:
            return [self.sample(index).shape for index in range(self.batch_size)]
        return self.storage.shape()

    @property
    def tensors(self) -> Tensors:
        """The samples, as a sequence of tensors."""
        return Tensors(self, range(self.batch_size))

    @property
    def slice(self) -> _Slicing:
        """Index every sample: ``batch.slice[:, 0]``. Bounds and positions may be batches, with one value for each
        sample.
        """
        return _Slicing(self)

    def select(self, sample_range: Selection | EllipsisType) -> Batch | Tensor:
        """Return samples: a batch for a slice or a list of indices, a tensor for a single index, and this batch for ``...``."""
        if sample_range is Ellipsis:
            return self
        chosen = self.tensors[sample_range]
        return chosen if isinstance(chosen, Tensor) else Batch(chosen, dtype=self.dtype)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __bool__(self) -> bool:
        return True

    # -- other libraries -------------------------------------------------------------------------------------------

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """Return the samples as one array, for NumPy and matplotlib; raise ValueError unless all have the same shape."""
        if self.device.device_type != "cpu":
            raise TypeError("This batch is on a GPU: `.cpu()` copies it to where numpy can see it")
        storage = self.storage
        assert isinstance(storage, TensorListCPU)
        return storage.__array__(dtype, copy)

    def torch(self, copy: bool | None = None, pad: bool = False) -> torch.Tensor:
        """Return the samples as one PyTorch tensor.

        Args:
            copy: whether to copy the data: True: always; False: never, and ValueError is raised if a copy is needed; None: only if a copy
                is needed.
            pad: whether to pad smaller samples with zeros; otherwise, ValueError is raised unless all samples have the same shape.
        """
        require_torch("Batch.torch()")
        if not pad and len(set(self.shape)) > 1:
            raise ValueError("Only a dense batch can be a tensor; these samples differ in shape: give `pad=True`")
        if copy is False and self.storage.elements is None:
            raise ValueError("The samples of this batch are not contiguous in memory: one tensor needs a copy")
        return self.whole(pad).torch(bool(copy))

    def whole(self, pad: bool = False, copy: bool = False) -> Tensor:
        """Return the samples as one tensor.

        Args:
            pad: whether to pad smaller samples with zeros; otherwise, all samples must have the same shape.
            copy: whether to copy the data, so that the batch may change afterwards.
        """
        padded = operations().call("Pad", self, {}, None) if pad and self.ndim else self
        return Tensor.results_of(_Dense(padded, copy))[0]

    def __repr__(self) -> str:
        host = self.storage.as_cpu()
        check_readable(host.dtype)
        return batch_text("Batch", host.samples, self.dtype, host.layout(), str(self.device), host.shapes)

    def _repr_html_(self) -> str:
        return self.storage._repr_html_()


def _fits(item: Tensor, dtype: DType | None, device: Device | None, layout: str | None, copy: bool) -> bool:
    """Return whether a tensor can become a sample without being converted."""
    return (
        not copy
        and dtype in (None, item.dtype)
        and device in (None, item.device)
        and (layout is None or layout == (item.layout or ""))
    )


class _Dense:
    """The work of making one tensor of a batch's samples."""

    count = 1

    def __init__(self, batch: Batch, copy: bool) -> None:
        self._batch, self._copy = batch, copy

    @property
    def devices(self) -> list[str]:
        return [self._batch.device.device_type]

    def placeholder(self, context: EvalContext) -> None:
        """Return None, as no property of the result is known before the work runs."""

    def run(self, context: EvalContext) -> list[TensorList]:
        storage = self._batch.storage
        if len(set(storage.shapes)) > 1:
            raise ValueError(
                f"The samples have the shapes {sorted(set(storage.shapes))}. One tensor needs one shape: `pad=True` fills up with "
                "zeros."
            )
        whole = storage.as_tensor()
        return [sample_list(copied(whole) if self._copy and storage.elements is not None else whole)]
