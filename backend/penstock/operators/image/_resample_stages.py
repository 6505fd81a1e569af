"""Resizing as a stage of a chain that is computed sample by sample."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.chains import StageRecords, array_part, compute_part
from penstock.kernels.windows import Region
from penstock.operators.image._resample_plans import ResamplePlan
from penstock.schema import Sample
from penstock.schema.image_chain import Pixels, Sampling
from penstock.schema.operator import Shape


class Resized(Sampling):
    """Base class of stages that resize a sample along two spatial axes.

    Attributes:
        plan: how to resample the spatial axes.
        first: the first spatial dimension.
        shape_in: the input's shape.
    """

    plan: ResamplePlan
    first: int
    shape_in: Shape

    @functools.cached_property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.plan.resized(self.shape_in, self.first)

    @property
    def reduction(self) -> float:
        if not self.plan.widens:
            return 1.0
        sizes = (abs(axis.end - axis.start) / axis.size_out for axis in self.plan.axes if axis.size_out)
        return min(sizes, default=1.0)

    def of_reduced(self, scale: int) -> Resized:
        plan = self.plan.of_reduced(scale)
        extents = (axis.size_in for axis in plan.axes)
        shape = (*self.shape_in[: self.first], *extents, *self.shape_in[self.first + 2 :])
        return replace(self, plan=plan, shape_in=shape)  # type: ignore[type-var]

    def covers(self, window: Region) -> Region:
        behind = self.first + 2
        return Region(
            (*window.anchor[:behind], *(0,) * len(self.shape[behind:])),
            (*window.extents[:behind], *self.shape[behind:]),
        )

    def reads(self, window: Region) -> Region:
        anchor, extents = list(window.anchor), list(window.extents)
        for axis, (start, stop) in enumerate(self._spans(window), self.first):
            anchor[axis], extents[axis] = start, stop - start
        return Region(tuple(anchor), tuple(extents))

    def _spans(self, window: Region) -> list[tuple[int, int]]:
        """Return the (start, stop) of the input rows, and of the input columns, that a part of the output depends on."""
        raise NotImplementedError


@dataclass(frozen=True)
class Resampling(Resized):
    """Resizes a sample with the compiled core, in a chain that has to be computed sample by sample.

    Attributes:
        types: the element types of input and output.
    """

    plan: ResamplePlan
    first: int
    shape_in: Shape
    types: tuple[np.dtype, np.dtype]

    @functools.cached_property
    def _records(self) -> StageRecords:
        return self.plan.records(self.shape_in, self.first, *self.types)

    def _spans(self, window: Region) -> list[tuple[int, int]]:
        axes = range(self.first, self.first + 2)
        return [self.plan.passes.span(axis - self.first, window.anchor[axis], window.extents[axis]) for axis in axes]

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        compute_part(self._records, array_part(source.array, source.origin), array_part(target, window.anchor))
