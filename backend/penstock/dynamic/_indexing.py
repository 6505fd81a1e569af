"""Indexing of tensors, and of each sample of batches."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Protocol, SupportsIndex

import numpy as np

from penstock.dynamic._conversion import TensorStorage, sample_list
from penstock.dynamic._devices import Device
from penstock.dynamic._eval_contexts import EvalContext
from penstock.errors import ExtentError
from penstock.tensors import TensorCPU, TensorGPU, TensorList


class Whole(Protocol):
    """The tensor that is being indexed."""

    @property
    def storage(self) -> TensorStorage: ...

    @property
    def device(self) -> Device: ...


class Part:
    """The work of computing a part of a tensor."""

    count = 1

    def __init__(self, whole: Whole, indices: Sequence[object]) -> None:
        self._whole, self._indices = whole, indices

    @property
    def devices(self) -> list[str]:
        return [self._whole.device.device_type]

    def placeholder(self, context: EvalContext) -> None:
        """Return None, as no property of the result is known before the work runs."""

    def run(self, context: EvalContext) -> list[TensorList]:
        storage = self._whole.storage
        array = storage.array
        indices = tuple(map(_position, self._indices))
        try:
            part = array[(*indices, Ellipsis) if Ellipsis not in indices else indices]
        except IndexError as error:
            raise ExtentError(str(error)) from None
        layout = _remaining_layout(storage.layout(), indices)
        if isinstance(storage, TensorCPU):
            part = np.ascontiguousarray(part).reshape(part.shape)
            return [sample_list(TensorCPU.of_array(part, layout, "", storage.dtype))]
        with array.device:
            return [sample_list(TensorGPU.of_array(part.copy(), layout, "", storage.dtype))]


def _position(item: object) -> int | slice | EllipsisType:
    if isinstance(item, slice):
        return slice(*(None if bound is None else int(bound) for bound in (item.start, item.stop, item.step)))
    if item is Ellipsis:
        return item
    if isinstance(item, SupportsIndex):
        return int(item)
    raise TypeError(f"A tensor can be indexed by integers, slices, `...` and tensors of one element, got {item!r}")


def _remaining_layout(layout: str, indices: Sequence[object]) -> str:
    """Return the names of the dimensions that remain after indexing."""
    if not layout:
        return ""
    around = list(indices)
    spread = len(layout) - len([item for item in around if item is not Ellipsis])
    split = around.index(Ellipsis) if Ellipsis in around else len(around)
    whole: list[object] = [*around[:split], *[slice(None)] * spread, *around[split + 1 :]]
    return "".join(name for name, item in zip(layout, whole) if isinstance(item, slice))


def subscript_arguments(index: object, ndim: int) -> dict[str, object]:
    """Return the arguments of the operator `_TensorSubscript` for an index, given the number of dimensions of samples."""
    indices = index if isinstance(index, tuple) else (index,)
    arguments: dict[str, object] = {}
    axis = 0
    for position, item in enumerate(indices):
        if item is Ellipsis:
            axis = ndim - (len(indices) - position - 1)
            continue
        if isinstance(item, slice):
            bounds = {"lo": item.start, "hi": item.stop, "step": item.step}
            arguments |= {f"{name}_{axis}": bound for name, bound in bounds.items() if bound is not None}
        else:
            arguments[f"at_{axis}"] = item
        axis += 1
    return arguments
