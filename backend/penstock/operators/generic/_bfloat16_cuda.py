"""Rounding to bfloat16 on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.kernels.cuda.launch import Located, blocks_for, launch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, cuda_type, records


class _Rounded(NamedTuple):
    """One sample."""

    source: Pointer
    target: Pointer
    elements: Int64


# Elements that a thread reads at once.
_TOGETHER = 4
SOURCE = KernelSource(__file__, _Rounded, TOGETHER=_TOGETHER)


def round_batch(sources: Sequence[Located], targets: Sequence[Located]) -> None:
    """Round numbers to bfloat16, by way of float32.

    Args:
        sources: the numbers, of one type.
        targets: the bits, uint16, of the same shapes.
    """
    entries = [_Rounded(source.address, target.address, source.size) for source, target in zip(sources, targets)]
    counts = [blocks_for(source.size, _TOGETHER * THREADS) for source in sources]
    launch(SOURCE.kernel(f"round_to_bfloat16<{cuda_type(sources[0].dtype)}>"), records(_Rounded, entries), counts)
