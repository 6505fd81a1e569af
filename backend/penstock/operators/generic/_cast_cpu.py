"""Type conversions that run as stages of a chain of the compiled core."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.core.chains import StageKind, StageRecords, placements
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.parts import RUN, address_of, elements_at

_NO_VALUES = np.dtype([("unused", np.int64)])
"""The type of the record that the kernel ignores: it needs no parameters, as the types are compiled into it."""


@kernel
def _cast_run(_record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results = elements_at(source, count, like), elements_at(target, count, like_out)
    for i in range(count):
        results[i] = converted(values[i], like_out)


def casting_stage(shapes: np.ndarray, source: np.dtype, target: np.dtype) -> StageRecords:
    """Return the chain stages that convert the samples of a batch.

    Args:
        shapes: the samples' shapes, int64 of shape (samples, rank).
        source, target: the elements' types before and after; not float16.
    """
    if source == target:
        return StageRecords(
            StageKind.PLACEMENT, placements(0, shapes, shapes, target.itemsize), shapes, target.itemsize
        )
    compute = address_of(_cast_run, _NO_VALUES, RUN, source, target)
    records = np.zeros(len(shapes), _NO_VALUES)
    return StageRecords(StageKind.POINTWISE, records, shapes, target.itemsize, compute=compute)
