"""`crop_mirror_normalize`: the last step before a network, in one pass over the pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import FLOAT, FLOAT16, INT8, INT16, INT32, UINT8, UINT16, dtype_name, numpy_dtype
from penstock.kernels.windows import Region, apply_policy, check_policy, cut_off
from penstock.operators.image._stores import CmnPlan, CmnPlans, NormalizingStore, StoredAs
from penstock.operators.image._windows import (
    CROP_ARGUMENTS,
    POLICY_ARGUMENTS,
    check_crop_arguments,
    crop_region,
    crop_regions,
)
from penstock.schema import (
    Argument,
    Deprecation,
    Input,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.image_chain import ChainOperator
from penstock.schema.samples import Example

_INPUT_TYPES = (UINT8, INT16, UINT16, INT32, FLOAT, FLOAT16)

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


@register_operator
class CropMirrorNormalize(ChainOperator):
    """Takes a window, mirrors it, computes ``(x - mean) / std * scale + shift``, converts and transposes it."""

    schema = Schema(
        name="CropMirrorNormalize",
        inputs=(
            Input(
                "input",
                ("HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW"),
                doc="Images of any type.",
            ),
        ),
        arguments=(
            *CROP_ARGUMENTS,
            *POLICY_ARGUMENTS,
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output.", example=FLOAT16),
            Argument("mean", "float[]", [0.0], "Subtracted from each channel.", tensor=True, uniform=True),
            Argument("mirror", "int32", 0, "Not 0: mirrored horizontally.", tensor=True),
            Argument(
                "output_dtype",
                "DALIDataType",
                FLOAT,
                "Old name of `dtype`.",
                deprecated=Deprecation("0.24", renamed_to="dtype"),
            ),
            Argument("output_layout", "layout", "CHW", "Layout of the output.", example="HWC"),
            Argument("pad_output", "bool", False, "Add channels up to the next power of two."),
            Argument("scale", "float", 1.0, "Multiplied with the normalized value."),
            Argument("shift", "float", 0.0, "Added last."),
            Argument("std", "float[]", [1.0], "Each channel is divided by it.", tensor=True, uniform=True),
        ),
        volumetric=True,
        examples=(
            Example({"crop": [10.0, 12.0]}),
            Example({"crop_h": 10.0, "crop_w": 12.0}),
            Example({"crop": [10.0, 12.0], "output_layout": "FCHW"}, layout="FHWC"),
            Example({"crop": [10.0, 12.0], "output_layout": "FHWC"}, layout="FCHW"),
            Example({"crop_d": 2.0, "crop_h": 10.0, "crop_w": 12.0, "output_layout": "CDHW"}, layout="DHWC"),
        ),
    )
    plans_by_shape = True

    def setup(self) -> None:
        check_crop_arguments(self)
        check_policy(self.args["out_of_bounds_policy"])
        self._fills: dict[int, np.ndarray] = {}
        self._normalizations: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        if self.args["dtype"] not in (FLOAT, FLOAT16, UINT8, INT8):
            raise RuntimeError(
                f"Unsupported output type: {dtype_name(self.args['dtype'])}. Supported are: float, float16, uint8, int8"
            )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in _INPUT_TYPES:
            raise RuntimeError(f"Not supported input type: {dtype_name(batch.dtype)}")
        layout = self.input_layout(workspace)
        output = self._output_layout(layout)
        workspace.state = (layout, [layout.index(letter) for letter in output])
        return [OutputSpec(self.args["dtype"], output, batch.ndim())]

    def _output_layout(self, layout: str) -> str:
        output = self.args["output_layout"]
        if not output:
            return layout
        if sorted(output) != sorted(layout):
            raise RuntimeError(f"The output layout '{output}' is not a permutation of the input layout '{layout}'")
        return output

    def infer(self, sample: Sample) -> tuple[int, ...]:
        layout, permutation = sample.workspace.state
        shape = sample.shapes[0]
        region = crop_region(sample, shape, layout, self.args["rounding"])
        region = apply_policy(region, shape, self.args["out_of_bounds_policy"])
        channels = shape[layout.index("C")]
        padded = 1 << (channels - 1).bit_length() if self.args["pad_output"] and channels else channels
        mean, factor = self._normalization(sample, channels)
        fill = self._fill(padded)
        self._check_fill(sample, mean, factor, padded)
        sample.plan = CmnPlan(region, bool(sample["mirror"]), mean, factor, self.args["shift"], padded, fill)
        extents = [padded if letter == "C" else extent for letter, extent in zip(layout, region.extents)]
        return tuple(extents[axis] for axis in permutation)

    def infer_batch(self, workspace: Workspace, num_outputs: int) -> list[list[tuple[int, ...]]]:
        # On CPU, where the arguments are constant, what is known of a sample serves the next one.
        at_once = workspace.device != "cpu" or workspace.arguments
        planned = self._planned_batch(workspace) if at_once and not workspace.failures else None
        if planned is not None:
            plans, outputs = planned
            workspace.samples = [Sample(self, workspace, index) for index in range(workspace.batch_size)]
            if workspace.device == "cpu":
                for sample, plan in zip(workspace.samples, plans.split()):
                    sample.plan = plan
            else:
                workspace.plans = plans
            return [outputs]
        return super().infer_batch(workspace, num_outputs)

    def _planned_batch(self, workspace: Workspace) -> tuple[CmnPlans, list[tuple[int, ...]]] | None:
        """The plans of all samples, and their outputs' shapes; None where samples must be looked at one by one."""
        layout, permutation = workspace.state
        batch = workspace.inputs[0]
        mirror = self.values(workspace, "mirror")
        if not len(batch) or mirror is None or not self.tensor_arguments.isdisjoint(("mean", "std")):
            return None
        shapes = np.array(batch.shapes, np.int64)
        regions = crop_regions(self, workspace, shapes, layout)
        axis = layout.index("C")
        channels = shapes[0, axis]
        if regions is None or channels < 1 or (shapes[:, axis] != channels).any():
            return None
        anchors, extents = regions
        if (anchors < 0).any() or (anchors + extents > shapes).any():
            return None
        channels = int(channels)
        padded = 1 << (channels - 1).bit_length() if self.args["pad_output"] else channels
        sample = Sample(self, workspace, 0)
        mean, factor = self._normalization(sample, channels)
        self._check_fill(sample, mean, factor, padded)
        region = Region(tuple(anchors[0].tolist()), tuple(extents[0].tolist()))
        one = CmnPlan(region, False, mean, factor, self.args["shift"], padded, self._fill(padded))
        flags = np.broadcast_to(mirror[:, 0] != 0, len(shapes))
        outputs = extents.copy()
        outputs[:, axis] = padded
        return CmnPlans(anchors, extents, flags, one), list(map(tuple, outputs[:, permutation].tolist()))

    def _fill(self, padded: int) -> np.ndarray:
        """The fill value of each channel of the output."""
        known = self._fills.get(padded)
        if known is None:
            known = self._fills[padded] = self._filled(padded)
        return known

    def _filled(self, padded: int) -> np.ndarray:
        values = self.args["fill_values"]
        fill = np.zeros(padded, np.float32)
        # Added channels, too, have fill values with this policy only.
        if self.args["out_of_bounds_policy"] != "pad" or not len(values):
            return fill
        if len(values) > max(padded, 1):
            raise self._fill_mismatch(padded)
        # What is outside is not normalized, and cut off, not rounded, where the output is of integers.
        fill[: len(values) if len(values) > 1 else None] = cut_off(
            np.array(values, np.float64), numpy_dtype(self.args["dtype"])
        )
        return fill

    def _check_fill(self, sample: Sample, mean: np.ndarray, factor: np.ndarray, padded: int) -> None:
        """Raises RuntimeError where fill values are missing: as in DALI, they are 0 only beside a mean or std of each channel."""
        if self.args["out_of_bounds_policy"] != "pad" or not 1 < len(self.args["fill_values"]) < padded:
            return
        normalizes = mean.any() or (factor != 1).any() or self.args["shift"] != 0
        if not normalizes or max(len(np.atleast_1d(sample[name])) for name in ("mean", "std")) == 1:
            raise self._fill_mismatch(padded)

    def _fill_mismatch(self, padded: int) -> RuntimeError:
        return RuntimeError(
            f"`fill_values` has {len(self.args['fill_values'])} entries, but the output has {padded} channels"
        )

    def _normalization(self, sample: Sample, channels: int) -> tuple[np.ndarray, np.ndarray]:
        """Each channel's mean and factor; where they are constant, they are worked out once."""
        if self.tensor_arguments.isdisjoint(("mean", "std")):
            known = self._normalizations.get(channels)
            if known is None:
                known = self._normalizations[channels] = self._normalization_of(sample, channels)
            return known
        return self._normalization_of(sample, channels)

    def _normalization_of(self, sample: Sample, channels: int) -> tuple[np.ndarray, np.ndarray]:
        values = []
        for name in ("mean", "std"):
            value = np.asarray(sample[name], np.float32)
            if len(value) not in (1, channels):
                raise RuntimeError(f"`{name}` has {len(value)} entries, but the data has {channels} channels")
            values.append(np.broadcast_to(value, (channels,)))
        mean, std = values
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = (np.float32(self.args["scale"]) / std).astype(np.float32)
        return np.ascontiguousarray(mean), factor

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.normalize import crop_mirror_normalize

        layout, permutation = sample.workspace.state
        source = sample.inputs[0]
        if source.dtype == np.float16:
            source = source.astype(np.float32)
        crop_mirror_normalize(source, layout, sample.plan, permutation, sample.outputs[0])

    def stored_as(self, workspace: Workspace) -> StoredAs:
        """The order of dimensions before and after."""
        layout, permutation = workspace.state
        return StoredAs(layout, tuple(permutation))

    def window_plans(self, workspace: Workspace) -> CmnPlans | None:
        """What happens to all samples, where they were planned at once, for GPU."""
        plans: CmnPlans | None = workspace.plans
        return plans

    def stage(self, sample: Sample) -> NormalizingStore:
        layout, permutation = sample.workspace.state
        plan, shape = sample.plan, sample.shapes[0]
        extents = [plan.channels if letter == "C" else e for letter, e in zip(layout, plan.region.extents)]
        output = tuple(extents[axis] for axis in permutation)
        return NormalizingStore(plan, self.stored_as(sample.workspace), shape, output)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        layout, permutation = workspace.state
        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)

        def copy_of(plan: CmnPlan, source: Located, target: Located) -> WindowCopy:
            return WindowCopy(
                source,
                target,
                permutation,
                plan.region.anchor,
                [layout.index("W")] if plan.mirror else [],
                plan.fill,
                layout.index("C"),
                plan.mean,
                plan.factor,
                plan.shift,
            )

        plans = [sample.plan for sample in samples] if workspace.plans is None else workspace.plans.split()
        copy_grouped(sources, targets, plans, copy_of)
