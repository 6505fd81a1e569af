"""A resize and the `crop_mirror_normalize` after it, in one launch on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.operators.image._resample_plans import ImagePlans, ResamplePlan, ResamplePlans, Spatial, Window
from penstock.operators.image._resampling import image_plans, resample_images_planned, stacks_of
from penstock.operators.image._resizing import SizeRules
from penstock.operators.image._stores import ChannelValues, CmnPlan, CmnPlans, CmnRules, NormalizingStore, StoredAs
from penstock.schema import Operator, OutputSpec, Sample, Samples, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator, fused_argument, without_data
from penstock.schema.image_chain import NotFusable
from penstock.schema.samples import values_of

if TYPE_CHECKING:
    from penstock.kernels.cuda.alike_images import AlikeImages, AlikeRules
    from penstock.kernels.cuda.launch import Located, RunValue
    from penstock.kernels.cuda.resample import ImageResampling, Normalized, PlannedResampling
    from penstock.tensors import TensorListGPU

_MIRROR = fused_argument(1, "mirror")


class _Resize(Protocol):
    """The methods of the first step that this module calls."""

    def constant_rules(self, samples: Samples) -> SizeRules | None:
        """Return the rules by which all images are resized, if they are constant, else None."""


class _Normalize(Protocol):
    """The methods of the second step that this module calls."""

    def stage(self, sample: Sample[StoredAs, CmnPlan]) -> NormalizingStore:
        """Return the stage that normalizes one sample."""

    def constant_rules(self, samples: Samples, layout: str, channels: int) -> CmnRules | None:
        """Return the rules by which all images are normalized, if they are constant, else None."""


class _Rules(NamedTuple):
    """The rules for all images of one type and number of channels.

    Attributes:
        images: the rules of both steps.
        channels: the output's number of channels.
        spec: the output's type, layout and rank.
    """

    images: AlikeRules
    channels: int
    spec: OutputSpec


class ResizedInParts(NamedTuple):
    """A batch whose images are resized and stored as they arrive, because other images soon overwrite their memory.

    Attributes:
        outputs: the batch that receives the results.
        planned: the planned resampling of the whole batch, including the normalization.
        images: the plans of the images, from which ``planned`` was made.
    """

    outputs: TensorListGPU
    planned: PlannedResampling
    images: AlikeImages

    def resize(self, rows: np.ndarray, addresses: np.ndarray) -> None:
        """Resize whole images that were decoded elsewhere.

        Args:
            rows: the indices of these images in the batch, ascending.
            addresses: the addresses of these images on the GPU, uint64.
        """
        from penstock.kernels.cuda.launch import RunValue
        from penstock.kernels.cuda.resample import ImageStacks

        images, after = self.images.whole(rows), self.planned.after
        if after.mirrored is not None:
            after = after._replace(mirrored=RunValue(after.mirrored.name, np.asarray(after.mirrored.value)[rows]))
        sources = ImageStacks(addresses, images.stacks, images.rules.source)
        images.launch(after, self.outputs.pointers()[rows], sources)


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
        # Recorded launches can be replayed with other mirror flags.
        self._drawn = "mirror" in self.operators[1].tensor_arguments
        self.varying_arguments = frozenset({_MIRROR} if self._drawn else ())
        self._rules: dict[tuple[DALIDataType, int], _Rules | None] = {}

    def run_values(self, workspace: Workspace) -> dict[str, np.generic | np.ndarray]:
        return {_MIRROR: self._mirrored(workspace)}

    def _mirrored(self, workspace: Workspace) -> np.ndarray:
        """Return the mirror flag of each sample as the kernel reads it, int32: a nonzero flag mirrors the sample."""
        argument = self.operators[1].schema.all_arguments["mirror"]
        values = values_of(argument, workspace.arguments[_MIRROR], range(workspace.batch_size))
        return values[:, 0].astype(np.int32)

    def run_planned(self, workspace: Workspace) -> bool:
        known = self._plan(workspace)
        if known is None:
            return False
        rules, planned, after = known
        workspace.outputs = [self._outputs(workspace, rules, planned)]

        def compute_batch(whole: Workspace) -> None:
            sources = stacks_of(whole.inputs[0], planned.stacks)
            planned.launch(after, whole.outputs[0].pointers(), sources)

        self.gpu_launches.record(self, workspace, compute_batch)
        return True

    def follow(self, workspace: Workspace) -> ResizedInParts | None:
        """Prepare for a batch whose images will arrive in parts; return None if :meth:`run` has to compute the batch.

        Args:
            workspace: a workspace whose input has the images' types and shapes, but no data.
        """
        known = self._plan(workspace, in_windows=True)
        if known is None:
            return None
        rules, planned, after = known
        outputs = self._outputs(workspace, rules, planned)
        return ResizedInParts(outputs, planned.resampling(after, outputs.pointers(), outputs), planned)

    def _plan(self, workspace: Workspace, in_windows: bool = False) -> tuple[_Rules, AlikeImages, Normalized] | None:
        """Return the rules, the plan and the normalization for a batch; None unless its images are all processed alike.

        Args:
            in_windows: whether memory will contain only the parts of images that are read.
        """
        batch = workspace.inputs[0]
        if not len(batch) or batch.layout() != "HWC" or any(own.layout() for own in workspace.arguments.values()):
            return None
        channels = batch.shapes[0][2]
        kind = batch.dtype, channels
        if kind not in self._rules:
            self._rules[kind] = self._rules_of(workspace, channels)
        rules = self._rules[kind]
        if rules is None:
            return None
        try:
            mirrored = self._mirrored(workspace) if self._drawn else None
        except Exception:
            return None
        from penstock.kernels.cuda.alike_images import AlikeImages
        from penstock.kernels.cuda.launch import RunValue

        planned, after = AlikeImages.planned(rules.images, batch.shape_array(), in_windows), rules.images.after
        if planned is None or (mirrored is not None and len(mirrored) != workspace.batch_size):
            return None
        return rules, planned, after if mirrored is None else after._replace(mirrored=RunValue(_MIRROR, mirrored))

    @staticmethod
    def _outputs(workspace: Workspace, rules: _Rules, planned: AlikeImages) -> TensorListGPU:
        """Allocate the output."""
        sizes: list[list[int]] = planned.cropped.tolist()
        are_alike = sizes.count(sizes[0]) == len(sizes)
        channels, planar = rules.channels, rules.images.after.planar
        shapes = [(channels, *size) if planar else (*size, channels) for size in (sizes[:1] if are_alike else sizes)]
        outputs: TensorListGPU = workspace.allocate(shapes * (len(sizes) if are_alike else 1), rules.spec, 0)
        return outputs

    def _rules_of(self, workspace: Workspace, channels: int) -> _Rules | None:
        """Return the rules for images of the batch's type; None if rules vary between batches, or a step refuses the type."""
        first, second = (self.step(workspace, position) for position in range(2))
        first.inputs, second.arguments = list(workspace.inputs), {}
        try:
            size = self._resize.constant_rules(Samples(self.operators[0], first, ()))
            (between,) = self.operators[0].describe(first)
            second.inputs = [without_data(between, [], workspace.device)]
            (spec,) = self.operators[1].describe(second)
            store = self._normalize.constant_rules(Samples(self.operators[1], second, ()), between.layout, channels)
        except Exception:
            return None
        whole = numpy_dtype(workspace.inputs[0].dtype).kind in "iu"
        if size is None or store is None or not whole or not second.state.is_of_images:
            return None
        from penstock.kernels.cuda.alike_images import AlikeRules

        after = _normalized(second.state.is_planar, store.values, numpy_dtype(between.dtype), None)
        types = numpy_dtype(workspace.inputs[0].dtype), numpy_dtype(spec.dtype)
        images = AlikeRules.of(types, channels, (*size, *store.crop, store.mirrored), after)
        return _Rules(images, store.values.channels, spec)

    @property
    def _resize(self) -> _Resize:
        return cast(_Resize, self.operators[0])

    @property
    def _normalize(self) -> _Normalize:
        return cast(_Normalize, self.operators[1])

    def check_batch(self, steps: Sequence[Workspace]) -> None:
        first, second = self._typed(steps)
        if not second.live_indices:
            raise NotFusable("batches of which every image has failed")
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
        mirrored = RunValue(_MIRROR, second.plans.mirror.astype(np.int32)) if self._drawn else None
        if images is not None and values is not None:
            _resample_planned(first, second, images, values, mirrored)
            return
        befores, samples = first.samples, second.live
        # Samples that share the plans of both steps share one pair, too, so that they are grouped.
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
            inside, normalization = store.place_of_image()[0], store.plan
            mirrors = False, normalization.mirror
            plan = pair[0].plan.cropped([Window(p.start, p.stop, m) for p, m in zip(inside[-3:], mirrors)])
            return ImageResampling(
                source,
                target,
                plan.gpu_taps_of(0),
                plan.gpu_taps_of(1),
                store.is_planar,
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
    """Compute a batch of images that share their per-channel values; ``mirrored``: flags, if `mirror` is a tensor argument."""
    axes, kept, regions, mirror = [], second.state, second.plans.regions, second.plans.mirror
    for letter, axis in zip("HW", (images.vertical, images.horizontal)):
        number = kept.layout.index(letter)
        by_taps = mirror if letter == "W" and mirrored is None else np.zeros_like(mirror)
        axes.append(axis.window(regions.anchors[:, number], regions.extents[:, number], by_taps))
    after = _normalized(kept.is_planar, values, _between(second), mirrored)
    resample_images_planned(first.inputs[0], second.outputs[0], ImagePlans(images.shapes, *axes), after)


def _normalized(planar: bool, values: ChannelValues, between: np.dtype, mirrored: RunValue | None) -> Normalized:
    """Return the normalization after resampling, for images that share their per-channel values."""
    from penstock.kernels.cuda.resample import Normalized

    normalization, fill = np.concatenate([values.mean, values.factor]), float(values.fill[0])
    return Normalized(planar, normalization, values.shift, values.channels, fill, between, mirrored)


def _between(second: Workspace) -> np.dtype:
    """Return the type that the resized images would have if they were stored before normalization."""
    return numpy_dtype(second.inputs[0].dtype)
