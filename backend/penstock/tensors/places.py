"""The addresses and sizes of samples of batches, for compiled code."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from penstock.core.arrays import address, addresses, described
from penstock.data_types import numpy_dtype
from penstock.tensors.batch import TensorList, equally_apart
from penstock.tensors.tensor_list import TensorListCPU


def flat_arrays(objects: Sequence[object]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the addresses and lengths, int64, of contiguous one-dimensional NumPy arrays of the same type; None if an object is anything
    else.

    Args:
        objects: at least one object, of any type. The caller must keep them alive.
    """
    arrays = [item for item in objects if type(item) is np.ndarray]
    if len(arrays) < len(objects):
        return None
    dtypes = [array.dtype for array in arrays]
    return places_of_flat(arrays) if dtypes.count(dtypes[0]) == len(dtypes) else None


def places_of_flat(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the addresses and lengths of arrays, int64; None if one of them is not contiguous, or not one-dimensional.

    Args:
        arrays: arrays of any types. The caller must keep them alive.
    """
    table = described(list(arrays))
    if not ((table["rank"] == 1) & (table["is_contiguous"] == 1)).all():
        return None
    return np.ascontiguousarray(table["data"]), np.ascontiguousarray(table["elements"])


def places_of_files(batch: TensorListCPU) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the addresses and sizes of a batch of files, as :func:`places_of_flat` does. The caller must keep the batch alive."""
    if batch.places is not None and batch.ndim() == 1:
        return batch.places, batch.sample_volumes()
    parts = batch.parts
    if parts is None and batch.elements is None:
        return places_of_flat(batch.samples)
    sizes = batch.sample_volumes()
    if parts is not None:
        block, starts = parts
        return address(block) + starts, sizes
    places = places_of_samples(batch)
    return None if places is None else (places, sizes)


def places_of_samples(batch: TensorList) -> np.ndarray | None:
    """Return the addresses of the samples of a batch on the CPU, int64; None if one of them is not contiguous. The caller
    must keep the samples alive.
    """
    if batch.elements is not None:
        elements, shapes = batch.elements, batch.shapes
        first = address(elements)
        if shapes and shapes.count(shapes[0]) == len(shapes):
            return equally_apart(first, math.prod(shapes[0]) * elements.itemsize, len(shapes))
        volumes = batch.sample_volumes()
        places: np.ndarray = first + (volumes.cumsum() - volumes) * elements.itemsize
        return places
    return addresses(batch.samples) if batch.places is None else batch.places


def places_to_fill(batch: TensorList) -> np.ndarray:
    """Return the addresses of the samples of an allocated batch on the CPU, int64."""
    places = places_of_samples(batch)
    assert places is not None, "samples are allocated contiguously"
    return places


def places_in_type(batch: TensorListCPU, dtype: DTypeLike) -> tuple[np.ndarray, object]:
    """Return the addresses of a batch's samples as contiguous elements of a type, int64, and the object that owns this memory, which the
    caller must keep alive. Samples of another type, or that are not contiguous, are copied.
    """
    places = places_of_samples(batch) if numpy_dtype(batch.dtype) == dtype else None
    if places is not None:
        return places, batch
    elements, volumes = np.ascontiguousarray(batch.contiguous_elements(), dtype), batch.sample_volumes()
    return address(elements) + (volumes.cumsum() - volumes) * elements.itemsize, elements
