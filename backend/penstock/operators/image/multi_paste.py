"""`multi_paste`: images composed of regions of other images."""

from __future__ import annotations

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

_EXCLUSIVE_PAIRS = (("in_anchors", "in_anchors_rel"), ("shapes", "shapes_rel"), ("out_anchors", "out_anchors_rel"))
_SUPPORTED = (UINT8, INT16, INT32, FLOAT)


@dataclass(slots=True)
class PastedRegion:
    """A region of a sample, and its position in the output.

    Attributes:
        input, index: the number of the input, and the index of the sample in its batch, that the region is cut from.
        anchor, extents: (y, x) and (height, width) of the region in that sample.
        place: (y, x) of the region in the output.
    """

    input: int
    index: int
    anchor: tuple[int, int]
    extents: tuple[int, int]
    place: tuple[int, int]

    def overlaps(self, other: PastedRegion) -> bool:
        """Return whether both regions cover a common pixel of the output."""
        return all(
            max(own, others) < min(own + extent, others + others_extent)
            for own, extent, others, others_extent in zip(self.place, self.extents, other.place, other.extents)
        )


@dataclass(eq=False)
class PastedRegions(PlanColumns[list[PastedRegion]]):
    """The regions of many samples.

    Attributes:
        counts: the number of each sample's regions.
        inputs, indices, anchors, extents, places: as in :class:`PastedRegion`, for the regions of all samples in order.
        widths: the widths of the regions' sources.
    """

    counts: np.ndarray
    inputs: np.ndarray
    indices: np.ndarray
    widths: np.ndarray
    anchors: np.ndarray
    extents: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def row(self, number: int) -> list[PastedRegion]:
        first = int(self.counts[:number].sum())
        own = slice(first, first + int(self.counts[number]))
        pairs = ([(y, x) for y, x in column[own].tolist()] for column in (self.anchors, self.extents, self.places))
        return list(map(PastedRegion, self.inputs[own].tolist(), self.indices[own].tolist(), *pairs))


