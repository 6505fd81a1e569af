"""Resizing with another library's arithmetic: exactly the same bytes as Pillow, torchvision or OpenCV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from penstock.data_types import (
    FLOAT,
    UINT8,
    DALIDataType,
    DALIInterpType,
    dtype_name,
)
from penstock.kernels.windows import Region
from penstock.operators.image._float_stages import FloatResampling
from penstock.operators.image._reference_plans import (
    FILTER_NAMES,
    FloatPlan,
    Reference,
    ReferencePlan,
    ReferencePlans,
)
from penstock.operators.image._reference_stages import ReferenceResampling
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Spatial
from penstock.operators.image._resampling import image_stack
from penstock.operators.image._resizing import ResizingOperator
from penstock.operators.image._windows import region_copy
from penstock.schema import Argument, OutputSpec, Sample, Samples, Workspace
from penstock.schema.image_chain import Stage
from penstock.schema.operator import Operator

_DALI = "dali"
# The types that each library's arithmetic supports; libraries that are not listed support all.
_TYPES = {"pil": (UINT8,), "torchvision": (UINT8, FLOAT)}
# Libraries without an option for antialiasing, and whether their filters are antialiased.
_ANTIALIASES = {"pil": True, "opencv": False}
REFERENCE_ARGUMENTS = (
    Argument(
        "as_floats",
        "bool",
        False,
        "With `torchvision`: resize uint8 images as float images, and round the result, halves to even. Otherwise, uint8 "
        "values are rounded after each axis.",
        exempt="It needs a reference.",
    ),
    Argument(
        "interpolation",
        "string",
        None,
        "With a `reference`: its filter, as the library calls it, where `interp_type` has no name for it: `box`, "
        "`hamming` (`pil`), `nearest-exact` (`torchvision`, `opencv`), `linear-exact`, `area`, `lanczos4` (`opencv`).",
        exempt="It needs a reference.",
    ),
    Argument(
        "reducing_gap",
        "float",
        0.0,
        "With `pil`: images are first reduced by whole factors, so that at least this factor is left for the filter; "
        "0: they are not.",
        exempt="It needs a reference.",
    ),
    Argument(
        "reference",
        "string",
        _DALI,
        "The library whose results are computed, bit for bit: `dali`, `pil` (`Image.resize`), `torchvision` "
        "(`transforms.v2.Resize` of tensors) or `opencv` (`cv2.resize`). Images are of uint8, with `torchvision` also of "
        "float, with `opencv` of any type.",
        choices=(_DALI, *FILTER_NAMES),
    ),
)


class ReferenceResizing(ResizingOperator):
    """Base class of operators that can resize exactly like other libraries (:data:`REFERENCE_ARGUMENTS`)."""

    def setup(self) -> None:
        super().setup()
        self._reference: Reference | None = None
        self.launches = self.launches and self.args["reference"] == _DALI
        self.plans_by_shape = self.device == "cpu" and not self.launches
        library, interpolation = self.args["reference"], self.args["interpolation"]
        gap, as_floats = self.args["reducing_gap"], self.args["as_floats"]
        if library not in (_DALI, *FILTER_NAMES):
            raise ValueError(f"`reference` must be one of {', '.join((_DALI, *FILTER_NAMES))}. Got: {library!r}")
        if gap and library != "pil":
            raise ValueError("`reducing_gap` needs `reference='pil'`")
        if as_floats and library != "torchvision":
            raise ValueError("`as_floats` needs `reference='torchvision'`")
        if library == _DALI:
            if interpolation is not None:
                raise ValueError(
                    "`interpolation` needs a `reference`; use `interp_type` to choose one of DALI's filters"
                )
            return
        self._check(library, interpolation, gap)
        self._reference = Reference(library, interpolation or "", gap, as_floats)

    def _check(self, library: str, interpolation: str | None, gap: float) -> None:
        if interpolation is not None and interpolation not in FILTER_NAMES[library]:
            raise ValueError(
                f"`interpolation`: {library} has {', '.join(FILTER_NAMES[library])}. Got: {interpolation!r}"
            )
        if interpolation is not None and self.given("interp_type"):
            raise ValueError("`interpolation` and `interp_type` both name the filter: give one of them")
        for name in ("min_filter", "mag_filter"):
            if self.given(name):
                raise ValueError(
                    f"`{name}`: {library} has one filter for both axes: set `interp_type` or `interpolation` instead"
                )
        if gap and gap < 1:
            raise ValueError(f"`reducing_gap` must be at least 1, or 0 for none. Got: {gap:g}")
        if self.given("antialias") and library in _ANTIALIASES and self.args["antialias"] != _ANTIALIASES[library]:
            raise ValueError(
                f"`antialias`: {library} {'always' if _ANTIALIASES[library] else 'never'} widens its filters when an axis shrinks"
            )

    def joins_chain(self) -> bool:
        reference = self._reference
        return super().joins_chain() and (
            reference is None or (reference.library != "opencv" and not reference.reducing_gap)
        )

    def stage(self, sample: Sample[Spatial, ResamplePlan]) -> Stage:
        plan = sample.plan
        if isinstance(plan, FloatPlan):
            return FloatResampling(plan, sample.workspace.state.first, sample.shapes[0], plan.neighbours)
        if not isinstance(plan, ReferencePlan):
            return super().stage(sample)
        (first, _), shape, part = sample.workspace.state, sample.shapes[0], plan.part_kept
        if part is None:
            return ReferenceResampling(plan, first, shape)
        behind = first + len(plan.axes)
        anchor = (*(0,) * first, *part.anchor, *(0,) * len(shape[behind:]))
        return region_copy(Region(anchor, (*shape[:first], *part.extents, *shape[behind:])), shape, (), None)

    def describe(self, workspace: Workspace[Spatial]) -> list[OutputSpec]:
        specs = super().describe(workspace)
        if self._reference is not None:
            self._check_data(workspace, self._reference.library)
        return specs

    def _check_data(self, workspace: Workspace[Spatial], library: str) -> None:
        dtype = workspace.inputs[0].dtype
        if dtype not in _TYPES.get(library, (dtype,)):
            accepted = " or ".join(dtype_name(known) for known in _TYPES[library])
            raise RuntimeError(f"With `reference='{library}'`, images must be {accepted}. Got: {dtype_name(dtype)}")
        if self.args["dtype"] not in (None, dtype):
            raise RuntimeError(f"With `reference='{library}'`, `dtype` must be that of the images, {dtype_name(dtype)}")
        if workspace.state.axes != 2:
            raise RuntimeError(
                f"With `reference='{library}'`, images must have two axes. Got: {workspace.state.axes} axes"
            )

    def infer_batch(
        self, samples: Samples[Spatial, ResamplePlan, ResamplePlans]
    ) -> tuple[Sequence[np.ndarray], ResamplePlans]:
        shapes, plans = super().infer_batch(samples)
        if self._reference is None:
            return shapes, plans
        batch, layout = samples.workspace.inputs[0], self.input_layout(samples.workspace)
        for kind in np.unique(plans.filters).tolist():
            self._check_filter(self._reference.filter_of(DALIInterpType(kind)), batch.dtype)
        own = {field.name: getattr(plans, field.name) for field in fields(ResamplePlans)}
        channels = samples.shapes()[:, layout.index("C")]
        kind = self._reference.plan_of(batch.dtype)
        return shapes, ReferencePlans(**own, reference=self._reference, channels=channels, kind=kind)

    def _check_filter(self, name: str, dtype: DALIDataType) -> None:
        if (
            name == "lanczos"
            and self.args["reference"] == "torchvision"
            and (dtype == FLOAT or self.args["as_floats"] or not self.args["antialias"])
        ):
            raise ValueError(
                "torchvision's lanczos is supported only for images of uint8, as bytes and with `antialias`"
            )

    def plan_axes(self, samples: Samples, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._reference is None:
            return super().plan_axes(samples, extents)
        return self.plan_reference(samples, extents, self._reference.library)

    def compute_batch(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
        if self._reference is None:
            super().compute_batch(workspace)
        elif all(type(sample.plan) is ReferencePlan for sample in workspace.live):
            resample_references(workspace)
        elif all(isinstance(sample.plan, FloatPlan) and sample.plan.has_kernel for sample in workspace.live):
            resample_widened(workspace)
        else:
            # There are no kernels for other plans for floats, for OpenCV's resizing, or for images that are reduced first: they are
            # computed on the host.
            Operator.compute_batch(self, workspace)


def resample_references(workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
    """Resample uint8 images on the GPU with tables of integer weights."""
    from penstock.kernels.cuda.fixed_point import BytesResampling, resample_bytes
    from penstock.kernels.cuda.launch import locate_all

    first, _ = workspace.state
    samples = workspace.live
    jobs = []
    sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
    for sample, source, target in zip(samples, sources, targets):
        plan = sample.plan
        assert isinstance(plan, ReferencePlan)
        if target.size and not source.size:
            raise RuntimeError(f"Cannot resize an empty image of shape {list(source.shape)}")
        stack, result = (place.reshape(*image_stack(place.shape, first)) for place in (source, target))
        vertical, horizontal = plan.tables
        weighed = plan.has_alpha(stack.shape[-1]) and not plan.filter.startswith("nearest")
        jobs.append(BytesResampling(stack, result, vertical, horizontal, plan.columns_first, weighed))
    resample_bytes(jobs)


def resample_widened(workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
    """Resample float images on the GPU as PyTorch does with antialiasing."""
    from penstock.kernels.cuda.launch import locate_all
    from penstock.kernels.cuda.torch_floats import FloatResampling, resample_floats

    first, _ = workspace.state
    samples = workspace.live
    jobs = []
    for sample, *places in zip(
        samples, locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
    ):
        plan = sample.plan
        assert isinstance(plan, FloatPlan)
        source, target = (place.reshape(*image_stack(place.shape, first)) for place in places)
        if target.size and not source.size:
            raise RuntimeError(f"Cannot resize an empty image of shape {list(sample.shapes[0])}")
        jobs.append(FloatResampling(source, target, *plan.widened))
    resample_floats(jobs)
