"""An operator's outputs before they are computed: types, shapes and destinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.data_types import DALIDataType
from penstock.tensors import HostPool, TensorListCPU, TensorListGPU

Shape = tuple[int, ...]


@dataclass(frozen=True)
class OutputSpec:
    """An output's dtype, layout and (for batches without samples) rank."""

    dtype: DALIDataType
    layout: str = ""
    ndim: int | None = None


class Destination(Protocol):
    """A caller's memory for a batch that a pipeline returns, so that it need not be copied there."""

    def allocate(self, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> TensorListCPU | None:
        """Return an uninitialized batch in this memory; None if a batch of these shapes is not written there directly."""


def allocate_batch(
    shapes: Sequence[Shape], spec: OutputSpec, device: str, pool: HostPool | None, destination: Destination | None
) -> Any:
    """Return an uninitialized batch.

    Args:
        shapes: the shapes of its samples; the rank of a batch without any is that of ``spec``.
        spec: its type and layout.
        device: ``cpu`` or ``gpu``.
        pool: the source of CPU memory; None: the system.
        destination: the buffer for the batch if it is on the CPU and fits there; None: any memory.
    """
    if not shapes:
        kind = TensorListCPU if device == "cpu" else TensorListGPU
        return kind.of_samples([], spec.layout, spec.dtype, spec.ndim)
    if device != "cpu":
        return TensorListGPU.allocate(shapes, spec.dtype, spec.layout)
    batch = None if destination is None else destination.allocate(shapes, spec.dtype, spec.layout)
    return TensorListCPU.allocate(shapes, spec.dtype, spec.layout, pool) if batch is None else batch