@register_operator
class MultiPaste(Operator[None, list[PastedRegion], PastedRegions]):
    """Composes each output from regions of the inputs, pasted over each other on a background of zeros.

    With one input and ``in_ids``, the regions come from the samples of that batch that ``in_ids`` selects; otherwise
    there is one region from the same sample of each input. Anchors and shapes have a row (y, x) for each region.

    >>> mosaics = fn.multi_paste(images, in_ids=ids, output_size=(300, 300), out_anchors=anchors)  # doctest: +SKIP
    """

    schema = Schema(
        name="MultiPaste",
        inputs=(Input("input_0", ("HWC", "FHWC"), doc="Images of uint8, int16, int32 or float."),),
        variadic=True,
        max_inputs=64,
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
            Argument(
                "output_size",
                "int32[]",
                None,
                "(height, width); by default that of the inputs.",
                tensor=True,
                uniform=True,
            ),
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

    def run(self, workspace: Workspace[None, list[PastedRegion], PastedRegions]) -> None:
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

    def describe(self, workspace: Workspace[None, list[PastedRegion], PastedRegions]) -> list[OutputSpec]:
        count = len(workspace.inputs)
        if self.given("in_ids") and count != 1:
            raise RuntimeError(
                "If the `in_ids` is specified, the operator accepts exactly one positional input batch. "
                f"Got: {count} inputs."
            )
        layout, dtype = self.input_layout(workspace), workspace.inputs[0].dtype
        if any(batch.dtype != dtype for batch in workspace.inputs):
            raise RuntimeError("All input batches must have the same data type")
        if not workspace.isolate and not self.given("output_size"):
            # If failures are isolated, samples may belong to different requests, and differ in shape. Then, only samples that are
            # pasted together are compared, in `_output_sizes`.
            _check_alike(shape[:2] for batch in workspace.inputs for shape in batch.shapes)
        output = dtype if self.args["dtype"] is None else self.args["dtype"]
        for kind in (dtype, output):
            if kind not in _SUPPORTED:
                raise RuntimeError(f"Unsupported type: {dtype_name(kind)}. Supported are: uint8, int16, int32, float")
        return [OutputSpec(output, layout, 3)]

    def infer_batch(
        self, samples: Samples[None, list[PastedRegion], PastedRegions]
    ) -> tuple[np.ndarray, PastedRegions]:
        counts, inputs, indices = self._sources(samples)
        owners = np.repeat(np.arange(len(counts)), counts)
        shapes = np.stack([batch.shape_array() for batch in samples.workspace.inputs])[inputs, indices]
        # A sample without regions has the shape of its input.
        firsts, some = samples.shapes(), counts > 0
        firsts[some] = shapes[(counts.cumsum() - counts)[some]]
        if (shapes[:, 2] != firsts[owners, 2]).any():
            raise RuntimeError(
                "All regions pasted into given output sample must have the same number of channels. "
                f"Got different numbers of channels: {sorted(set(shapes[:, 2].tolist()))}"
            )
        sizes = self._output_sizes(samples, shapes, firsts[owners], firsts)
        bounds = sizes[owners]
        anchors = _pairs(samples, "in_anchors", counts, shapes[:, :2])
        places = _pairs(samples, "out_anchors", counts, bounds)
        extents = _extents(samples, counts, shapes[:, :2], anchors)
        plans = PastedRegions(counts, inputs, indices, shapes[:, 1].copy(), anchors, extents, places)
        _check_inside("input", anchors, extents, shapes)
        _check_inside("output", places, extents, bounds)
        return np.column_stack([sizes, firsts[:, 2]]), plans

    @staticmethod
    def _sources(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each sample's number of regions and, for each region, the numbers of the input and the sample it is cut from."""
        workspace, owners = samples.workspace, samples.workspace.owners
        if not samples.given("in_ids"):
            input_count = len(workspace.inputs)
            inputs = np.tile(np.arange(input_count), len(samples))
            return (
                np.full(len(samples), input_count),
                inputs,
                np.repeat(np.array(samples.indices, np.int64), input_count),
            )
        if "in_ids" in workspace.arguments:
            ids = [np.array(own, np.int64).reshape(-1) for own in samples.lists("in_ids")]
        else:
            ids = [np.array(samples.constant("in_ids"), np.int64).reshape(-1)] * len(samples)
        counts, chosen = np.array(list(map(len, ids))), np.concatenate(ids)
        size = workspace.batch_size if owners is None else owners[-1] + 1
        for index in chosen[(chosen < 0) | (chosen >= size)].tolist():
            raise RuntimeError(
                f"The `in_idx` must be in range [0, .., batch_size - 1]. Got in_idx: {index}. Input batch size is: {size}."
            )
        if owners is not None:
            chosen = np.concatenate([_frames_of(owners, at, own) for at, own in zip(samples.indices, ids)])
        return counts, np.zeros(len(chosen), np.int64), chosen

    @staticmethod
    def _output_sizes(samples: Samples, shapes: np.ndarray, firsts: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the height and width of each output.

        Args:
            shapes: the shapes of each region's source.
            firsts: for each region, the source shape of its sample's first region.
            own: the source shape of each sample's first region.
        """
        if samples.given("output_size"):
            sizes = samples.values("output_size").astype(np.int64)
            if sizes.shape[1] < 2:
                raise RuntimeError(f"`output_size` must be (height, width), got {sizes[0].tolist()}")
            return np.broadcast_to(sizes[:, :2], (len(samples), 2))
        if (shapes[:, :2] != firsts[:, :2]).any():
            _check_alike(map(tuple, shapes[:, :2].tolist()))
        return own[:, :2]

    def compute_samples(
        self, workspace: Workspace[None, list[PastedRegion], PastedRegions], shapes: Sequence[Shape]
    ) -> None:
        if not self._copy_regions(workspace):
            super().compute_samples(workspace, shapes)

    @staticmethod
    def _copy_regions(workspace: Workspace[None, list[PastedRegion], PastedRegions]) -> bool:
        """Copy the regions of all samples in one call, if none has to be converted."""
        from penstock.kernels.cpu.blocks import Blocks, copy_table
        from penstock.operators.image._multi_paste_cpu import fill_blocks

        output = workspace.outputs[0]
        if workspace.failures or not workspace.batch_size or output.dtype != workspace.inputs[0].dtype:
            return False
        found, targets = [places_of_samples(batch) for batch in workspace.inputs], places_of_samples(output)
        sources = [places for places in found if places is not None]
        if len(sources) < len(found) or targets is None:
            return False
        plans, elements = workspace.plans, output.contiguous_elements()
        table = np.empty((len(plans.inputs), len(Blocks._fields)), np.int64)
        covered = fill_blocks(
            plans.counts,
            np.stack(sources)[plans.inputs, plans.indices],
            plans.widths,
            plans.anchors,
            plans.extents,
            plans.places,
            targets,
            output.shape_array(),
            elements.itemsize,
            table,
        )
        if not covered:
            elements.fill(0)
        # A sample's regions may overlap: they are copied in order.
        regions = int(plans.counts[0])
        copy_table(workspace, table, regions if plans.counts.min() == plans.counts.max() else len(table))
        return True

    def compute(self, sample: Sample[None, list[PastedRegion], PastedRegions]) -> None:
        from penstock.kernels.cpu.casting import cast

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

    def compute_batch(self, workspace: Workspace[None, list[PastedRegion], PastedRegions]) -> None:
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
    """Return the layer of each region, above those of all earlier regions that it overlaps; regions of one layer don't overlap."""
    layers: list[int] = []
    for number, region in enumerate(regions):
        below = [layer for other, layer in zip(regions[:number], layers) if region.overlaps(other)]
        layers.append(max(below, default=-1) + 1)
    return layers


def _check_alike(shapes: Iterable[tuple[int, ...]]) -> None:
    """Raise RuntimeError unless all samples have the same height and width, which the output then gets."""
    different = sorted(set(shapes))
    if len(different) > 1:
        raise RuntimeError(
            "If the `output_size` is not specified, all the input samples must have the same shape. "
            f"Got samples of different shapes: {different}"
        )


def _frames_of(owners: list[int], position: int, ids: np.ndarray) -> list[int]:
    """Return the positions, among the frames of all sequences, of the frames to paste into the frame at ``position``.

    These are the frames with the same index in the sequences ``ids``.
    """
    time = position - owners.index(owners[position])
    for index in ids.tolist():
        if owners.count(index) <= time:
            raise RuntimeError(f"Sequence #{index} has no frame {time} to be pasted")
    return [owners.index(index) + time for index in ids.tolist()]


def _rows(samples: Samples, name: str, counts: np.ndarray) -> np.ndarray | None:
    """Return an argument's (y, x) for each region; None if the argument is absent."""
    if not samples.given(name):
        return None
    batch = samples.workspace.arguments.get(name)
    rows = None if batch is None else samples.of(batch.samples)
    for own, count in zip(rows or [None], counts.tolist()):
        if own is None or own.shape != (count, 2):
            found = "a constant" if own is None else f"a tensor of shape {own.shape}"
            raise RuntimeError(f"`{name}` must be a tensor of shape ({count}, 2), got {found}")
    return None if rows is None else np.concatenate(rows)


def _pairs(samples: Samples, name: str, counts: np.ndarray, relative_to: np.ndarray) -> np.ndarray:
    """Return positions (y, x) in pixels, from an absolute argument or one in fractions of ``relative_to``; 0 if both are absent."""
    absolute, relative = _rows(samples, name, counts), _rows(samples, name + "_rel", counts)
    if absolute is not None:
        return absolute.astype(np.int64)
    if relative is None:
        return np.zeros((len(relative_to), 2), np.int64)
    return (relative * relative_to.astype(np.float32)).astype(np.int64)


def _extents(samples: Samples, counts: np.ndarray, shapes: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    absolute, relative = _rows(samples, "shapes", counts), _rows(samples, "shapes_rel", counts)
    if absolute is not None:
        return absolute.astype(np.int64)
    if relative is None:
        return shapes - anchors
    return np.ceil(relative * shapes.astype(np.float32)).astype(np.int64)


def _check_inside(where: str, anchors: np.ndarray, extents: np.ndarray, bounds: np.ndarray) -> None:
    """Raise RuntimeError unless all regions are within their bounds."""
    from penstock.operators.image._multi_paste_cpu import first_outside

    region = first_outside(anchors, extents, bounds)
    if region >= 0:
        anchor, shape = (tuple(numbers[region].tolist()) for numbers in (anchors, extents))
        height, width = bounds[region, :2].tolist()
        raise RuntimeError(
            f"The pasted region must be within the {where}'s bounds. Got {where} anchor: {anchor}, pasted region shape: "
            f"{shape}, {where} shape: {height} x {width}"
        )
