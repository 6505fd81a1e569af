"""`multi_paste`: images composed of regions of others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import FLOAT, INT16, INT32, UINT8, dtype_name
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

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy

_MAX_INPUTS = 64
_EXCLUSIVE_PAIRS = (("in_anchors", "in_anchors_rel"), ("shapes", "shapes_rel"), ("out_anchors", "out_anchors_rel"))
_SUPPORTED = (UINT8, INT16, INT32, FLOAT)


@dataclass(slots=True)
class PastedRegion:
    """A region of a sample, and where it goes.

    Attributes:
        input, index: the sample to take it from.
        anchor, extents: (y, x) and (height, width) of the region.
        place: its (y, x) in the output.
    """

    input: int
    index: int
    anchor: tuple[int, int]
    extents: tuple[int, int]
    place: tuple[int, int]

    def overlaps(self, other: PastedRegion) -> bool:
        """Whether the two share a pixel of the output."""
        return all(
            max(own, others) < min(own + extent, others + others_extent)
            for own, extent, others, others_extent in zip(self.place, self.extents, other.place, other.extents)
        )


@register_operator
class MultiPaste(Operator[None, list[PastedRegion]]):
    """Composes each output from regions of the inputs, pasted over each other on a background of zeros.

    With one input and ``in_ids``, the regions come from the samples of that batch that ``in_ids`` selects; otherwise
    there is one region from the same sample of each input. The other arguments have a row (y, x) for each region.

    >>> mosaics = fn.multi_paste(images, in_ids=ids, output_size=(300, 300), out_anchors=anchors)  # doctest: +SKIP
    """

    schema = Schema(
        name="MultiPaste",
        inputs=(Input("input", ("HWC", "FHWC"), doc="Images of uint8, int16, int32 or float."),),
        variadic=True,
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument(
                "in_anchors",
                "int32",
                None,
                "Start of each region in its input: (n, 2).",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=np.array([[2, 3]]),
            ),
            Argument(
                "in_anchors_rel",
                "float",
                None,
                "Start of each region, in fractions of its input's extents: (n, 2).",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=np.array([[0.1, 0.2]]),
            ),
            Argument("in_ids", "int32[]", None, "Indices in the batch of the samples to paste: (n,).", tensor=True),
            Argument(
                "out_anchors",
                "int32",
                None,
                "Start of each region in the output: (n, 2).",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=np.array([[4, 1]]),
            ),
            Argument(
                "out_anchors_rel",
                "float",
                None,
                "Start of each region, in fractions of the output's extents: (n, 2).",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=np.array([[0.1, 0.2]]),
            ),
            Argument("output_size", "int32[]", None, "(height, width); by default that of the inputs.", tensor=True),
            Argument(
                "shapes",
                "int32",
                None,
                "Extents of the regions: (n, 2); by default up to the end of the input.",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=np.array([[5, 6]]),
            ),
            Argument(
                "shapes_rel",
                "float",
                None,
                "Extents of the regions, in fractions of their inputs' extents: (n, 2).",
                tensor=True,
                matrix=True,
                per_frame=True,
                example=np.array([[0.4, 0.5]]),
            ),
        ),
        sequences=True,
        examples=(
            Example(),
            Example({"in_ids": [0, 2, 1], "output_size": [30, 40]}),
            Example({"shapes": np.array([[5, 6]]), "out_anchors": np.array([[4, 1]])}),
            Example({"shapes_rel": np.array([[0.4, 0.5]]), "out_anchors_rel": np.array([[0.1, 0.2]])}),
        ),
        batchwise=True,
        shown=(
            on_photo(
                "Four regions of two images",
                in_ids=[0, 1, 1, 0],
                output_size=[160, 240],
                in_anchors=np.array([[0, 0], [0, 120], [80, 0], [80, 120]]),
                shapes=np.array([[80, 120]] * 4),
                out_anchors=np.array([[0, 0], [0, 120], [80, 0], [80, 120]]),
            ),
        ),
        equivalents=(Equivalent("PIL.Image.Image.paste", "One region at a time."),),
    )

    def setup(self) -> None:
        for one, other in _EXCLUSIVE_PAIRS:
            if self.given(one) and self.given(other):
                raise RuntimeError(f"`{one}` and `{other}` cannot be given together")

    def run(self, workspace: Workspace[None, list[PastedRegion]]) -> None:
        super().run(workspace)
        infos = [batch.source_infos for batch in workspace.inputs]
        if not any(infos):
            return
        pasted = {
            sample.index: [infos[region.input][region.index] for region in sample.plan if infos[region.input]]
            for sample in workspace.live
        }
        count = len(workspace.outputs[0])
        workspace.outputs[0].source_infos = [";".join(filter(None, pasted.get(index, ()))) for index in range(count)]

    def describe(self, workspace: Workspace[None, list[PastedRegion]]) -> list[OutputSpec]:
        count = len(workspace.inputs)
        if count > _MAX_INPUTS:
            raise RuntimeError(f"At most {_MAX_INPUTS} inputs can be pasted, got {count}")
        if self.given("in_ids") and count != 1:
            raise RuntimeError(
                "If the `in_ids` is specified, the operator accepts exactly one positional input batch. "
                f"Got: {count} inputs."
            )
        layout, dtype = self.input_layout(workspace), workspace.inputs[0].dtype
        if any(batch.dtype != dtype for batch in workspace.inputs):
            raise RuntimeError("All input batches must have the same data type")
        if not workspace.isolate and not self.given("output_size"):
            # Samples of several requests may differ; of those, only what is pasted together is compared.
            _check_alike(shape[:2] for batch in workspace.inputs for shape in batch.shapes)
        output = dtype if self.args["dtype"] is None else self.args["dtype"]
        for kind in (dtype, output):
            if kind not in _SUPPORTED:
                raise RuntimeError(f"Unsupported type: {dtype_name(kind)}. Supported are: uint8, int16, int32, float")
        return [OutputSpec(output, layout, 3)]

    def infer(self, sample: Sample[None, list[PastedRegion]]) -> tuple[int, ...]:
        sources = self._sources(sample)
        shapes = [sample.workspace.inputs[number].shapes[index] for number, index in sources]
        channels = {shape[2] for shape in shapes} or {sample.shapes[0][2]}
        if len(channels) > 1:
            raise RuntimeError(
                "All regions pasted into given output sample must have the same number of channels. "
                f"Got different numbers of channels: {sorted(channels)}"
            )
        size = self._output_size(sample, [shape[:2] for shape in shapes])
        anchors = self._pairs(sample, "in_anchors", [shape[:2] for shape in shapes])
        places = self._pairs(sample, "out_anchors", [size] * len(sources))
        extents = self._extents(sample, shapes, anchors)
        sample.plan = [
            PastedRegion(*source, anchor, extent, place)
            for source, anchor, extent, place in zip(sources, anchors, extents, places)
        ]
        for region, shape in zip(sample.plan, shapes):
            _check_inside("input", region.anchor, region.extents, shape)
            _check_inside("output", region.place, region.extents, size)
        return (*size, channels.pop())

    @staticmethod
    def _sources(sample: Sample[None, list[PastedRegion]]) -> list[tuple[int, int]]:
        """For each region, its input and its index in that batch."""
        workspace = sample.workspace
        if not sample.given("in_ids"):
            return [(number, sample.index) for number in range(len(workspace.inputs))]
        owners = workspace.owners
        count = workspace.batch_size if owners is None else owners[-1] + 1
        for index in sample["in_ids"]:
            if not 0 <= index < count:
                raise RuntimeError(
                    f"The `in_idx` must be in range [0, .., batch_size - 1]. Got in_idx: {index}. Input batch size is: {count}."
                )
        if owners is None:
            return [(0, index) for index in sample["in_ids"]]
        # Frames are pasted into the frames with the same index.
        time = sample.index - owners.index(owners[sample.index])
        for index in sample["in_ids"]:
            if owners.count(index) <= time:
                raise RuntimeError(f"Sequence #{index} has no frame {time} to be pasted")
        return [(0, owners.index(index) + time) for index in sample["in_ids"]]

    @staticmethod
    def _output_size(sample: Sample[None, list[PastedRegion]], shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        if sample.given("output_size"):
            size = sample["output_size"]
            if len(size) < 2:
                raise RuntimeError(f"`output_size` must be (height, width), got {size}")
            return size[0], size[1]
        _check_alike(shapes)
        height, width = shapes[0] if shapes else sample.shapes[0][:2]
        return height, width

    @staticmethod
    def _pairs(
        sample: Sample[None, list[PastedRegion]], name: str, relative_to: Sequence[Sequence[int]]
    ) -> list[tuple[int, int]]:
        """Positions (y, x), absolute or as fractions of ``relative_to``; 0 if not given."""
        absolute, relative = _rows(sample, name, len(relative_to)), _rows(sample, name + "_rel", len(relative_to))
        if absolute is not None:
            return _whole_pairs(absolute)
        if relative is None:
            return [(0, 0)] * len(relative_to)
        scaled = relative * np.asarray(relative_to, np.float32).reshape(-1, 2)
        return _whole_pairs(scaled)

    @staticmethod
    def _extents(
        sample: Sample[None, list[PastedRegion]], shapes: Sequence[Sequence[int]], anchors: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        absolute, relative = _rows(sample, "shapes", len(shapes)), _rows(sample, "shapes_rel", len(shapes))
        if absolute is not None:
            return _whole_pairs(absolute)
        if relative is None:
            return [(shape[0] - y, shape[1] - x) for shape, (y, x) in zip(shapes, anchors)]
        scaled = relative * np.asarray([shape[:2] for shape in shapes], np.float32).reshape(-1, 2)
        return [(math.ceil(h), math.ceil(w)) for h, w in scaled.tolist()]

    def compute(self, sample: Sample[None, list[PastedRegion]]) -> None:
        from penstock.kernels.cpu.convert import cast

        target = sample.outputs[0]
        target[...] = 0
        for region in sample.plan:
            (top, left), (y, x), (height, width) = region.place, region.anchor, region.extents
            source = sample.workspace.inputs[region.input].samples[region.index]
            part = source[y : y + height, x : x + width]
            if part.dtype != target.dtype:
                converted = np.empty(part.shape, target.dtype)
                cast(np.ascontiguousarray(part), converted)
                part = converted
            target[top : top + height, left : left + width] = part

    def compute_batch(self, workspace: Workspace[None, list[PastedRegion]]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, blank, copy_windows

        samples = workspace.live
        sources: dict[int, Located] = {}
        for number, batch in enumerate(workspace.inputs):
            own = [region for sample in samples for region in sample.plan if region.input == number]
            sources |= zip(map(id, own), locate_all(batch, own))
        targets = locate_all(workspace.outputs[0], samples)
        copy_windows([blank(target) for target in targets])
        layers: list[list[WindowCopy]] = []
        for sample, target in zip(samples, targets):
            for region, layer in zip(sample.plan, _layers(sample.plan)):
                copy = WindowCopy(
                    sources[id(region)],
                    target,
                    anchor=(*region.anchor, 0),
                    place=(*region.place, 0),
                    extents=(*region.extents, target.shape[2]),
                )
                layers += [[]] if layer == len(layers) else []
                layers[layer].append(copy)
        for copies in layers:
            copy_windows(copies)


def _layers(regions: Sequence[PastedRegion]) -> list[int]:
    """The layer of each region: above all earlier regions that it overlaps. Regions of one layer don't overlap."""
    layers: list[int] = []
    for number, region in enumerate(regions):
        below = [layer for other, layer in zip(regions[:number], layers) if region.overlaps(other)]
        layers.append(max(below, default=-1) + 1)
    return layers


