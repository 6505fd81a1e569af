"""`crop_mirror_normalize`: the last step before a network, in one pass over the pixels."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from penstock.core.chains import StageRecords
from penstock.data_types import FLOAT, FLOAT16, INT8, INT16, INT32, UINT8, UINT16, dtype_name, numpy_dtype
from penstock.kernels.windows import Region, check_policy, cut_off
from penstock.operators.image._stores import (
    ChannelValues,
    CmnPlan,
    CmnPlans,
    CmnRules,
    NormalizingStore,
    StoredAs,
    store_records,
    stored_values,
)
from penstock.operators.image._windows import (
    CROP_ARGUMENTS,
    POLICY_ARGUMENTS,
    check_crop_arguments,
    constant_crop,
    crop_regions,
)
from penstock.schema import (
    Argument,
    Deprecation,
    Equivalent,
    Input,
    OutputSpec,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.image_chain import ChainOperator, Pixels

_MEAN = attrgetter("mean")
_INPUT_TYPES = (UINT8, INT16, UINT16, INT32, FLOAT, FLOAT16)

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


@register_operator
class CropMirrorNormalize(ChainOperator[StoredAs, CmnPlan, CmnPlans]):
    """Crops a window, mirrors it, computes ``(x - mean) / std * scale + shift``, converts and transposes it."""

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
        shown=(on_photo(crop=[120, 120], mirror=1, mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4]),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.Normalize",
                "It only normalizes, and images are from 0 to 1; for bytes, mean and deviation are 255 times as large "
                "here.",
            ),
        ),
    )

    def setup(self) -> None:
        check_crop_arguments(self)
        self._policy = check_policy(self.args["out_of_bounds_policy"])
        self._values: dict[int, ChannelValues] = {}
        self.launches = self.args["dtype"] != FLOAT16
        if self.args["dtype"] not in (FLOAT, FLOAT16, UINT8, INT8):
            raise RuntimeError(
                f"Unsupported output type: {dtype_name(self.args['dtype'])}. Supported are: float, float16, uint8, int8"
            )

    def describe(self, workspace: Workspace[StoredAs]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in _INPUT_TYPES:
            raise RuntimeError(f"Not supported input type: {dtype_name(batch.dtype)}")
        layout = self.input_layout(workspace)
        output = self._output_layout(layout)
        workspace.state = StoredAs(layout, tuple(layout.index(letter) for letter in output))
        return [OutputSpec(self.args["dtype"], output, batch.ndim())]

    def _output_layout(self, layout: str) -> str:
        output = self.args["output_layout"]
        if not output:
            return layout
        if sorted(output) != sorted(layout):
            raise RuntimeError(f"The output layout '{output}' is not a permutation of the input layout '{layout}'")
        return output

    def infer_batch(self, samples: Samples[StoredAs, CmnPlan, CmnPlans]) -> tuple[np.ndarray, CmnPlans]:
        shapes, state = samples.shapes(), samples.state
        regions = crop_regions(samples, shapes, state.layout, self._policy)
        axis = state.layout.index("C")
        values, which = self._values_of(samples, shapes[:, axis])
        mirror = samples.scalars("mirror") != 0
        extents = regions.extents.copy()
        extents[:, axis] = values[0].channels if len(values) == 1 else np.array([own.channels for own in values])[which]
        mirror = mirror if len(mirror) == len(shapes) else mirror.repeat(len(shapes))
        plans = CmnPlans(regions, mirror, values, which)
        return extents[:, state.permutation], plans

    def constant_rules(self, samples: Samples, layout: str, channels: int) -> CmnRules | None:
        """Return the rules for all images if all arguments but ``mirror`` are constant, else None.

        Any ``samples`` give access to the arguments.

        Raises:
            RuntimeError: the number of means, deviations or fill values does not match the number of channels.
        """
        if not self.tensor_arguments <= {"mirror"}:
            return None
        mirrored = "mirror" not in self.tensor_arguments and bool(self.args["mirror"])
        return CmnRules(constant_crop(samples, layout), self._constant_values(samples, channels), mirrored)

    def _values_of(self, samples: Samples, channels: np.ndarray) -> tuple[list[ChannelValues], np.ndarray]:
        """Return sets of per-channel values, and the index of each sample's set; sets are cached if mean and std are constant."""
        if self.tensor_arguments.isdisjoint(("mean", "std")):
            counts = sorted(set(channels.tolist()))
            if len(counts) == 1:
                return [self._constant_values(samples, counts[0])], np.zeros(len(channels), np.int64)
            return [self._constant_values(samples, count) for count in counts], np.searchsorted(counts, channels)
        means, stds = (samples.values(name).astype(np.float32) for name in ("mean", "std"))
        values = [
            self._channel_values(count, means[row % len(means)], stds[row % len(stds)])
            for row, count in enumerate(channels.tolist())
        ]
        return values, np.arange(len(values))

    def _constant_values(self, samples: Samples, channels: int) -> ChannelValues:
        known = self._values.get(channels)
        if known is None:
            mean, std = (samples.values(name)[0].astype(np.float32) for name in ("mean", "std"))
            known = self._values[channels] = self._channel_values(channels, mean, std)
        return known

    def _channel_values(self, channels: int, mean: np.ndarray, std: np.ndarray) -> ChannelValues:
        for name, value in (("mean", mean), ("std", std)):
            if len(value) not in (1, channels):
                raise RuntimeError(f"`{name}` has {len(value)} entries, but the data has {channels} channels")
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = (np.float32(self.args["scale"]) / np.broadcast_to(std, (channels,))).astype(np.float32)
        means, shift = np.ascontiguousarray(np.broadcast_to(mean, (channels,))), self.args["shift"]
        padded = 1 << (channels - 1).bit_length() if self.args["pad_output"] and channels else channels
        fill = self._fill(padded)
        # Like DALI: missing fill values default to 0 only if the operator normalizes with a mean or std per channel.
        if self._policy == "pad" and 1 < len(self.args["fill_values"]) < padded:
            normalizes = means.any() or (factor != 1).any() or shift != 0
            if not normalizes or max(len(mean), len(std)) == 1:
                raise self._fill_mismatch(padded)
        return ChannelValues(means, factor, shift, padded, fill)

    def _fill(self, padded: int) -> np.ndarray:
        """Return the fill value of each channel of the output."""
        values = self.args["fill_values"]
        fill = np.zeros(padded, np.float32)
        # With other policies, padded channels are 0.
        if self._policy != "pad" or not len(values):
            return fill
        if len(values) > max(padded, 1):
            raise self._fill_mismatch(padded)
        # Fill values are not normalized; for integer outputs they are truncated, not rounded.
        fill[: len(values) if len(values) > 1 else None] = cut_off(
            np.array(values, np.float64), numpy_dtype(self.args["dtype"])
        )
        return fill

    def _fill_mismatch(self, padded: int) -> RuntimeError:
        return RuntimeError(
            f"`fill_values` has {len(self.args['fill_values'])} entries, but the output has {padded} channels"
        )

    described_by_kind = True
    shares_plans_in_chains = True
    repeats_plans = True

    def stage_records(self, workspace: Workspace[StoredAs, CmnPlan, CmnPlans]) -> StageRecords | None:
        batch = workspace.inputs[0]
        source, target = numpy_dtype(batch.dtype), numpy_dtype(workspace.outputs[0].dtype)
        if np.float16 in (source, target):
            return None
        plans = workspace.plans
        if self.tensor_arguments.isdisjoint(("mean", "std")):
            key = ("stored", target, *map(len, map(_MEAN, plans.values)))
            stored = self.known.get(key)
            if stored is None:
                stored = self.known[key] = stored_values(plans.values, target)
        else:
            stored = stored_values(plans.values, target)
        return store_records(plans, workspace.state, batch.shape_array(), source, target, stored)

    def compute(self, sample: Sample[StoredAs, CmnPlan]) -> None:
        source, output = sample.inputs[0], sample.outputs[0]
        whole = Region.whole(output.shape)
        self.stage(sample).compute(sample, Pixels(source, (0,) * source.ndim), whole, output)

    def stage(self, sample: Sample[StoredAs, CmnPlan]) -> NormalizingStore:
        state, plan = sample.workspace.state, sample.plan
        extents = [plan.channels if letter == "C" else e for letter, e in zip(state.layout, plan.region.extents)]
        output = tuple(extents[axis] for axis in state.permutation)
        return NormalizingStore(plan, state, sample.shapes[0], output)

    def compute_batch(self, workspace: Workspace[StoredAs, CmnPlan]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped

        state, samples = workspace.state, workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)

        def copy_of(plan: CmnPlan, source: Located, target: Located) -> WindowCopy:
            return WindowCopy(
                source,
                target,
                state.permutation,
                plan.region.anchor,
                [state.layout.index("W")] if plan.mirror else [],
                plan.fill,
                state.layout.index("C"),
                plan.mean,
                plan.factor,
                plan.shift,
            )

        copy_grouped(sources, targets, [sample.plan for sample in samples], copy_of)
