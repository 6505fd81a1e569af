"""Base class of operators that resize: converts arguments to plans, and runs these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import FLOAT, INT16, UINT8, UINT16, dtype_name, numpy_dtype
from penstock.kernels.resize_shapes import MIDDLES, MODES, NO_REGION, plan_axes, torchvision_sizes
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Spatial, resampling_records
from penstock.operators.image._resample_stages import Resampling
from penstock.operators.image._resampling import resample, resample_batch
from penstock.schema import OutputSpec, Sample, Samples, Workspace
from penstock.schema.image_chain import ChainOperator, NotFusable, Stage

_SIZE_ARGUMENT_GROUPS = (("size",), ("resize_x", "resize_y", "resize_z"), ("resize_shorter",), ("resize_longer",))
_SIZE_NAMES = frozenset(name for names in _SIZE_ARGUMENT_GROUPS for name in names)
_FILTER_NAMES = ("interp_type", "min_filter", "mag_filter")
_MODES_OF_SIZES = {"resize_shorter": "not_smaller", "resize_longer": "not_larger"}


class SizeRules(NamedTuple):
    """The rules by which all images are resized, in the form that compiled code accepts.

    Attributes:
        requested, mode, most, region, relative, subpixel, alignment: as for :func:`kernels.resize_shapes.plan_axes`.
        filters: the filters of axes that shrink, and those of axes that grow, as numbers of ``DALIInterpType``.
        antialias: whether filters widen when an axis shrinks.
    """

    requested: np.ndarray
    mode: int
    most: np.ndarray
    region: tuple[np.ndarray, np.ndarray]
    relative: bool
    subpixel: bool
    alignment: np.ndarray
    filters: tuple[np.ndarray, np.ndarray]
    antialias: bool


class ResizingOperator(ChainOperator[Spatial, ResamplePlan, ResamplePlans]):
    """Base class of operators that resize the D, H and W dimensions of images."""

    def setup(self) -> None:
        if self.args.get("mode", "default") not in MODES:
            raise RuntimeError(f"Invalid resize mode: {self.args['mode']}. Use one of {', '.join(MODES)}.")
        if self.given("roi_start") != self.given("roi_end"):
            raise RuntimeError("``roi_start`` and ``roi_end`` must be specified together")
        groups = [
            group for group in _SIZE_ARGUMENT_GROUPS if any(self.given(name) for name in group if name in self.args)
        ]
        if len(groups) > 1:
            raise RuntimeError(
                "Exactly one method of specifying size must be used, but "
                f"{' and '.join('`' + group[0] + '`' for group in groups)} are given"
            )
        if groups and groups[0][0] in ("resize_shorter", "resize_longer") and self.given("mode"):
            raise RuntimeError(f"`mode` cannot be given together with `{groups[0][0]}`, which implies it")
        if not groups:
            raise RuntimeError(
                "The output size is not given. Exactly one method of specifying size must be used: separate resize_x, "
                "resize_y, resize_z arguments, size argument, resize_longer or resize_shorter"
            )

    def describe(self, workspace: Workspace[Spatial]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, INT16, UINT16, FLOAT):
            raise RuntimeError(
                f"Unsupported input type: {dtype_name(batch.dtype)}. Supported are: uint8, int16, uint16, float"
            )
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(
                f"Resize must output original type ({dtype_name(batch.dtype)}) or float. Got: {dtype_name(dtype)}"
            )
        spatial = [axis for axis, letter in enumerate(layout) if letter in "DHW"]
        if spatial != list(range(spatial[0], spatial[-1] + 1)):
            raise ValueError(f"The spatial dimensions of layout '{layout}' must be adjacent")
        workspace.state = Spatial(spatial[0], len(spatial))
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer_batch(
        self, samples: Samples[Spatial, ResamplePlan, ResamplePlans]
    ) -> tuple[Sequence[np.ndarray], ResamplePlans]:
        first, count = samples.state
        shapes = samples.shapes()
        spatial = slice(first, first + count)
        extents = shapes[:, spatial].copy()
        sizes, starts, ends = self.plan_axes(samples, extents)
        plans = ResamplePlans(
            extents, sizes, starts, ends, self._filters(samples, sizes, starts, ends), self.args["antialias"]
        )
        # An empty dimension stays empty.
        shapes[:, spatial] = sizes * (extents > 0)
        return [shapes], plans

    def plan_axes(self, samples: Samples, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return output sizes, region starts and region ends as the arguments describe them: see
        :func:`kernels.resize_shapes.plan_axes`."""
        count = extents.shape[1]
        requested, mode = samples.derived(_SIZE_NAMES, ("size", count), lambda: self._requested(samples, count))
        region, relative = self._region(samples, count), self.args["roi_relative"]
        max_size = self._max_size(count)
        subpixel = self.args["subpixel_scale"]
        return plan_axes(extents, requested, mode, max_size, region, relative, subpixel, keeps_empty=True)

    def constant_rules(self, samples: Samples) -> SizeRules | None:
        """Return the rules for resizing if all arguments are constant, else None; any ``samples`` give access to the arguments."""
        if self.tensor_arguments:
            return None
        requested, mode = self._requested(samples, 2)
        return SizeRules(
            requested,
            MODES.index(mode),
            np.array(self._max_size(2), np.float64),
            self._region(samples, 2) or NO_REGION,
            bool(self.args["roi_relative"]),
            bool(self.args["subpixel_scale"]),
            MIDDLES,
            self._filters_of(samples),
            bool(self.args["antialias"]),
        )

    def plan_reference(
        self, samples: Samples, extents: np.ndarray, library: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return output sizes, region starts and region ends for resizing with another library's arithmetic.

        Regions are not adjusted to rounded sizes, but except for Pillow they are rounded to whole pixels. Except for OpenCV,
        `resize_shorter` and `resize_longer` give the sizes that torchvision gives.
        """
        count = extents.shape[1]
        requested, mode = samples.derived(_SIZE_NAMES, ("size", count), lambda: self._requested(samples, count))
        region, relative = self._region(samples, count), self.args["roi_relative"]
        max_size = self._max_size(count)
        if mode in _MODES_OF_SIZES.values() and library != "opencv" and not samples.given("mode"):
            covered = extents.astype(np.float64) if region is None else np.abs(region[1] - region[0])
            covered = covered * extents if relative else covered
            requested, mode, max_size = torchvision_sizes(covered, requested, mode, max_size), "stretch", []
        sizes, starts, ends = plan_axes(extents, requested, mode, max_size, region, relative, False, keeps_empty=True)
        if library != "pil":
            starts, ends = np.round(starts), np.round(ends)
        return sizes, starts, ends

    def _filters(self, samples: Samples, sizes: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the filters that the arguments choose for each axis, as numbers."""
        from penstock.kernels.cpu.axis_plans import fill_filters

        filters = np.empty_like(sizes)
        fill_filters(sizes, starts, ends, *self.filters_by_growth(samples), filters)
        return filters

    def filters_by_growth(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return the filters for axes that shrink and for those that grow, as numbers; one row for each sample, or one for all."""
        return samples.derived(_FILTER_NAMES, "filters", lambda: self._filters_of(samples))

    @staticmethod
    def _filters_of(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return the filters for axes that shrink and for those that grow, read from the arguments."""
        names = (name if samples.given(name) else "interp_type" for name in ("min_filter", "mag_filter"))
        shrinking, growing = (samples.values(name).astype(np.int64) for name in names)
        return shrinking, growing

    def _requested(self, samples: Samples, count: int) -> tuple[np.ndarray, str]:
        for name, mode in _MODES_OF_SIZES.items():
            if samples.given(name):
                return samples.values(name).repeat(count, axis=1), mode
        mode = self.args["mode"]
        if samples.given("size"):
            return samples.per_axis("size", count), mode
        columns = [samples.values(name) for name in ("resize_z", "resize_y", "resize_x")[-count:]]
        rows = max(map(len, columns))
        return np.concatenate([np.broadcast_to(column, (rows, 1)) for column in columns], axis=1), mode

    def _max_size(self, count: int) -> list[float]:
        value = self.args["max_size"] or []
        if len(value) not in (1, count) and self.given("max_size"):
            raise RuntimeError(f"`max_size` has {len(value)} entries, expected 1 or {count}")
        return value * count if len(value) == 1 else value

    def _region(self, samples: Samples, count: int) -> tuple[np.ndarray, np.ndarray] | None:
        if not samples.given("roi_start"):
            return None
        start, end = (self._roi_corner(samples, name, count) for name in ("roi_start", "roi_end"))
        return start, end

    @staticmethod
    def _roi_corner(samples: Samples, name: str, count: int) -> np.ndarray:
        """Return the start or the end of the region; a single constant, or a scalar tensor argument, applies to all axes."""
        values, computed = samples.values(name), samples.tensors(name)
        if values.shape[1] == 1 and (computed is None or computed.ndim == 1):
            values = values.repeat(count, axis=1)
        if values.shape[1] != count:
            raise RuntimeError(f"`{name}` has {values.shape[1]} entries, expected {count}")
        return values

    def compute(self, sample: Sample[Spatial, ResamplePlan]) -> None:
        first, _ = sample.workspace.state
        resample(np.ascontiguousarray(sample.inputs[0]), sample.outputs[0], first, sample.plan)

    step_by_step = ("volumes",)
    described_by_kind = True
    launches = True
    shares_plans_in_chains = True
    repeats_plans = True

    def stage_records(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> StageRecords | None:
        (first, count), batch, output = workspace.state, workspace.inputs[0], workspace.outputs[0]
        if count != 2:
            return None
        types = numpy_dtype(batch.dtype), numpy_dtype(output.dtype)
        return resampling_records(workspace.plans, batch.shape_array(), first, *types)

    def stage(self, sample: Sample[Spatial, ResamplePlan]) -> Stage:
        first, count = sample.workspace.state
        if count != 2:
            raise NotFusable("volumes")
        dtype = sample.workspace.inputs[0].dtype
        output = dtype if self.args["dtype"] is None else self.args["dtype"]
        return Resampling(sample.plan, first, sample.shapes[0], (numpy_dtype(dtype), numpy_dtype(output)))

    def compute_batch(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
        resample_batch(workspace)