def _check_alike(shapes: Iterable[tuple[int, ...]]) -> None:
    """Raises RuntimeError unless heights and widths, which give the output's, are the same."""
    different = sorted(set(shapes))
    if len(different) > 1:
        raise RuntimeError(
            "If the `output_size` is not specified, all the input samples must have the same shape. "
            f"Got samples of different shapes: {different}"
        )


def _rows(sample: Sample[None, list[PastedRegion]], name: str, count: int) -> np.ndarray | None:
    """An argument's (y, x) for each region; None if it isn't given."""
    if not sample.given(name):
        return None
    rows = sample.tensor_argument(name)
    if rows is None or rows.shape != (count, 2):
        found = "a constant" if rows is None else f"a tensor of shape {rows.shape}"
        raise RuntimeError(f"`{name}` must be a tensor of shape ({count}, 2), got {found}")
    return rows


def _whole_pairs(rows: np.ndarray) -> list[tuple[int, int]]:
    """Rows of two numbers as whole ones, cut off towards 0."""
    return [(y, x) for y, x in rows.astype(np.int64).tolist()]


def _check_inside(where: str, anchor: tuple[int, int], extents: tuple[int, int], bounds: Sequence[int]) -> None:
    (top, left), (height, width) = anchor, extents
    if min(top, left, height, width) < 0 or top + height > bounds[0] or left + width > bounds[1]:
        raise RuntimeError(
            f"The pasted region must be within the {where}'s bounds. Got {where} anchor: {anchor}, pasted region shape: "
            f"{extents}, {where} shape: {bounds[0]} x {bounds[1]}"
        )
