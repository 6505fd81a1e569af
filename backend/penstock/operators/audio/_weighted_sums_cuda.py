"""Weighted sums along one axis on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Columns, launch, packed
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, blank_records


class _WeightedSums(NamedTuple):
    """The kernel's description of one sample.

    Attributes:
        outer, inner: the number of elements along the axes before and after the summed axis.
        size, rows: the size of the summed axis in the source, and in the target.
        starts, weights: where this sample's bands begin in the tables of starts and of weights.
        width: the number of weights of each band.
    """

    source: Pointer
    target: Pointer
    outer: Int64
    size: Int64
    rows: Int64
    inner: Int64
    starts: Int64
    weights: Int64
    width: Int64


SOURCE = KernelSource(__file__, _WeightedSums)


class Bands(NamedTuple):
    """Weighted sums of consecutive elements.

    Attributes:
        starts: the index of each sum's first element, int32.
        weights: one row of weights for each sum, float32.
    """

    starts: np.ndarray
    weights: np.ndarray


def sum_along(axis: int, sources: Columns, targets: Columns, kinds: np.ndarray, bands: Sequence[Bands]) -> None:
    """Compute weighted sums of float32 along ``axis``, in one launch; zero weights are skipped.

    ``target[m] = sum over k of weights[m, k] * source[starts[m] + k]``

    Args:
        axis: the axis.
        sources, targets: the arrays.
        kinds: for each sample, the index of its sums in ``bands``.
        bands: the different sums.
    """
    used, rows = np.unique(kinds, return_inverse=True)
    tables = [bands[kind] for kind in used.tolist()]
    starts, first_starts = packed([one.starts for one in tables], np.int32)
    weights, first_weights = packed([one.weights for one in tables], np.float32)
    shapes, entries = sources.shapes, blank_records(_WeightedSums, len(kinds))
    entries["source"], entries["target"] = sources.addresses, targets.addresses
    entries["outer"], entries["inner"] = shapes[:, :axis].prod(axis=1), shapes[:, axis + 1 :].prod(axis=1)
    entries["size"], entries["rows"] = shapes[:, axis], targets.shapes[:, axis]
    entries["starts"], entries["weights"] = np.array(first_starts)[rows], np.array(first_weights)[rows]
    entries["width"] = np.array([one.weights.shape[1] for one in tables])[rows]
    launch(SOURCE.kernel("weighted_sums"), entries, -(-targets.sizes // THREADS), starts, weights)
