"""Elementwise operators: each output element depends only on the same element of the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.kernels.windows import Region
from penstock.schema.image_chain import ChainOperator, Pixels, PointwiseMap
from penstock.schema.outputs import Shape
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.workspace import Sample


class PointwiseOperator(ChainOperator[State, Plan, Plans]):
    """Base class of operators that can compute a part of a sample, so that a chain of them runs block by block."""

    # The number of elements along the last dimension that must be computed together.
    group: int = 1

    def is_pointwise(self) -> bool:
        """Return whether the operator is pointwise with its arguments and a single input."""
        return True

    def joins_chain(self) -> bool:
        return self.is_pointwise()

    def stage(self, sample: Sample[State, Plan, Plans]) -> PointwiseMap:
        return ElementMap(self, sample.shapes[0])

    def compute_elements(self, sample: Sample[State, Plan, Plans], source: np.ndarray, target: np.ndarray) -> None:
        """Compute, on the CPU, the result of :meth:`compute` for some elements.

        Args:
            sample: the sample, whose shapes have been inferred; its data may be absent.
            source: whole groups of elements of the input's type, a contiguous array of shape (n,).
            target: the array to fill, of the output's type, contiguous and of shape (n,).
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement `compute_elements`")


@dataclass(frozen=True)
class ElementMap(PointwiseMap):
    """The stage of a pointwise operator for one sample."""

    operator: PointwiseOperator
    shape: Shape

    def covers(self, window: Region) -> Region:
        if self.operator.group == 1:
            return window
        return Region((*window.anchor[:-1], 0), (*window.extents[:-1], self.shape[-1]))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        self.operator.compute_elements(sample, source.contiguous(window).reshape(-1), target.reshape(-1))
