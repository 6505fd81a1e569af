"""A resize and its `crop_mirror_normalize` in one launch on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.operators.image._resizing import (
    ImagePlans,
    ResamplePlan,
    ResamplePlans,
    Resampling,
    Spatial,
    image_plans,
    resample_images_planned,
)
from penstock.operators.image._stores import ChannelValues, CmnPlan, CmnPlans, NormalizingStore, StoredAs
from penstock.schema import Operator, Sample, Samples, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator, fused_argument
from penstock.schema.image_chain import NotFusable

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located, RunValue
    from penstock.kernels.cuda.resample import ImageResampling

_MIRROR = fused_argument(1, "mirror")


class _Resize(Protocol):
    """The part of the first step that is used here."""

    def stage(self, sample: Sample[Spatial, ResamplePlan]) -> Resampling:
        """How one sample is resized."""


class _Normalize(Protocol):
    """The part of the second step that is used here."""

    def stage(self, sample: Sample[StoredAs, CmnPlan]) -> NormalizingStore:
        """The work for one sample."""


_First = Workspace[Spatial, ResamplePlan, ResamplePlans]
_Second = Workspace[StoredAs, CmnPlan, CmnPlans]


@register_operator
class ResizeNormalize(FusedOperator):
    """Computes only the rows and columns that survive the crop, and stores them normalized and transposed."""

    schema = Schema(
        name="_fused__ResizeNormalize",
        devices=("gpu",),
        fuses=(("Resize", "ResizeCropMirror"), ("CropMirrorNormalize",)),
        hidden=True,
    )

    @classmethod
    def takes(cls, operators: Sequence[Operator]) -> bool:
        return operators[0].args.get("reference", "dali") == "dali"

    def bind(self, payload: object) -> None:
        super().bind(payload)
        # Launches that are recorded hold for other mirrors, too.
        self._drawn = "mirror" in self.operators[1].tensor_arguments
        self.varying_arguments = frozenset({_MIRROR} if self._drawn else ())

    def run_values(self, workspace: Workspace) -> dict[str, np.generic | np.ndarray]:
        step = self._step(workspace, 1)
        return {_MIRROR: _flags(Samples(self.operators[1], step, range(workspace.batch_size)).scalars("mirror") != 0)}

    @property
    def _resize(self) -> _Resize:
        return cast(_Resize, self.operators[0])

    @property
    def _normalize(self) -> _Normalize:
        return cast(_Normalize, self.operators[1])

    def check_batch(self, steps: Sequence[Workspace]) -> None:
        first, second = self._typed(steps)
        kept, regions = second.state, second.plans.regions
        if not kept.is_of_images:
            raise NotFusable("layouts other than those of images")
        if first.state.axes != 2:
            raise NotFusable("volumes")
        shapes = Samples(self.operators[1], second, second.live_indices).shapes()
        if not regions.are_inside(shapes) or not regions.are_whole(shapes, kept.layout.index("H")):
            raise NotFusable("windows that reach outside")
        if self._drawn and not regions.extents.all():
            raise NotFusable("empty images")

    @staticmethod
    def _typed(steps: Sequence[Workspace]) -> tuple[_First, _Second]:
        first, second = steps
        return first, second

    def compute_fused_batch(self, steps: Sequence[Workspace]) -> None:
        first, second = self._typed(steps)
        from penstock.kernels.cuda.launch import RunValue, locate_all
        from penstock.kernels.cuda.resample import ImageResampling, resample_grouped

        images, values = image_plans(first), second.plans.common_values
        mirrored = RunValue(_MIRROR, _flags(second.plans.mirror)) if self._drawn else None
        if images is not None and values is not None:
            _resample_planned(first, second, images, values, mirrored)
            return
        befores, samples = first.samples, second.live
        # Samples that share both steps' plans share the pair.
        pairs: dict[tuple[int, int], tuple[Sample, Sample]] = {}
        jobs = []
        for sample in samples:
            before = befores[sample.index]
            assert before is not None
            jobs.append(pairs.setdefault((id(before.plan), id(sample.plan)), (before, sample)))

        def job_of(pair: tuple[Sample, Sample], source: Located, target: Located) -> ImageResampling:
            store = self._normalize.stage(pair[1])
            if mirrored is not None:
                store = replace(store, plan=replace(store.plan, mirror=False))
            stored = self._resize.stage(pair[0]).stored_by(store)
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
        resample_grouped(sources, targets, jobs, job_of, _between(second), mirrored)


def _resample_planned(
    first: _First, second: _Second, images: ImagePlans, values: ChannelValues, mirrored: RunValue | None
) -> None:
    """Computes a batch of images that share their per-channel values; ``mirrored``: flags, if they are drawn."""
    from penstock.kernels.cuda.resample import Normalized

    axes, kept, regions, mirror = [], second.state, second.plans.regions, second.plans.mirror
    for letter, axis in zip("HW", (images.vertical, images.horizontal)):
        number = kept.layout.index(letter)
        by_taps = mirror if letter == "W" and mirrored is None else np.zeros_like(mirror)
        axes.append(axis.window(regions.anchors[:, number], regions.extents[:, number], by_taps))
    after = Normalized(
        kept.is_planar,
        values.mean,
        values.factor,
        values.shift,
        values.channels,
        float(values.fill[0]),
        _between(second),
        mirrored,
    )
    resample_images_planned(first.inputs[0], second.outputs[0], ImagePlans(images.shapes, *axes), after)


def _flags(mirrored: np.ndarray) -> np.ndarray:
    """The flags as the kernel reads them."""
    return mirrored.astype(np.int32)


def _between(second: Workspace) -> np.dtype:
    """The type that the resized images would have."""
    return numpy_dtype(second.inputs[0].dtype)
