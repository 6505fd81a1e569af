"""`erase`: boxes of each sample filled with a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import BOOL, FLOAT64, dtype_name, numpy_dtype
from penstock.kernels.axes import resolve_axes
from penstock.kernels.windows import cut_off
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.operator import Shape

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


_MIN_BYTES_COPIED_TOGETHER = 1 << 20
"""Smaller batches are copied sample by sample, which takes less time than preparing a copy of the whole batch."""


@dataclass(frozen=True)
class ErasePlan:
    """What to erase in one sample.

    Attributes:
        boxes: the boxes to erase, as slices of the data.
        fill: one value, or one for each channel.
        channel_axis: the dimension of channels; used only if there are several fill values.
    """

    boxes: tuple[tuple[slice, ...], ...]
    fill: tuple[Any, ...]
    channel_axis: int


@register_operator
class Erase(Operator[list[int], ErasePlan]):
    """Fills boxes of each sample with a value.

    A box spans ``anchor`` to ``anchor + shape``, both truncated to integers; parts outside the data are ignored.
    For several boxes, concatenate their anchors and their shapes.

    >>> images = fn.erase(images, anchor=[10.0, 20.0], shape=[30.0, 40.0], axis_names="HW")  # doctest: +SKIP
    """

    schema = Schema(
        name="Erase",
        inputs=(Input("input", doc="Data of any numeric type but float64, and of any shape."),),
        arguments=(
            Argument("anchor", "float[]", [], "Start of each box, in the order of the axes.", tensor=True, matrix=True),
            Argument("axes", "int32[]", [1, 0], "Indices of the boxes' dimensions."),
            Argument(
                "axis_names",
                "string",
                "HW",
                "Letters of the boxes' dimensions; by default all of the layout except C.",
                example="WH",
            ),
            Argument("centered_anchor", "bool", False, "Anchors are the centres of the boxes."),
            Argument(
                "fill_value",
                "float[]",
                [0.0],
                "The fill value: one, or one for each channel.",
                tensor=True,
                uniform=True,
            ),
            Argument("normalized", "bool", False, "Anchors and shapes are fractions of the input's extents."),
            Argument("normalized_anchor", "bool", False, "Anchors are fractions of the input's extents."),
            Argument("normalized_shape", "bool", False, "Shapes are fractions of the input's extents."),
            Argument(
                "shape", "float[]", [], "Extents of each box, in the order of the axes.", tensor=True, matrix=True
            ),
        ),
        volumetric=True,
        examples=(
            Example({"anchor": [3.0, 5.0], "shape": [6.0, 4.0]}),
            Example({"anchor": [3.0, 5.0], "shape": [6.0, 4.0], "axes": [0, 1]}),
            Example({"anchor": [0.1, 0.2], "shape": [0.5, 0.3], "normalized": True}),
            Example({"anchor": [0.1, 0.2], "shape": [6.0, 4.0], "normalized_anchor": True}),
            Example({"anchor": [3.0, 5.0], "shape": [0.5, 0.3], "normalized_shape": True}),
        ),
        shown=(
            on_photo(
                anchor=[40.0, 60.0, 90.0, 150.0], shape=[50.0, 60.0, 40.0, 60.0], axis_names="HW", fill_value=[255.0]
            ),
        ),
        equivalents=(
            Equivalent("torchvision.transforms.v2.functional.erase", "One box."),
            Equivalent("torchvision.transforms.v2.RandomErasing", "It draws the box itself."),
        ),
    )

    plans_by_shape = True

    def setup(self) -> None:
        if self.given("normalized") and (self.given("normalized_anchor") or self.given("normalized_shape")):
            raise RuntimeError("`normalized` cannot be given together with `normalized_anchor` or `normalized_shape`")

    def describe(self, workspace: Workspace[list[int], ErasePlan]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype in (FLOAT64, BOOL):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        workspace.state = self._axes(batch.layout(), batch.ndim())
        return [OutputSpec(batch.dtype, batch.layout(), batch.ndim())]

    def _axes(self, layout: str, ndim: int) -> list[int]:
        if self.given("axis_names"):
            axes = resolve_axes(None, self.args["axis_names"], layout, ndim, repeated=True)
        elif self.given("axes"):
            axes = resolve_axes(self.args["axes"], None, layout, ndim, repeated=True)
        else:
            axes = [axis for axis, letter in enumerate(layout) if letter != "C"]
        if not axes:
            raise RuntimeError("There are no dimensions to erase boxes in: give `axes`, or data with a layout")
        return axes

    def infer(self, sample: Sample[list[int], ErasePlan]) -> tuple[int, ...]:
        shape, axes = sample.shapes[0], sample.workspace.state
        boxes = tuple(self._box(shape, axes, *box) for box in self._boxes(sample, len(axes)))
        batch = sample.workspace.inputs[0]
        fill, channel_axis = sample["fill_value"], batch.layout().find("C")
        if len(fill) > 1 and (channel_axis < 0 or len(fill) != shape[channel_axis]):
            raise RuntimeError(f"`fill_value` has {len(fill)} entries, which is not the number of channels")
        sample.plan = ErasePlan(boxes, _as_type(fill, numpy_dtype(batch.dtype)), channel_axis)
        return shape

    def _boxes(self, sample: Sample[list[int], ErasePlan], count: int) -> list[tuple[Sequence[float], Sequence[float]]]:
        """Return the anchor and the shape of each box."""
        extents = sample["shape"]
        anchors = sample["anchor"] if sample.given("anchor") else [0.0] * len(extents)
        if len(anchors) != len(extents):
            raise RuntimeError(f"`anchor` has {len(anchors)} entries, but `shape` has {len(extents)}")
        if len(extents) % count:
            raise RuntimeError(f"`shape` has {len(extents)} entries, which is not a multiple of the {count} axes")
        starts = range(0, len(extents), count)
        return [(anchors[start : start + count], extents[start : start + count]) for start in starts]

    def _box(
        self, shape: Sequence[int], axes: Sequence[int], anchor: Sequence[float], extents: Sequence[float]
    ) -> tuple[slice, ...]:
        relative_anchor = self.args["normalized"] or self.args["normalized_anchor"]
        relative_shape = self.args["normalized"] or self.args["normalized_shape"]
        box = [slice(None)] * len(shape)
        # If an axis is named twice, its last values count.
        for axis, start, extent in zip(axes, np.array(anchor, np.float32), np.array(extents, np.float32)):
            # Round each step to single precision: the rounding decides to which integer an edge is truncated.
            whole = np.float32(shape[axis])
            extent = extent * whole if relative_shape else extent
            start = start * whole if relative_anchor else start
            start = start - extent / np.float32(2) if self.args["centered_anchor"] else start
            first, last = int(start), int(start + extent)
            box[axis] = slice(min(max(first, 0), shape[axis]), min(max(last, 0), shape[axis]))
        return tuple(box)

    def compute_samples(self, workspace: Workspace[list[int], ErasePlan], shapes: Sequence[Shape]) -> None:
        from penstock.kernels.cpu.blocks import copy_samples

        output = workspace.outputs[0]
        is_large = not workspace.failures and output.contiguous_elements().nbytes >= _MIN_BYTES_COPIED_TOGETHER
        if not is_large or not copy_samples(workspace, workspace.inputs[0], output):
            super().compute_samples(workspace, shapes)
            return
        for sample in workspace.live:
            _fill_boxes(sample.plan, sample.outputs[0])

    def compute(self, sample: Sample[list[int], ErasePlan]) -> None:
        target = sample.outputs[0]
        target[...] = sample.inputs[0]
        _fill_boxes(sample.plan, target)

    def compute_batch(self, workspace: Workspace[list[int], ErasePlan]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped, copy_windows

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        copy_grouped(sources, targets, [None] * len(samples), lambda _, source, target: WindowCopy(source, target))
        copy_windows([erased for sample, target in zip(samples, targets) for erased in _erased(sample.plan, target)])


def _erased(plan: ErasePlan, target: Located) -> Iterator[WindowCopy]:
    """Yield copies that fill the boxes of one sample on the GPU; their order does not matter, as all boxes get the same values."""
    from penstock.kernels.cuda.window import blank

    if target.dtype.kind == "u":
        # The kernel gets fill values as float32. A negative value that wrapped around to a large unsigned integer would be rounded;
        # as a signed integer with the same bits, it is small enough to be exact.
        target = replace(target, dtype=np.dtype(f"i{target.dtype.itemsize}"))
    for box in plan.boxes:
        several = len(plan.fill) > 1
        yield blank(
            target,
            fill=np.array(plan.fill[box[plan.channel_axis]] if several else plan.fill).astype(target.dtype),
            channel_axis=plan.channel_axis if several else None,
            place=[part.indices(extent)[0] for part, extent in zip(box, target.shape)],
            extents=[len(range(*part.indices(extent))) for part, extent in zip(box, target.shape)],
        )


def _as_type(fill: Sequence[float], dtype: np.dtype) -> tuple[object, ...]:
    """Convert values to a type; for integers, truncate them and keep the lowest bits."""
    return tuple(cut_off(fill, dtype))


def _fill_boxes(plan: ErasePlan, target: np.ndarray) -> None:
    for box in plan.boxes:
        if len(plan.fill) == 1:
            target[box] = plan.fill[0]
            continue
        before, after = box[: plan.channel_axis], box[plan.channel_axis + 1 :]
        for channel in range(*box[plan.channel_axis].indices(target.shape[plan.channel_axis])):
            place: tuple[Any, ...] = (*before, channel, *after)
            target[place] = plan.fill[channel]
