"""A resize and the `crop_mirror_normalize` behind it, in one pass over the pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.kernels.windows import Region
from penstock.operators.image._resizing import (
    ImagePlans,
    ResamplePlan,
    Window,
    resample_and_normalize,
    resample_images_planned,
)
from penstock.schema import Sample, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator
from penstock.types import numpy_dtype

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located


_MOST_KNOWN = 256


@register_operator
class ResizeNormalize(FusedOperator):
    """Computes only the rows and columns that survive the crop, and stores them normalized and transposed."""

    schema = Schema(
        name="_fused__ResizeNormalize",
        fuses=(("Resize", "ResizeCropMirror"), ("CropMirrorNormalize",)),
        hidden=True,
    )

    def can_fuse(self, steps: Sequence[Workspace]) -> bool:
        first, second = steps
        _, spatial = first.state
        layout, permutation = second.state
        output = "".join(layout[axis] for axis in permutation)
        outer = layout.removesuffix("HWC")
        return spatial == 2 and layout.endswith("HWC") and output in (outer + "CHW", outer + "HWC") and _insides(second)

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        first, second = samples
        self.compute_from(np.ascontiguousarray(first.inputs[0]), first, second)

    def setup(self) -> None:
        # By the identities of both steps' plans, which are kept alive here.
        self._known: dict[tuple[int, int], tuple[Any, Any, ResamplePlan]] = {}

    def part_read(self, first: Sample, second: Sample) -> Region:
        """The part (in H, W) of the image that what survives the crop depends on."""
        return self._plan_of(first, second).part_read

    def compute_from(self, pixels: np.ndarray, first: Sample, second: Sample, origin: tuple[int, ...] = (0, 0)) -> None:
        """Computes one sample from a part of the pixels that the resize would see; they are contiguous.

        Args:
            pixels: all that :meth:`part_read` tells, or more.
            first, second: the sample in both steps.
            origin: where the part begins (in H, W).
        """
        from penstock.kernels.cpu.resample import Normalization

        plan = second.plan
        resample_and_normalize(
            pixels,
            second.outputs[0],
            self._plan_of(first, second),
            _between(second.workspace),
            Normalization(plan.mean, plan.factor, plan.shift, _is_planar(second.workspace), float(plan.fill[0])),
            origin,
        )

    def _plan_of(self, first: Sample, second: Sample) -> ResamplePlan:
        """:func:`_cropped`, kept for samples whose plans for both steps are the same."""
        key = id(first.plan), id(second.plan)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = first.plan, second.plan, _cropped(first, second)
        return known[2]

    def compute_fused_batch(self, steps: Sequence[Workspace]) -> None:
        first, second = steps
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.resample import ImageResampling, resample_alike

        if first.plans is not None and second.plans is not None:
            _resample_planned(first, second)
            return
        for step in steps:
            if step.plans is not None:
                for sample, plan in zip(step.samples, step.plans.split()):
                    sample.plan = plan
        samples = second.live
        planar = _is_planar(second)
        # Samples whose plans for both steps are the same have the same pair.
        pairs: dict[tuple[int, int], tuple[Sample, Sample]] = {}
        plans = []
        for sample in samples:
            before = first.samples[sample.index]
            plans.append(pairs.setdefault((id(before.plan), id(sample.plan)), (before, sample)))

        def job_of(pair: tuple[Sample, Sample], source: Located, target: Located) -> ImageResampling:
            plan, normalization = _cropped(*pair), pair[1].plan
            return ImageResampling(
                source,
                target,
                plan.taps_of(0),
                plan.taps_of(1),
                planar,
                normalization.mean,
                normalization.factor,
                normalization.shift,
                float(normalization.fill[0]),
            )

        sources, targets = locate_all(first.inputs[0], samples), locate_all(second.outputs[0], samples)
        resample_alike(sources, targets, plans, job_of, _between(second))


def _insides(second: Workspace) -> bool:
    """Whether all windows lie in their images, and keep all frames."""
    outer = second.state[0].index("H")
    shapes = second.inputs[0].shapes
    if second.plans is None:
        regions = [(s.plan.region, shapes[s.index]) for s in second.live]
        return all(r.inside(shape) and r.extents[:outer] == tuple(shape[:outer]) for r, shape in regions)
    # Those that were planned at once are inside.
    return not outer or second.plans.extents[:, :outer].tolist() == [list(shape[:outer]) for shape in shapes]


def _resample_planned(first: Workspace, second: Workspace) -> None:
    """Computes a batch whose samples were planned at once."""
    from penstock.kernels.cuda.resample import Normalized

    layout, _ = second.state
    plans, windows, one = first.plans, second.plans, second.plans.one
    axes = []
    for letter, axis in zip("HW", (plans.vertical, plans.horizontal)):
        number = layout.index(letter)
        mirrored = windows.mirror if letter == "W" else np.zeros_like(windows.mirror)
        axes.append(axis.window(windows.anchors[:, number], windows.extents[:, number], mirrored))
    after = Normalized(
        _is_planar(second), one.mean, one.factor, one.shift, one.channels, float(one.fill[0]), _between(second)
    )
    resample_images_planned(first.inputs[0], second.outputs[0], ImagePlans(plans.shapes, *axes), after)


def _cropped(first: Sample, second: Sample) -> ResamplePlan:
    """The resize's plan with the crop and the mirror in its windows."""
    layout, _ = second.workspace.state
    region = second.plan.region
    windows = []
    for letter in "HW":
        axis = layout.index(letter)
        start = region.anchor[axis]
        windows.append(Window(start, start + region.extents[axis], second.plan.mirror and letter == "W"))
    return first.plan.cropped(windows)


def _between(second: Workspace) -> np.dtype:
    """The type that the resized images would have."""
    return numpy_dtype(second.inputs[0].dtype)


def _is_planar(second: Workspace) -> bool:
    layout, permutation = second.state
    return layout[permutation[-1]] == "W"
