"""`image_patches`: images cut into the patches that a vision transformer reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import FLOAT, INT32, INT64, UINT8, dtype_name
from penstock.operators.image._normalizing import NORMALIZING_ARGUMENTS, checked_table, factors_of
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples, on_photo, pictures

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.operators.image._pieces_cuda import Patches

_WHOLE = ("first", "last")
_Region = tuple[int, int, int, int]
"""Top, left, height and width of a region of an input."""


@dataclass(frozen=True)
class _Picture:
    """Patches of an image, of one of its tiles, or of the whole image that accompanies the tiles.

    Attributes:
        source: the index of the input.
        region: the region of the input to cut into patches.
        first: number of the sample's patches before these.
        grid: number of patches in time, vertically and horizontally.
    """

    source: int
    region: _Region
    first: int
    grid: tuple[int, int, int]

    @property
    def count(self) -> int:
        """The number of patches."""
        return math.prod(self.grid)


_Pictures = tuple[_Picture, ...]


def _squares(layout: str = "") -> ExampleSamples:
    return pictures("HWC", H=(16, 24, 8), W=(24, 16, 8))


def _whole(layout: str = "") -> ExampleSamples:
    return pictures("HWC", H=(8, 16), W=(16, 8))


@register_operator
class ImagePatches(Operator[None, _Pictures]):
    """Computes ``(x / divisor - mean) / std`` of images or videos of uint8, and lays them out as patches.

    Returns the patches, float32 of shape (patches, values), and their grid, INT64 of shape (3,): the number of patches in
    time, vertically and horizontally. With `length`, patches are padded with 0 to this number, and there is a third output,
    INT32 of shape (length,): 1 for patches, 0 for padding.

    With `tile`, images are first cut into tiles, and each tile, as well as the second input, which is the whole image in
    another size, is a picture that is cut into patches. Grids are then of shape (pictures, 3); with `length`, patches are of
    shape (pictures, length, values), and the third output is of shape (pictures, length).

    >>> patches, grid = fn.image_patches(images, patch=14, merge=2, temporal=2, mean=[0.5] * 3, std=[0.5] * 3)
    """

    schema = Schema(
        name="ImagePatches",
        inputs=(
            Input("images", ("HWC", "FHWC"), doc="Images or videos of uint8, of whole patches.", example=_squares),
            Input("whole", ("HWC",), doc="The whole image beside its tiles, of whole patches.", example=_whole),
        ),
        min_inputs=1,
        arguments=(
            Argument(
                "beside",
                "bool",
                False,
                "Lay patches beside each other instead, as pixels: (C, height of a patch, width of all of them).",
            ),
            Argument("channels_last", "bool", False, "Order the values of a patch as HWC, not CFHW."),
            Argument("length", "int32", 0, "Number of patches to return; 0: as many as there are."),
            Argument("merge", "int32", 1, "Order the patches in squares with this many on a side; 1: row by row."),
            *NORMALIZING_ARGUMENTS,
            Argument("patch", "int32", None, "Height and width of a patch.", required=True, example=4),
            Argument(
                "stride",
                "int32[]",
                None,
                "Rows and columns from a tile to the next one, if they overlap.",
                exempt="It needs tiles.",
            ),
            Argument(
                "temporal", "int32", 1, "Frames in a patch; the image, or the last frame, is repeated for missing ones."
            ),
            Argument(
                "tile",
                "int32[]",
                None,
                "Height and width of the tiles of an image; 0 and 0: no tiles, only the second input.",
                tensor=True,
                example=[8, 8],
            ),
            Argument("whole_at", "string", "first", "Where to put the whole: `first` or `last`.", choices=_WHOLE),
            Argument("whole_from", "int32", 1, "Add the whole image if there are at least this many tiles, or none."),
        ),
        exempt={"sequences": "the patches of a video are of several frames"},
        outputs=lambda arguments: 3 if arguments.get("length") else 2,
        examples=(
            Example({"patch": 4, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]}),
            Example({"patch": 4, "merge": 2, "temporal": 2}),
            Example({"patch": 8, "channels_last": True, "length": 10}),
            Example({"patch": 4, "tile": [8, 8], "whole_at": "last"}, (_squares, _whole)),
            Example({"patch": 4, "tile": [8, 8], "beside": True, "mean": [0.5], "std": [0.25]}, (_squares, _whole)),
            Example({"patch": 4, "tile": [8, 8], "stride": [4, 8], "length": 9, "whole_from": 5}, (_squares, _whole)),
        ),
        shown=(on_photo(patch=16),),
    )

    plans_by_shape = True

    def setup(self) -> None:
        arguments = self.args
        for name in ("patch", "merge", "temporal"):
            if arguments[name] < 1:
                raise ValueError(f"`{name}` must be at least 1. Got: {arguments[name]}")
        if arguments["channels_last"] and arguments["temporal"] > 1:
            raise ValueError("`channels_last` needs patches of one frame: `temporal=1`")
        if arguments["beside"] and (arguments["channels_last"] or arguments["length"] or arguments["temporal"] > 1):
            raise ValueError("`beside` needs patches of one frame (`temporal=1`), without `channels_last` and `length`")
        if arguments["beside"] and arguments["merge"] > 1:
            raise ValueError("`beside` needs patches in rows: `merge=1`")
        stride = arguments["stride"]
        if stride is not None and (len(stride) != 2 or min(stride) < 1):
            raise ValueError(f"`stride` must be positive numbers of rows and columns. Got: {stride}")
        if arguments["whole_at"] not in _WHOLE:
            raise ValueError(f"`whole_at` must be `first` or `last`. Got: {arguments['whole_at']!r}")
        settings = [arguments[argument.name] for argument in NORMALIZING_ARGUMENTS]
        self._table = checked_table(*settings)
        self._factors = factors_of(self._table, *settings)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        for batch in workspace.inputs:
            if batch.dtype != UINT8:
                raise RuntimeError(f"Images must be uint8. Got: {dtype_name(batch.dtype)}")
        if self._tiled and workspace.inputs[0].ndim() > 3:
            raise RuntimeError("`tile` is not supported for videos")
        if len(workspace.inputs) > 1 and not self._tiled:
            raise RuntimeError("The second input, the whole image, needs `tile`")
        several = int(self._tiled)
        ndim = 3 if self.args["beside"] else 2 + (self._pads and several)
        return [OutputSpec(FLOAT, "", ndim), OutputSpec(INT64, "", 1 + several), OutputSpec(INT32, "", 1 + several)][
            : 2 + self._pads
        ]

    @property
    def _pads(self) -> bool:
        return bool(self.args["length"])

    @property
    def _tiled(self) -> bool:
        return self.given("tile")

    def infer(self, sample: Sample[None, _Pictures]) -> list[tuple[int, ...]]:
        *_, channels = sample.shapes[0]
        if any(len(self._table) not in (1, shape[-1]) for shape in sample.shapes):
            raise ValueError(f"`mean` and `std` have {len(self._table)} values, but the image has {channels} channels")
        if len({shape[-1] for shape in sample.shapes}) > 1:
            raise ValueError("The whole image must have as many channels as the image")
        sample.plan = plan = self._pictures(sample)
        return self._shapes(plan, channels)

    def _shapes(self, plan: _Pictures, channels: int) -> list[tuple[int, ...]]:
        """Return the output shapes of a planned sample."""
        patch, temporal, length = (self.args[name] for name in ("patch", "temporal", "length"))
        count = sum(picture.count for picture in plan)
        largest = max((picture.count for picture in plan), default=0)
        if length and largest > length:
            raise ValueError(f"The image has {largest} patches: more than `length`, {length}")
        several = (len(plan),) if self._tiled else ()
        if self.args["beside"]:
            return [(channels, patch, count * patch), (*several, 3)]
        values = channels * temporal * patch * patch
        if length:
            return [(*several, length, values), (*several, 3), (*several, length)]
        return [(count, values), (*several, 3)]

    def _pictures(self, sample: Sample[None, _Pictures]) -> _Pictures:
        """Return the pictures to cut into patches, in output order."""
        (*frames, height, width, _), *others = sample.shapes
        if not self._tiled:
            return self._numbered([(0, (0, 0, height, width))], frames[0] if frames else 1)
        shown = [(0, tile) for tile in self._tiles(height, width, [int(extent) for extent in sample["tile"]])]
        if others and (not shown or len(shown) >= self.args["whole_from"]):
            whole = (1, (0, 0, others[0][0], others[0][1]))
            shown.insert(0 if self.args["whole_at"] == "first" else len(shown), whole)
        return self._numbered(shown, 1)

    def _tiles(self, height: int, width: int, tile: Sequence[int]) -> list[_Region]:
        """Return the regions of an image's tiles, row by row."""
        if len(tile) != 2 or min(tile) < 0 or min(tile) == 0 < max(tile):
            raise ValueError(f"`tile` must be a positive height and width, or 0 and 0. Got: {list(tile)}")
        high, wide = tile
        if not high:
            return []
        down, across = self.args["stride"] or tile
        rest = height - high, width - wide
        if min(rest) < 0 or rest[0] % down or rest[1] % across:
            raise ValueError(
                f"An image of {width} x {height} pixels cannot be divided into whole tiles of {wide} x {high}"
            )
        corners = itertools.product(range(0, rest[0] + 1, down), range(0, rest[1] + 1, across))
        return [(top, left, high, wide) for top, left in corners]

    def _numbered(self, shown: Sequence[tuple[int, _Region]], frames: int) -> _Pictures:
        """Return a picture for each (input, region), with patches numbered consecutively across pictures."""
        patch, side = self.args["patch"], self.args["patch"] * self.args["merge"]
        times, first = math.ceil(frames / self.args["temporal"]), 0
        planned: list[_Picture] = []
        for source, region in shown:
            *_, height, width = region
            if height % side or width % side or not height * width:
                raise ValueError(
                    f"An image of {width} x {height} pixels cannot be divided into whole patches: its sides must be multiples of {side}"
                )
            planned.append(_Picture(source, region, first, (times, height // patch, width // patch)))
            first += planned[-1].count
        return tuple(planned)

    def compute(self, sample: Sample[None, _Pictures]) -> None:
        images = [np.ascontiguousarray(image) for image in sample.inputs]
        fill = self._fill_beside if self.args["beside"] else self._fill
        for number, picture in enumerate(sample.plan):
            fill(images[picture.source], picture, number, sample.outputs[0])
        for output, values in zip(sample.outputs[1:], self._told(sample.plan)):
            output[...] = values

    def _fill(self, image: np.ndarray, picture: _Picture, number: int, out: np.ndarray) -> None:
        """Write a picture's patches to ``out``, followed by padding."""
        from penstock.kernels.cpu.pixel_values import is_beyond_cache
        from penstock.operators.image._pieces_cpu import fill_patches

        frames, region = image if image.ndim == 4 else image[None], picture.region
        own, first = (out[number], 0) if out.ndim == 3 else (out, picture.first)
        patch, merge, temporal, channels_last = (
            self.args[name] for name in ("patch", "merge", "temporal", "channels_last")
        )
        patches = own[first : first + picture.count].reshape(-1)
        fill_patches(
            frames,
            *region,
            self._table,
            self._factors,
            patch,
            merge,
            temporal,
            channels_last,
            is_beyond_cache(out),
            patches,
        )
        if self._pads:
            own[picture.count :] = 0

    def _fill_beside(self, image: np.ndarray, picture: _Picture, _number: int, out: np.ndarray) -> None:
        """Write a picture's patches side by side to their columns of ``out``."""
        from penstock.kernels.cpu.pixel_values import is_beyond_cache
        from penstock.operators.image._pieces_cpu import fill_rows

        begin = picture.first * self.args["patch"]
        fill_rows(image, *picture.region, self._table, self._factors, begin, is_beyond_cache(out), out)

    def _told(self, plan: _Pictures) -> list[np.ndarray]:
        """Return the outputs other than the patches: grids and, with `length`, which patches are not padding."""
        grids = np.array([picture.grid for picture in plan], np.int64).reshape(-1, 3)
        counts = np.array([picture.count for picture in plan]).reshape(-1, 1)
        outputs: list[np.ndarray] = [grids, (np.arange(self.args["length"]) < counts).astype(np.int32)]
        outputs = outputs[: 1 + self._pads]
        return outputs if self._tiled else [each[0] for each in outputs]

    def compute_batch(self, workspace: Workspace[None, _Pictures]) -> None:
        from penstock.kernels.cuda.launch import locate_all, upload
        from penstock.kernels.cuda.window import WindowCopy, copy_windows
        from penstock.operators.image._pieces_cuda import fill_patches

        samples = workspace.live
        inputs = [locate_all(batch, samples) for batch in workspace.inputs]
        jobs = [
            job
            for sample, target, *images in zip(samples, locate_all(workspace.outputs[0], samples), *inputs)
            for job in self._jobs(sample.plan, images, target)
        ]
        names = "patch", "merge", "temporal", "channels_last", "beside"
        fill_patches(jobs, self._table, *(self.args[name] for name in names))
        for values, output in zip(zip(*(self._told(sample.plan) for sample in samples)), workspace.outputs[1:]):
            copies = zip(upload(values), locate_all(output, samples))
            copy_windows([WindowCopy(own, target) for own, target in copies])

    def _jobs(self, plan: _Pictures, images: Sequence[Located], target: Located) -> Iterator[Patches]:
        """Yield the arguments with which the GPU cuts each picture of one sample into patches."""
        from penstock.operators.image._pieces_cuda import Patches

        total = sum(picture.count for picture in plan)
        for number, picture in enumerate(plan):
            image, own = images[picture.source], target
            frames = image if len(image.shape) == 4 else image.reshape(1, *image.shape)
            if self.args["beside"]:
                yield Patches(frames, own, picture.region, picture.count, picture.first, total)
                continue
            if self._pads:
                *_, length, values = own.shape
                own = own.reshape(-1, length, values).part(number, 1).reshape(length, values)
            else:
                own = own.part(picture.first, picture.count)
            yield Patches(frames, own, picture.region, picture.count)
