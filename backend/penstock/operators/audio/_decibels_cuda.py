"""Conversion to decibels on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, launch, locate, scratch
from penstock.kernels.cuda.reduction import Reduction, reduce_axes
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, records


class _Decibels(NamedTuple):
    """The kernel's description of one sample.

    Attributes:
        reference: the address of the sample's reference, a float on the GPU; 0: all samples share a constant reference.
    """

    source: Pointer
    target: Pointer
    reference: Pointer
    length: Int64


SOURCE = KernelSource(__file__, _Decibels)


def to_decibels(
    jobs: Sequence[tuple[OnGpu, OnGpu]], reference: np.float32 | None, smallest: np.float32, factor: np.float32
) -> None:
    """Fill targets with ``factor * log(max(smallest, x / reference))``, where ``x`` are the elements of the source.

    Args:
        jobs: ``(source, target)`` of each sample, float32.
        reference: the value at 0 dB; None: the largest positive element of each sample, or 1 if it has none.
        smallest: the smallest ratio.
        factor: the factor by which the natural logarithm is multiplied.
    """
    located = [(locate(source), locate(target)) for source, target in jobs]
    located = [job for job in located if job[1].size]
    if not located:
        return
    # A local variable, so that it lives until the launch: otherwise the pool would reuse its memory for the descriptors.
    largest = _largest([source for source, _ in located]) if reference is None else None
    references = [0] * len(located) if largest is None else [place.address for place in largest]
    entries = [
        _Decibels(source.address, target.address, address, target.size)
        for (source, target), address in zip(located, references)
    ]
    counts = [blocks_for(target.size) for _, target in located]
    with np.errstate(over="ignore"):
        per_reference = np.float32(0) if reference is None else np.float32(1) / reference
    function = SOURCE.kernel("to_decibels")
    launch(function, records(_Decibels, entries), counts, per_reference, smallest, np.log(smallest), factor)


def _largest(sources: Sequence[Located]) -> list[Located]:
    """Return the largest positive element of each array, or 0 if it has none."""
    results = scratch([()] * len(sources), np.float32)
    jobs = [Reduction(source.flat(), result, (0,)) for source, result in zip(sources, results)]
    reduce_axes(jobs, "GreatestPositive", total=np.float32)
    return results
