"""`slice`: a box of each sample, by anchor and shape or by start and end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.axes import resolve_axes
from penstock.kernels.resize_shapes import round_half_away
from penstock.kernels.windows import Region, apply_policy, check_policy
from penstock.operators.image._windows import copy_region, window_type
from penstock.schema import Argument, Deprecation, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator

_STARTS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


@register_operator
class Slice(Operator):
    """Takes a box of each sample.

    The box is given by the inputs anchor and shape (in the order of ``axes`` or ``axis_names``, x before y by default),
    or by one of ``start``, ``rel_start`` and one of ``end``, ``rel_end``, ``shape``, ``rel_shape``. Start and end are
    rounded half away from zero.
    """

    schema = Schema(
        name="Slice",
        inputs=(
            Input("data", doc="Data of any type and shape."),
            Input("anchor", device="match_or_cpu", doc="Where the box begins: 1-D, of numbers."),
            Input("shape_input", device="match_or_cpu", doc="How far the box reaches: 1-D, of numbers."),
        ),
        min_inputs=1,
        arguments=(
            Argument("axes", "int32[]", [1, 0], "Indices of the dimensions that the other arguments speak of.", tensor=True),
            Argument("axis_names", "layout", "WH", "Letters of the dimensions that the other arguments speak of, as in the layout."),
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument("end", "int32[]", None, "End of the slice in samples.", tensor=True),
            Argument("fill_values", "float[]", [0.0], "What pixels outside of the input are, with out_of_bounds_policy=\"pad\": one value, or one for each channel."),
            Argument("image_type", "DALIImageType", None, "Colour space of the input.", deprecated=Deprecation("0.24", removed=True)),
            Argument("normalized_anchor", "bool", True, "The positional anchor is a fraction of the input's extent."),
            Argument("normalized_shape", "bool", True, "The positional shape is a fraction of the input's extent."),
            Argument("out_of_bounds_policy", "string", "error", "A window that reaches outside of the input: `error`, `pad` or `trim_to_shape`."),
            Argument("output_dtype", "DALIDataType", None, "Old name of `dtype`.", deprecated=Deprecation("0.24", renamed_to="dtype")),
            Argument("rel_end", "float[]", None, "End of the slice as a fraction of the input's extent.", tensor=True),
            Argument("rel_shape", "float[]", None, "Extents relative to those of the input's dimensions; negative: takes what is left.", tensor=True),
            Argument("rel_start", "float[]", None, "Start of the slice as a fraction of the input's extent.", tensor=True),
            Argument("shape", "int32[]", None, "Extents of the slice in samples.", tensor=True),
            Argument("start", "int32[]", None, "Start of the slice in samples.", tensor=True),
        ),
        volumetric=True,
    )

    def setup(self) -> None:
        check_policy(self.args["out_of_bounds_policy"])
        for names in (_STARTS, _ENDS):
            given = [name for name in names if self.given(name)]
            if len(given) > 1:
                raise RuntimeError(f"{' and '.join('`' + name + '`' for name in given)} cannot be given together")
        self._named = any(self.given(name) for name in _STARTS + _ENDS)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(workspace.inputs) == 2 and not any(self.given(name) for name in _ENDS):
            raise RuntimeError("`slice` takes its anchor and shape both as inputs, got only the anchor")
        if len(workspace.inputs) > 1 and self._named:
            raise RuntimeError("The box is given twice: by inputs and by arguments")
        if len(workspace.inputs) == 1 and not self._named:
            raise RuntimeError("`slice` needs a box: give anchor and shape as inputs, or arguments such as `start` and `end`")
        return [OutputSpec(window_type(self, batch.dtype), batch.layout(), batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = sample.shapes[0]
        layout = sample.workspace.inputs[0].layout()
        sizes_of = self._axes(sample, layout, len(shape))
        anchor, extents = [0] * len(shape), list(shape)
        count = self._count(sample)
        axes = sizes_of if sizes_of is not None else list(range(count))
        if count not in (len(axes), 1) and sizes_of is not None:
            raise RuntimeError(f"The box has {count} entries, but {len(axes)} axes are named")
        sizes = [shape[axis] for axis in axes[:count] if axis < len(shape)]
        if len(sizes) != count:
            raise RuntimeError(f"The box has {count} entries, but the data has {len(shape)} dimensions")
        starts, ends = self._bounds(sample, sizes)
        for axis, start, end in zip(axes, starts, ends):
            anchor[axis], extents[axis] = start, end - start
        for axis, extent in enumerate(extents):
            if extent < 0:
                raise RuntimeError(f"The slice has a negative extent in dimension {axis}: {extent}")
        region = apply_policy(Region(tuple(anchor), tuple(extents)), shape, self.args["out_of_bounds_policy"])
        sample.plan = region
        return region.extents

    def _axes(self, sample: Sample, layout: str, ndim: int) -> list[int] | None:
        """The dimensions that the box speaks of; None: the first ones, in order."""
        if sample.given("axes"):
            axes = sample["axes"]
            return resolve_axes(axes, None, layout, ndim) if axes else None
        names = self.args["axis_names"]
        if not layout and not sample.given("axis_names"):
            return resolve_axes(self.args["axes"], None, layout, ndim)
        if not names:
            return None
        return resolve_axes(None, names, layout, ndim)

    def _count(self, sample: Sample) -> int:
        if len(sample.shapes) > 1:
            return math.prod(sample.shapes[1])
        name = next(name for name in _STARTS + _ENDS if sample.given(name))
        return len(sample[name])

    def _bounds(self, sample: Sample, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
        if len(sample.shapes) == 3:
            anchor, shape = (_host(data).reshape(-1).astype(np.float64).tolist() for data in sample.inputs[1:])
            integral = [data.dtype.kind in "iu" for data in sample.inputs[1:]]
            if self.args["normalized_anchor"] and not integral[0]:
                anchor = [value * size for value, size in zip(anchor, sizes)]
            if self.args["normalized_shape"] and not integral[1]:
                shape = [value * size for value, size in zip(shape, sizes)]
            return _rounded(anchor), _rounded([a + s for a, s in zip(anchor, shape)])
        starts = self._starts(sample, sizes)
        return _rounded(starts), _rounded(self._ends(sample, sizes, starts))

    def _starts(self, sample: Sample, sizes: Sequence[int]) -> list[float]:
        if sample.given("rel_start"):
            return [value * size for value, size in zip(sample["rel_start"], sizes)]
        return [float(value) for value in sample["start"]] if sample.given("start") else [0.0] * len(sizes)

    def _ends(self, sample: Sample, sizes: Sequence[int], starts: Sequence[float]) -> list[float]:
        if sample.given("end"):
            return [float(value) for value in sample["end"]]
        if sample.given("rel_end"):
            return [value * size for value, size in zip(sample["rel_end"], sizes)]
        if sample.given("shape"):
            return [start + value for start, value in zip(starts, sample["shape"])]
        if sample.given("rel_shape"):
            return [start + value * size for start, value, size in zip(starts, sample["rel_shape"], sizes)]
        return [float(size) for size in sizes]

    def compute(self, sample: Sample) -> None:
        layout = sample.workspace.inputs[0].layout()
        channel_axis = layout.find("C") if layout else sample.inputs[0].ndim - 1
        copy_region(
            sample.inputs[0], sample.plan, self.args["fill_values"], channel_axis if channel_axis >= 0 else None, sample.outputs[0]
        )


def _host(data: object) -> np.ndarray:
    return data if isinstance(data, np.ndarray) else data.get()  # type: ignore[attr-defined]


def _rounded(values: Sequence[float]) -> list[int]:
    return [round_half_away(float(np.float32(value))) for value in values]
