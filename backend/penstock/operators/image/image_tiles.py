"""`image_tiles`: images cut into the tiles that a model reads, together with a picture of the whole image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, UINT8, dtype_name
from penstock.kernels.windows import Region
from penstock.operators.image._normalizing import NORMALIZING_ARGUMENTS, checked_table, factors_of
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples, on_photo, pictures
from penstock.schema.image_chain import ChainOperator, Pixels, Stage
from penstock.schema.operator import Shape

_WHOLE = ("first", "last")
# The layout of the whole image, by its type.
_WHOLES = {UINT8: "HWC", FLOAT: "CHW"}


@dataclass(frozen=True)
class _Layout:
    """The arrangement of a sample's tiles.

    Attributes:
        canvas: height and width of the canvas.
        corner: row and column of the image's upper left corner on the canvas.
        columns: number of tiles in a row.
        tiles: number of tiles, without the whole image.
        whole: whether the whole image is added as one more tile.
    """

    canvas: tuple[int, int]
    corner: tuple[int, int]
    columns: int
    tiles: int
    whole: bool


@dataclass(frozen=True)
class _Tiling(Stage):
    """Cuts an image into tiles while it is still in the cache, after an earlier stage has computed it.

    Attributes:
        operator: the operator that makes the tiles.
        shape: the output's shape.
        shape_in: the image's shape.
    """

    operator: ImageTiles
    shape: Shape
    shape_in: Shape

    is_whole = True

    def reads(self, window: Region) -> Region:
        return Region.whole(self.shape_in)

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        self.operator.fill(sample, source.contiguous(self.reads(window)), target)


def _tiled(layout: str = "") -> ExampleSamples:
    return pictures("HWC", H=(16, 8, 24), W=(24, 16, 8))


def _single(layout: str = "") -> ExampleSamples:
    return pictures("HWC", H=(8,), W=(8,))


@register_operator
class ImageTiles(ChainOperator[None, _Layout]):
    """Computes ``(x / divisor - mean) / std`` of images of uint8, and cuts them into tiles.

    Returns float32 of shape (tiles, C, height, width). A second input, the whole image resized to a tile, becomes
    one more tile; if it is of type float, its values are stored unchanged.

    >>> tiles = fn.image_tiles(images, thumbnails, tile=[336, 336], canvas=canvas, mean=[0.5] * 3, std=[0.5] * 3)
    """

    schema = Schema(
        name="ImageTiles",
        inputs=(
            Input("images", ("HWC",), doc="Images of uint8.", example=_tiled),
            Input(
                "whole",
                ("HWC", "CHW"),
                doc="The whole image, resized to a tile: of uint8 and HWC, or its values, of float and CHW.",
                example=_single,
            ),
        ),
        min_inputs=1,
        arguments=(
            Argument("alone", "bool", True, "Add the whole even if there is only one tile."),
            Argument(
                "canvas",
                "int32[]",
                None,
                "Height and width of the canvas that is cut, with the image on it; by default the image's, rounded up to whole tiles; "
                "0 and 0: there are no tiles.",
                tensor=True,
            ),
            Argument(
                "centred", "bool", False, "Put the image in the middle of the canvas, not in its upper left corner."
            ),
            Argument(
                "fill_value",
                "float",
                None,
                "Value of the canvas beside the image; by default, that of black pixels.",
                example=0.0,
            ),
            Argument(
                "length", "int32", 0, "Number of tiles to return; missing ones are zeros; 0: as many as there are."
            ),
            *NORMALIZING_ARGUMENTS,
            Argument("tile", "int32[]", None, "Height and width of a tile.", required=True, example=[8, 8]),
            Argument("whole_at", "string", "first", "Where to put the whole: `first` or `last`.", choices=_WHOLE),
        ),
        examples=(
            Example({"tile": [8, 8]}, (_tiled, _single)),
            Example(
                {"tile": [8, 8], "canvas": [24, 24], "centred": True, "mean": [0.5], "std": [0.25]}, (_tiled, _single)
            ),
            Example({"tile": [16, 16], "whole_at": "last", "alone": False}, (pictures,)),
            Example({"tile": [8, 8], "length": 20}, (_tiled, _single)),
        ),
        shown=(on_photo(tile=[80, 80]),),
    )

    def setup(self) -> None:
        if len(self.args["tile"]) != 2 or min(self.args["tile"]) < 1:
            raise ValueError(f"`tile` must be a positive height and width. Got: {self.args['tile']}")
        if self.args["whole_at"] not in _WHOLE:
            raise ValueError(f"`whole_at` must be `first` or `last`. Got: {self.args['whole_at']!r}")
        settings = [self.args[argument.name] for argument in NORMALIZING_ARGUMENTS]
        self._table = checked_table(*settings)
        self._factors = factors_of(self._table, *settings)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        images, *wholes = workspace.inputs
        if images.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8. Got: {dtype_name(images.dtype)}")
        for whole in wholes:
            layout = _WHOLES.get(whole.dtype)
            if layout is None or whole.layout() not in ("", layout):
                raise RuntimeError(
                    "The second input, the whole image, must be uint8 with layout HWC, or float with layout CHW. "
                    f"Got: {dtype_name(whole.dtype)}, {whole.layout()!r}"
                )
        return [OutputSpec(FLOAT, "NCHW", 4)]

    def infer(self, sample: Sample[None, _Layout]) -> tuple[int, ...]:
        height, width, channels = sample.shapes[0]
        high, wide = self.args["tile"]
        if len(self._table) not in (1, channels):
            raise ValueError(f"`mean` and `std` have {len(self._table)} values, but the image has {channels} channels")
        canvas = sample["canvas"] or (-(-height // high) * high, -(-width // wide) * wide)
        rows, columns = canvas[0] // high, canvas[1] // wide
        if canvas[0] % high or canvas[1] % wide or (not rows * columns and max(canvas)):
            raise ValueError(
                f"A canvas of {canvas[1]} x {canvas[0]} pixels cannot be divided into whole tiles of {wide} x {high}"
            )
        if rows and (height > canvas[0] or width > canvas[1]):
            raise ValueError(
                f"An image of {width} x {height} pixels does not fit on a canvas of {canvas[1]} x {canvas[0]}"
            )
        beside = canvas[0] - height, canvas[1] - width
        tiles = rows * columns
        corner = (beside[0] // 2, beside[1] // 2) if self.args["centred"] and tiles else (0, 0)
        whole = len(sample.shapes) > 1 and (tiles > 1 or self.args["alone"])
        computed = whole and sample.workspace.inputs[1].dtype == FLOAT
        shape = (channels, high, wide) if computed else (high, wide, channels)
        if whole and sample.shapes[1] != shape:
            raise ValueError(
                f"The second input, the whole image, must have the shape of a tile, {shape}. Got: {sample.shapes[1]}"
            )
        sample.plan = _Layout((canvas[0], canvas[1]), corner, columns, tiles, whole)
        length = self.args["length"]
        if length and tiles + whole > length:
            raise ValueError(f"The image has {tiles + whole} tiles: more than `length`, {length}")
        return self._shape(sample)

    def _shape(self, sample: Sample[None, _Layout]) -> Shape:
        """Return the output shape of a planned sample."""
        plan = sample.plan
        return self.args["length"] or plan.tiles + plan.whole, sample.shapes[0][2], *self.args["tile"]

    def compute(self, sample: Sample[None, _Layout]) -> None:
        self.fill(sample, np.ascontiguousarray(sample.inputs[0]), sample.outputs[0])

    def fill(self, sample: Sample[None, _Layout], image: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with the tiles of ``image``, a contiguous array that is read instead of the sample's first input."""
        from penstock.operators.image._pieces_cpu import fill_tiles

        plan, table, factors = sample.plan, self._table, self._factors
        blank, begin = self._blank(out.shape[1]), self._first_tile(plan)
        fill_tiles(image, table, factors, *plan.corner, plan.columns, blank, out[begin : begin + plan.tiles])
        if plan.whole:
            place, whole = 0 if begin else plan.tiles, np.ascontiguousarray(sample.inputs[1])
            if whole.dtype == np.float32:
                out[place] = whole
            else:
                fill_tiles(whole, table, factors, 0, 0, 1, blank, out[place : place + 1])
        out[plan.tiles + plan.whole :] = 0

    def stage(self, sample: Sample[None, _Layout]) -> _Tiling:
        return _Tiling(self, self._shape(sample), sample.shapes[0])

    def _blank(self, channels: int) -> np.ndarray:
        """Return the canvas's fill value outside the image, for each channel."""
        fill = self.args["fill_value"]
        return np.broadcast_to(self._table[:, 0] if fill is None else np.float32(fill), (channels,)).copy()

    def _first_tile(self, plan: _Layout) -> int:
        """Return the index of the first tile that is cut from the canvas: 1 if the whole image comes before it, else 0."""
        return int(plan.whole and self.args["whole_at"] == "first")

    def compute_batch(self, workspace: Workspace[None, _Layout]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_windows
        from penstock.operators.image._pieces_cuda import Tiles, fill_tiles

        samples, computed = workspace.live, []
        images, *wholes = (locate_all(batch, samples) for batch in workspace.inputs)
        targets = locate_all(workspace.outputs[0], samples)
        jobs: list[Tiles] = []
        zeros: list[Tiles] = []
        for number, (sample, target) in enumerate(zip(samples, targets)):
            plan = sample.plan
            begin = self._first_tile(plan)
            if plan.tiles:
                jobs.append(Tiles(images[number], target.part(begin, plan.tiles), *plan.corner, plan.columns))
            if plan.whole:
                whole, place = wholes[0][number], target.part(0 if begin else plan.tiles, 1)
                if whole.dtype == np.float32:
                    computed.append(WindowCopy(whole, place.reshape(*target.shape[1:])))
                else:
                    jobs.append(Tiles(whole, place))
            filled = plan.tiles + plan.whole
            if filled < target.shape[0]:
                # Fill the remaining tiles with zeros: as tiles of a canvas on which the image lies below all of them.
                rest = target.shape[0] - filled
                zeros.append(Tiles(images[number], target.part(filled, rest), top=rest * target.shape[2]))
        copy_windows(computed)
        max_channels = max(target.shape[1] for target in targets)
        if jobs:
            fill_tiles(jobs, self._table, self._blank(max_channels))
        if zeros:
            fill_tiles(zeros, self._table, np.zeros(max_channels, np.float32))
