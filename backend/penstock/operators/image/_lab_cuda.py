"""RGB images to CIE L*a*b* and back, on GPU; all of uint8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import THREADS, blocks_for, kernel, launch, locate
from penstock.operators.image._lab import tables_from_lab, tables_to_lab

_PIXELS = np.dtype([("source", np.uint64), ("target", np.uint64), ("count", np.int64)])


def to_lab(jobs: Sequence[tuple[Any, Any]]) -> None:
    """``(source, target)`` for each image, in one launch."""
    _convert("to_lab", jobs, tables_to_lab())


def from_lab(jobs: Sequence[tuple[Any, Any]]) -> None:
    """The reverse of :func:`to_lab`."""
    _convert("from_lab", jobs, tables_from_lab())


def _convert(name: str, jobs: Sequence[tuple[Any, Any]], tables: Sequence[np.ndarray]) -> None:
    located = [(locate(source), locate(target)) for source, target in jobs]
    entries = [(source.address, target.address, source.size // 3) for source, target in located if source.size]
    if entries:
        launch(
            kernel(__file__, name),
            np.array(entries, _PIXELS),
            [blocks_for(entry[2], 4 * THREADS) for entry in entries],
            *tables,
        )
