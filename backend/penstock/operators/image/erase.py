"""`erase`: boxes of each sample filled with a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core.arrays import address
from penstock.data_types import BOOL, FLOAT64, dtype_name, numpy_dtype
from penstock.kernels.axes import resolve_axes
from penstock.kernels.windows import cut_off
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    PlanColumns,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.operator import Shape
from penstock.tensors.places import places_of_samples

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy


@dataclass(frozen=True)
class ErasePlan:
    """The work for one sample.

    Attributes:
        boxes: the boxes to erase, as slices of the data.
        fill: one value, or one for each channel.
        channel_axis: the dimension of channels, if there are several values.
    """

    boxes: tuple[tuple[slice, ...], ...]
    fill: tuple[Any, ...]
    channel_axis: int


@dataclass(eq=False)
class ErasePlans(PlanColumns[ErasePlan]):
    """The work for many samples.

    Attributes:
        boxes: for each sample, the first positions of its boxes and those after the last, int64 of shape (boxes, dimensions, 2).
        fill: the values in the type of the data, of shape (samples, values).
        channel_axis: the dimension of channels.
    """

    boxes: list[np.ndarray]
    fill: np.ndarray
    channel_axis: int

    def __len__(self) -> int:
        return len(self.boxes)

    def row(self, number: int) -> ErasePlan:
        boxes = tuple(tuple(slice(*edges) for edges in box) for box in self.boxes[number].tolist())
        return ErasePlan(boxes, tuple(self.fill[number]), self.channel_axis)


@register_operator
class Erase(Operator[list[int], ErasePlan, ErasePlans]):
    """Fills boxes of each sample with a value.

    A box spans ``anchor`` to ``anchor + shape``, both truncated to integers; parts outside the data are ignored.
    Concatenate the values of several boxes.

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

    described_by_kind = True

    def setup(self) -> None:
        if self.given("normalized") and (self.given("normalized_anchor") or self.given("normalized_shape")):
            raise RuntimeError("`normalized` cannot be given together with `normalized_anchor` or `normalized_shape`")

    def describe(self, workspace: Workspace[list[int], ErasePlan, ErasePlans]) -> list[OutputSpec]:
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

    def infer_batch(self, samples: Samples[list[int], ErasePlan, ErasePlans]) -> tuple[np.ndarray, ErasePlans]:
        shapes, batch = samples.shapes(), samples.workspace.inputs[0]
        fill, channel_axis = samples.values("fill_value"), batch.layout().find("C")
        values = fill.shape[1]
        if values > 1 and (channel_axis < 0 or (shapes[:, channel_axis] != values).any()):
            raise RuntimeError(f"`fill_value` has {values} entries, which is not the number of channels")
        # Truncated to integers, whose lowest bits remain.
        rows = np.broadcast_to(cut_off(fill, numpy_dtype(batch.dtype)), (len(samples), values))
        return shapes, ErasePlans(list(self._boxes(samples, shapes)), rows, channel_axis)

    def _boxes(self, samples: Samples[list[int], ErasePlan, ErasePlans], shapes: np.ndarray) -> np.ndarray:
        """Return where boxes begin and end, int64 of shape (samples, boxes, dimensions, 2)."""
        axes, extents = samples.state, samples.values("shape")
        anchors = samples.values("anchor") if samples.given("anchor") else np.zeros((1, extents.shape[1]))
        if anchors.shape[1] != extents.shape[1]:
            raise RuntimeError(f"`anchor` has {anchors.shape[1]} entries, but `shape` has {extents.shape[1]}")
        if extents.shape[1] % len(axes):
            raise RuntimeError(
                f"`shape` has {extents.shape[1]} entries, which is not a multiple of the {len(axes)} axes"
            )
        count, ndim = shapes.shape
        boxes = np.zeros((count, extents.shape[1] // len(axes), ndim, 2), np.int64)
        boxes[..., 1] = shapes[:, None, :]
        # If an axis is named twice, the last one counts.
        for position, axis in enumerate(axes):
            starts, lengths = (values[:, position :: len(axes)].astype(np.float32) for values in (anchors, extents))
            boxes[:, :, axis] = self._edges(starts, lengths, shapes[:, axis])
        return boxes

    def _edges(self, start: np.ndarray, extent: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return where boxes begin and end along an axis, within the samples: int64 of shape (samples, boxes, 2).

        Args:
            start, extent: float32 of shape (samples, boxes), or a row for all samples.
            whole: the samples' extents.
        """
        relative_anchor = self.args["normalized"] or self.args["normalized_anchor"]
        relative_shape = self.args["normalized"] or self.args["normalized_shape"]
        limits = whole.astype(np.float32)[:, None]
        # In single precision, step by step: on which side of an integer an edge is depends on it.
        with np.errstate(all="ignore"):
            extent = extent * limits if relative_shape else extent
            start = start * limits if relative_anchor else start
            start = start - extent / np.float32(2) if self.args["centered_anchor"] else start
            edges = np.stack(np.broadcast_arrays(start, start + extent, limits)[:2], axis=-1).astype(np.float64)
        for undefined in edges[~np.isfinite(edges)]:
            int(undefined)  # raises an error that names it
        cut: np.ndarray = np.trunc(edges).clip(0, whole[:, None, None]).astype(np.int64)
        return cut

    def compute_samples(self, workspace: Workspace[list[int], ErasePlan, ErasePlans], shapes: Sequence[Shape]) -> None:
        if not _erase_together(workspace):
            super().compute_samples(workspace, shapes)

    def compute(self, sample: Sample[list[int], ErasePlan]) -> None:
        _erase(sample.inputs[0], sample.plan, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[list[int], ErasePlan, ErasePlans]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_grouped, copy_windows

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        copy_grouped(sources, targets, [None] * len(samples), lambda _, source, target: WindowCopy(source, target))
        copy_windows([erased for sample, target in zip(samples, targets) for erased in _erased(sample.plan, target)])


def _erased(plan: ErasePlan, target: Located) -> Iterator[WindowCopy]:
    """Fill the boxes of one sample on the GPU. Overlapping boxes get the same values, so their order doesn't matter."""
    from penstock.kernels.cuda.window import blank

    if target.dtype.kind == "u":
        # The kernel's fill values are float32, and integers keep their lowest bits. As signed integers they convert
        # back exactly; unsigned values that wrapped around from below zero would not.
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


def _erase_together(workspace: Workspace[list[int], ErasePlan, ErasePlans]) -> bool:
    """Copy all samples, and fill their boxes row by row from a filled row, if channels come last and boxes have all of them; return
    whether they do.
    """
    from penstock.kernels.cpu.blocks import Blocks, copy_blocks, copy_samples

    output, plans = workspace.outputs[0], workspace.plans
    if workspace.failures or not workspace.batch_size or output.ndim() != 3:
        return False
    owners = np.repeat(np.arange(len(plans)), [len(boxes) for boxes in plans.boxes])
    values = plans.fill.shape[1]
    if not len(owners) or not values:
        return False
    edges, shapes = np.concatenate(plans.boxes), output.shape_array()
    first, extents = edges[..., 0], (edges[..., 1] - edges[..., 0]).clip(0)
    targets, channels = places_of_samples(output), shapes[owners, 2]
    if targets is None or (extents[:, 2] != channels).any() or (values > 1 and plans.channel_axis != 2):
        return False
    if not copy_samples(workspace, workspace.inputs[0], output):
        return False
    itemsize = plans.fill.itemsize
    pixel, longest = channels * itemsize, int((extents[:, 1] * channels).max())
    filled = np.tile(plans.fill, (1, -(-longest // values)))
    blocks = Blocks(
        address(filled) + owners * filled.strides[0],
        targets[owners] + (first[:, 0] * shapes[owners, 1] + first[:, 1]) * pixel,
        0,
        shapes[owners, 1] * pixel,
        extents[:, 0],
        extents[:, 1] * pixel,
    )
    # Overlapping boxes of a sample get the same values: their order does not matter.
    copy_blocks(workspace, blocks, read_next=True)
    return True


def _erase(source: np.ndarray, plan: ErasePlan, target: np.ndarray) -> None:
    target[...] = source
    for box in plan.boxes:
        if len(plan.fill) == 1:
            target[box] = plan.fill[0]
            continue
        before, after = box[: plan.channel_axis], box[plan.channel_axis + 1 :]
        for channel in range(*box[plan.channel_axis].indices(target.shape[plan.channel_axis])):
            place: tuple[Any, ...] = (*before, channel, *after)
            target[place] = plan.fill[channel]
