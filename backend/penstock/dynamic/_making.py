"""``tensor`` and ``batch``, which copy data, and ``as_tensor`` and ``as_batch``, which share its memory."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.dynamic._batch import Batch
from penstock.dynamic._devices import DeviceLike
from penstock.dynamic._dtypes import DTypeLike
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._tensor import Tensor


def _from_batch(
    data: Batch, dtype: DTypeLike | None, device: DeviceLike | None, layout: str | None, pad: bool, copy: bool
) -> Tensor:
    whole = data.whole(unmarked(pad), copy)
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
    """Return a tensor with a copy of the data.

    Args:
        data: an array of any library, a number or lists of numbers, a tensor, or a batch.
        dtype: the dtype to convert to; by default that of the data, or INT32 and FLOAT for Python's numbers.
        device: the device to copy to; by default that of the data.
        layout: the names of the dimensions, e.g. ``HWC``.
        pad: whether to pad smaller samples of a batch with zeros; otherwise, all samples must have the same shape.
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
    """Return a tensor that shares the data's memory if possible. The arguments are those of :func:`tensor`."""
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
    """Return a batch with a copy of the data.

    Args:
        tensors: tensors, arrays or lists of numbers; one array whose first dimension is the batch; or a batch.
        dtype: the dtype to convert to; by default the first tensor's. Required for a batch without samples.
        device: the device to copy to; by default the first tensor's.
        layout: the names of a sample's dimensions, e.g. ``HWC``.
    """
    return Batch(tensors, dtype, device, layout, copy=True).evaluate()


def as_batch(
    tensors: Iterable[object] | object,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """Return a batch that shares the data's memory if possible. The arguments are those of :func:`batch`."""
    tensors = unmarked(tensors)
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)
