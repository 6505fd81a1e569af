"""A resize and the `crop_mirror_normalize` behind it, in one launch on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.operators.image._resizing import ImagePlans, ResampledStore, Resampling, resample_images_planned
from penstock.operators.image._stores import CmnPlans, NormalizingStore, StoredAs
from penstock.schema import Sample, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator
from penstock.schema.image_chain import NotFusable

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.resample import ImageResampling


class _Resize(Protocol):
    """What of the first step is asked for here."""

    def image_plans(self, workspace: Workspace) -> ImagePlans | None:
        """How all samples are resized, where they were planned at once."""

    def stage(self, sample: Sample) -> Resampling:
        """How one sample is."""


class _Normalize(Protocol):
    """What of the second step is asked for here."""

    def stored_as(self, workspace: Workspace) -> StoredAs:
        """The order of dimensions before and after."""

    def window_plans(self, workspace: Workspace) -> CmnPlans | None:
        """What happens to all samples, where they were planned at once."""

    def stage(self, sample: Sample) -> NormalizingStore:
        """What happens to one sample."""


@register_operator
class ResizeNormalize(FusedOperator):
    """Computes only the rows and columns that survive the crop, and stores them normalized and transposed."""

    schema = Schema(
        name="_fused__ResizeNormalize",
        devices=("gpu",),
        fuses=(("Resize", "ResizeCropMirror"), ("CropMirrorNormalize",)),
        hidden=True,
    )

    @property
    def _resize(self) -> _Resize:
        return cast(_Resize, self.operators[0])

    @property
    def _normalize(self) -> _Normalize:
        return cast(_Normalize, self.operators[1])

    def check_batch(self, steps: Sequence[Workspace]) -> None:
        first, second = steps
        windows, kept = self._normalize.window_plans(second), self._normalize.stored_as(second)
        if not kept.is_of_images:
            raise NotFusable("layouts other than those of images")
        if windows is None:
            inside = all(self._stored(first, sample).is_inside for sample in second.live)
        else:
            # Those that were planned at once are inside of their images.
            outer = kept.layout.index("H")
            shapes = second.inputs[0].shapes
            inside = not outer or windows.extents[:, :outer].tolist() == [list(shape[:outer]) for shape in shapes]
        if not inside:
            raise NotFusable("windows that reach outside")

    def _stored(self, first: Workspace, sample: Sample) -> ResampledStore:
        """One sample, through both steps."""
        before = _with_plans(first, self._resize.image_plans(first))[sample.index]
        stored = self._resize.stage(before).stored_by(self._normalize.stage(sample))
        if stored is None:
            raise NotFusable("windows that reach outside")
        return stored

    def compute_fused_batch(self, steps: Sequence[Workspace]) -> None:
        first, second = steps
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.resample import ImageResampling, resample_grouped

        plans, windows = self._resize.image_plans(first), self._normalize.window_plans(second)
        if plans is not None and windows is not None:
            _resample_planned(first, second, plans, windows, self._normalize.stored_as(second))
            return
        befores, samples = _with_plans(first, plans), [s for s in _with_plans(second, windows) if s is not None]
        # Samples whose plans for both steps are the same have the same pair.
        pairs: dict[tuple[int, int], tuple[Sample, Sample]] = {}
        jobs = []
        for sample in samples:
            before = befores[sample.index]
            jobs.append(pairs.setdefault((id(before.plan), id(sample.plan)), (before, sample)))

        def job_of(pair: tuple[Sample, Sample], source: Located, target: Located) -> ImageResampling:
            stored = self._resize.stage(pair[0]).stored_by(self._normalize.stage(pair[1]))
            assert stored is not None
            plan, normalization = stored.plan, stored.store.plan
            return ImageResampling(
                source,
                target,
                plan.taps_of(0),
                plan.taps_of(1),
                stored.store.is_planar,
                normalization.mean,
                normalization.factor,
                normalization.shift,
                float(normalization.fill[0]),
            )

        sources, targets = locate_all(first.inputs[0], samples), locate_all(second.outputs[0], samples)
        resample_grouped(sources, targets, jobs, job_of, _between(second))


def _with_plans(step: Workspace, plans: ImagePlans | CmnPlans | None) -> list[Sample]:
    """The samples of a step, each with its own plan."""
    if plans is not None:
        for sample, plan in zip(step.samples, plans.split()):
            sample.plan = plan
    return step.samples


def _resample_planned(
    first: Workspace, second: Workspace, plans: ImagePlans, windows: CmnPlans, kept: StoredAs
) -> None:
    """Computes a batch whose samples were planned at once."""
    from penstock.kernels.cuda.resample import Normalized

    axes, one = [], windows.one
    for letter, axis in zip("HW", (plans.vertical, plans.horizontal)):
        number = kept.layout.index(letter)
        mirrored = windows.mirror if letter == "W" else np.zeros_like(windows.mirror)
        axes.append(axis.window(windows.anchors[:, number], windows.extents[:, number], mirrored))
    after = Normalized(
        kept.is_planar, one.mean, one.factor, one.shift, one.channels, float(one.fill[0]), _between(second)
    )
    resample_images_planned(first.inputs[0], second.outputs[0], ImagePlans(plans.shapes, *axes), after)


def _between(second: Workspace) -> np.dtype:
    """The type that the resized images would have."""
    return numpy_dtype(second.inputs[0].dtype)
