"""Converts fed data to batches: arrays of any library, sequences of samples, tensor lists."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from penstock.data_types import from_numpy_dtype
from penstock.tensors import HostPool, Tensor, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.batch import check_samples
from penstock.tensors.dlpack import is_capsule
from penstock.tensors.tensor import check_dense, check_layout, device_view, host_view

_DTYPE, _NDIM, _IS_DENSE = attrgetter("dtype"), attrgetter("ndim"), attrgetter("flags.c_contiguous")


def to_batch(
    data: object, layout: str | None, max_batch_size: int, pool: HostPool | None, copy: bool = True
) -> TensorList:
    """Fed data as a batch.

    Args:
        data: a tensor list; an array whose first dimension is the batch; or a sequence of samples (arrays or tensors),
            whose shapes may differ.
        layout: of a sample; None: the data's own.
        max_batch_size: the largest number of samples allowed.
        pool: allocates the copy.
        copy: copy the data, so that the caller may modify it afterwards.

    Raises:
        RuntimeError: there are more than ``max_batch_size`` samples, they differ in type, rank or layout, tensors do not
            support their type, they are strided, or they are not arrays at all.
        IndexError: the data is one number.
    """
    try:
        batch = _as_tensor_list(data, layout)
    except TypeError as error:
        raise RuntimeError(str(error)) from error
    if len(batch) > max_batch_size:
        raise RuntimeError(
            f"The external source callback returned an unexpected batch size. Expected batch_size <= {max_batch_size}, "
            f"actual: {len(batch)}"
        )
    if not len(batch):
        # Operators skip it: what it would have held is not known.
        return TensorListGPU([]) if isinstance(batch, TensorListGPU) else TensorListCPU([])
    return _copied(batch, pool) if copy else batch


def _as_tensor_list(data: object, layout: str | None) -> TensorList:
    if isinstance(data, TensorList):
        batch = data.relabelled()
    elif isinstance(data, (list, tuple)):
        batch = _batch_of(data)
    elif _is_on_gpu(data):
        batch = TensorListGPU(data)
    else:
        array = _array(data)
        if array.ndim == 0:
            raise IndexError(f"A batch has at least one dimension, that of its samples: got {array!r}")
        from_numpy_dtype(array.dtype)
        batch = TensorListCPU(array)
    if layout and not len(batch):
        if not isinstance(data, (list, tuple)):
            check_layout(layout, batch.ndim())
    elif layout:
        try:
            batch.set_layout(layout)
        except ValueError:
            raise RuntimeError(f"The layout '{layout}' cannot describe {batch.ndim()}-dimensional data") from None
    return batch


def _batch_of(data: Sequence[object]) -> TensorList:
    kind = _common_kind(data)
    if kind is not None:
        if not all(map(_IS_DENSE, data)):
            for array in data:
                check_dense(array)
        return kind.of_samples(data)
    layouts = [item.layout() if isinstance(item, Tensor) else "" for item in data]
    for index, own in enumerate(layouts):
        if own and own != layouts[0]:
            raise RuntimeError(
                f"Sample must have the same layout as the target batch, or none: the batch has '{layouts[0]}', sample {index} "
                f"'{own}'"
            )
    on_gpu = bool(data) and _is_on_gpu(data[0])
    samples = [check_dense(device_view(item)) if on_gpu else _array(item) for item in data]
    try:
        check_samples(samples)
    except TypeError as error:
        raise RuntimeError(f"Sample must have the same type as the target batch. {error}") from None
    kind = TensorListGPU if on_gpu else TensorListCPU
    return kind.of_samples(samples, layouts[0] if layouts else "")


def _common_kind(data: Sequence[object]) -> type[TensorList] | None:
    """The kind of a batch of nothing but arrays of one type and rank; None: each is to be looked at."""
    types = set(map(type, data))
    if len(types) != 1:
        return None
    (kind,) = types
    if kind is not np.ndarray and kind is not _array_of_cupy():
        return None
    for facts in (map(_DTYPE, data), map(_NDIM, data)):
        found = list(facts)
        if found.count(found[0]) != len(found):
            return None
    return TensorListCPU if kind is np.ndarray else TensorListGPU


def _array_of_cupy() -> type | None:
    cupy = sys.modules.get("cupy")
    return None if cupy is None else cupy.ndarray


def _array(data: object) -> np.ndarray:
    """Fed data, a sample or a whole batch, as an array. Lists and numbers of Python have no type that tensors could take on."""
    known = ("shape", "__array_interface__", "__dlpack__")
    if not isinstance(data, np.ndarray) and not is_capsule(data) and not any(hasattr(data, name) for name in known):
        raise RuntimeError(
            f"Don't know how to extract the shape out of {type(data)}: samples are arrays or tensors, such as numpy.array(...)."
        )
    return check_dense(host_view(data))


def _is_on_gpu(data: object) -> bool:
    if isinstance(data, np.ndarray):
        return False
    if hasattr(data, "__dlpack_device__"):
        return data.__dlpack_device__()[0] in (2, 13)
    return hasattr(data, "__cuda_array_interface__")


def _copied(batch: TensorList, pool: HostPool | None) -> TensorList:
    if isinstance(batch, TensorListGPU):
        copied: TensorList = TensorListGPU.of_samples([sample.copy() for sample in batch.samples], batch.layout())
    else:
        copied = TensorListCPU.allocate(batch.shapes, batch.dtype, batch.layout(), pool)
        for target, sample in zip(copied.samples, batch.samples):
            np.copyto(target, sample)
    copied.source_infos = batch.source_infos
    return copied
