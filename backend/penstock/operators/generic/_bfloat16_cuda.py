"""Rounding to bfloat16 on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.kernels.cuda.launch import Located, blocks_for, launch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, cuda_type, records


class _Rounded(NamedTuple):
    """The kernel's description of one sample."""

    source: Pointer
    target: Pointer
    elements: Int64


# The number of elements that a thread reads with one access.
_TOGETHER = 4
SOURCE = KernelSource(__file__, _Rounded, TOGETHER=_TOGETHER)


def round_batch(sources: Sequence[Located], targets: Sequence[Located]) -> None:
    """Round numbers to float32, then to bfloat16.

    Args:
        sources: the numbers, all of one type.
        targets: arrays of the same shapes, uint16; output: the bits of the bfloat16 numbers.
    """
    entries = [_Rounded(source.address, target.address, source.size) for source, target in zip(sources, targets)]
    counts = [blocks_for(source.size, _TOGETHER * THREADS) for source in sources]
    launch(SOURCE.kernel(f"round_to_bfloat16<{cuda_type(sources[0].dtype)}>"), records(_Rounded, entries), counts)
