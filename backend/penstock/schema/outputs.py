"""The outputs of an operator before they are computed: types, shapes and destinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.data_types import DALIDataType
from penstock.tensors import HostPool, TensorListCPU, TensorListGPU

Shape = tuple[int, ...]


@dataclass(frozen=True)
class OutputSpec:
    """The dtype and layout of an output, and for batches without samples the number of dimensions."""

    dtype: DALIDataType
    layout: str = ""
    ndim: int | None = None


class Destination(Protocol):
    """Memory of a caller for a batch that a pipeline returns, so that the batch need not be copied there."""

    def allocate(self, shapes: Sequence[Shape], dtype: DALIDataType, layout: str) -> TensorListCPU | None:
        """Return an uninitialized batch in this memory; None if a batch of these shapes cannot be written there directly."""


def allocate_batch(
    shapes: Sequence[Shape], spec: OutputSpec, device: str, pool: HostPool | None, destination: Destination | None
) -> Any:
    """Allocate an uninitialized batch.

    Args:
        shapes: the shapes of the samples.
        spec: the type and layout of the batch, and the number of dimensions if there are no samples.
        device: ``cpu`` or ``gpu``.
        pool: the pool of CPU memory; None: memory comes from the system.
        destination: the memory for the batch if it is on the CPU and fits there; None: any memory.
    """
    if not shapes:
        kind = TensorListCPU if device == "cpu" else TensorListGPU
        return kind.of_samples([], spec.layout, spec.dtype, spec.ndim)
    if device != "cpu":
        return TensorListGPU.allocate(shapes, spec.dtype, spec.layout)
    batch = None if destination is None else destination.allocate(shapes, spec.dtype, spec.layout)
    return TensorListCPU.allocate(shapes, spec.dtype, spec.layout, pool) if batch is None else batch
