"""Converts fed data to batches: arrays of any library, sequences of samples, tensor lists."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from penstock.core.arrays import MAX_RANK, copy_alike, described
from penstock.data_types import from_numpy_dtype, numpy_dtype
from penstock.tensors import HostPool, Tensor, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.batch import check_samples, kind_of
from penstock.tensors.dlpack import is_capsule
from penstock.tensors.places import flat_arrays
from penstock.tensors.tensor import check_dense, check_layout, device_view, host_view

if TYPE_CHECKING:
    from penstock.kernels.cpu.blocks import Threads

# Up to this many samples and bytes are examined and copied one by one in Python: loading compiled code would take longer.
_MAX_PLAIN_COPIES, _MAX_PLAIN_BYTES = 8, 1 << 20
_DTYPE, _SHAPE, _STRIDES = attrgetter("dtype"), attrgetter("shape"), attrgetter("strides")
_IS_DENSE = attrgetter("flags.c_contiguous")


def to_batch(
    data: object, layout: str | None, max_batch_size: int, pool: HostPool, threads: Threads, copy: bool = True
) -> TensorList:
    """Return fed data as a batch.

    Args:
        data: a tensor list; an array whose first dimension is the batch; or a sequence of samples (arrays or tensors),
            whose shapes may differ.
        layout: the layout of a sample; None: the layout that the data has, if any.
        max_batch_size: the largest number of samples allowed.
        pool: the pool that allocates the copy.
        threads: the threads that share the copying of large batches.
        copy: whether to copy the data, so that the caller may modify it afterwards.

    Raises:
        RuntimeError: there are more than ``max_batch_size`` samples; samples differ in type, rank or layout; tensors do not
            support the samples' type; tensors are strided; or the data does not consist of arrays.
        IndexError: the data is one number.
    """
    try:
        together = _copied_together(data, pool) if copy else None
        batch = _as_tensor_list(data, layout) if together is None else _labelled(together, layout)
    except TypeError as error:
        raise RuntimeError(str(error)) from error
    count = len(batch.shapes)
    if count > max_batch_size:
        raise RuntimeError(
            f"The external source callback returned an unexpected batch size. Expected batch_size <= {max_batch_size}, "
            f"actual: {count}"
        )
    if not count:
        # Ignore the layout: a batch without samples has no contents that it could describe.
        return TensorListGPU([]) if isinstance(batch, TensorListGPU) else TensorListCPU([])
    return _copied(batch, pool, threads) if copy and together is None else batch


def _as_tensor_list(data: object, layout: str | None) -> TensorList:
    if isinstance(data, TensorList):
        batch = data.relabelled()
    elif isinstance(data, (list, tuple)):
        alike = _batch_of_arrays(data)
        batch = _batch_of(data) if alike is None else alike
    elif _is_on_gpu(data):
        batch = TensorListGPU(data)
    else:
        array = _array(data)
        if array.ndim == 0:
            raise IndexError(f"A batch must have at least one dimension, that of its samples: got {array!r}")
        from_numpy_dtype(array.dtype)
        batch = TensorListCPU(array)
    if layout and not batch.shapes:
        if not isinstance(data, (list, tuple)):
            check_layout(layout, batch.ndim())
        return batch
    return _labelled(batch, layout)


def _labelled(batch: TensorList, layout: str | None) -> TensorList:
    """Return the batch with the layout set, unless it is None or empty; raise RuntimeError if it does not fit the rank."""
    if layout:
        try:
            batch.set_layout(layout)
        except ValueError:
            raise RuntimeError(f"The layout '{layout}' cannot describe {batch.ndim()}-dimensional data") from None
    return batch


def _copied_together(data: object, pool: HostPool) -> TensorListCPU | None:
    """Copy many small arrays of one type and shape in one call; return None for any other data."""
    if not isinstance(data, (list, tuple)) or len(data) <= _MAX_PLAIN_COPIES:
        return None
    first, count = data[0], len(data)
    if type(first) is not np.ndarray or first.nbytes * count > _MAX_PLAIN_BYTES or set(map(type, data)) != {np.ndarray}:
        return None
    dtypes = list(map(_DTYPE, data))
    if dtypes.count(dtypes[0]) < count:
        return None
    copied = TensorListCPU.allocate([first.shape] * count, from_numpy_dtype(first.dtype), pool=pool)
    return copied if copy_alike(list(data), copied.elements) else None


def _batch_of(data: Sequence[object]) -> TensorList:
    layouts = [item.layout() if isinstance(item, Tensor) else "" for item in data]
    for index, sample_layout in enumerate(layouts):
        if sample_layout and sample_layout != layouts[0]:
            raise RuntimeError(
                f"Sample must have the same layout as the target batch, or none: the batch has '{layouts[0]}', sample {index} "
                f"'{sample_layout}'"
            )
    on_gpu = bool(data) and _is_on_gpu(data[0])
    samples = [check_dense(device_view(item)) if on_gpu else _array(item) for item in data]
    try:
        check_samples(samples)
    except TypeError as error:
        raise RuntimeError(f"Sample must have the same type as the target batch. {error}") from None
    kind = TensorListGPU if on_gpu else TensorListCPU
    return kind.of_samples(samples, layouts[0] if layouts else "")


def _batch_of_arrays(data: Sequence[object]) -> TensorList | None:
    """Return a batch of arrays of one library, type and rank; None if the arrays must be checked one by one."""
    if len(data) > _MAX_PLAIN_COPIES and type(data[0]) is np.ndarray and data[0].ndim == 1:
        known = flat_arrays(data)
        if known is not None:
            return TensorListCPU.of_flat(data, *known, from_numpy_dtype(data[0].dtype))
    kinds = set(map(type, data))
    if kinds != {np.ndarray} and kinds != {_array_of_cupy()}:
        return None
    dtypes, shapes, count = list(map(_DTYPE, data)), list(map(_SHAPE, data)), len(data)
    if dtypes.count(dtypes[0]) < count:
        return None
    are_alike = shapes.count(shapes[0]) == count
    if are_alike:
        # One shared object, which later comparisons recognize by its identity.
        shapes = shapes[:1] * count
    elif [*map(len, shapes)].count(len(shapes[0])) < count:
        return None
    dtype = from_numpy_dtype(dtypes[0])
    is_small = count <= _MAX_PLAIN_COPIES and prod(shapes[0]) * dtypes[0].itemsize * count <= _MAX_PLAIN_BYTES
    if np.ndarray in kinds and len(shapes[0]) <= MAX_RANK and not is_small:
        table = described([array for array in data if isinstance(array, np.ndarray)])
        if table["is_contiguous"].all():
            return TensorListCPU.of_described(data, shapes, dtype, table)
    # CuPy creates an object for each array's flags, which takes longer than reading its strides.
    strides = list(map(_STRIDES, data)) if are_alike else []
    if not all(map(_IS_DENSE, data[:1] if are_alike and strides.count(strides[0]) == count else data)):
        for array in data:
            check_dense(array)
    return (TensorListCPU if np.ndarray in kinds else TensorListGPU).of_dense(data, shapes, dtype)


def _array_of_cupy() -> type | None:
    cupy = sys.modules.get("cupy")
    return None if cupy is None else cupy.ndarray


def _array(data: object) -> np.ndarray:
    """Return fed data, a sample or a whole batch, as an array; raise RuntimeError for Python's lists and numbers, which have
    no tensor type.
    """
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


def _copied(batch: TensorList, pool: HostPool, threads: Threads) -> TensorList:
    copied = _copied_on_gpu(batch) if isinstance(batch, TensorListGPU) else _copied_on_cpu(batch, pool, threads)
    copied.source_infos = batch.source_infos
    return copied


def _copied_on_cpu(batch: TensorList, pool: HostPool, threads: Threads) -> TensorList:
    from penstock.kernels.cpu.blocks import copy_samples

    dtype, _, layout = kind_of(batch)
    copied = TensorListCPU.allocate(batch.shapes, dtype, layout, pool)
    is_small = len(batch.shapes) <= _MAX_PLAIN_COPIES and copied.elements.nbytes <= _MAX_PLAIN_BYTES
    if is_small or not copy_samples(threads, batch, copied, read_next=True):
        for target, sample in zip(copied.samples, batch.samples):
            np.copyto(target, sample)
    return copied


def _copied_on_gpu(batch: TensorListGPU) -> TensorListGPU:
    from penstock.kernels.cpu.blocks import volumes
    from penstock.kernels.cuda.copies import copy_arrays
    from penstock.kernels.cuda.launch import places_of

    copied = TensorListGPU.allocate(batch.shapes, batch.dtype, batch.layout())
    # The contiguous copies must live until their uploads are queued on the stream.
    sources, _owner = places_of(batch)
    copy_arrays(sources, copied.pointers(), volumes(batch.shapes, 0) * numpy_dtype(batch.dtype).itemsize)
    return copied
