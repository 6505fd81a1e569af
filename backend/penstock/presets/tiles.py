"""Image processors that cut large images into tiles: LLaVA-NeXT and OneVision, InternVL, Idefics3 and SmolVLM, Llama 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import Fit, SizeArguments, arrangements, fitted
from penstock.presets.classifiers import on_square
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Features,
    ImageFamily,
    PresetError,
    Values,
    extended,
    image_sizes,
    size_of,
    stacked,
)
from penstock.presets.fixed import NO_CROP, NO_PAD, OPENAI

_SIZES, _MASK = "image_sizes", "pixel_attention_mask"
_SQUARE = frozenset({"height", "width"})
_LOCAL, _WHITE = "pixel_values_local", 255
# The number of tokens is reduced only if it exceeds the limit by more than this factor.
_MAX_EXCESS_TO_KEEP_COUNT = 1.1
_LONGEST = frozenset({"longest_edge"})


_ARRANGEMENT = ("rows", "cols")
"""The names of the outputs with the numbers of rows and of columns of an image's tiles."""


@dataclass(frozen=True, kw_only=True)
class _TileFamily(ImageFamily):
    """Base class of families that cut images into tiles of one size."""

    size: Mapping[str, int] = field(default_factory=dict)

    @property
    def tile(self) -> tuple[int, int]:
        """The height and width of a tile."""
        edge = self.size.get("shortest_edge", 0)
        return self.size.get("height", edge), self.size.get("width", edge)

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if not self.do_resize:
            raise PresetError("`do_resize` must be true: presets that cut tiles always resize images")


@dataclass(frozen=True, kw_only=True)
class AnyresFamily(_TileFamily):
    """LLaVA-NeXT and OneVision: the whole image, and tiles of a canvas on which it is centred.

    Attributes:
        image_grid_pinpoints: the heights and widths of the canvases.
        do_pad: add tiles of zeros, so that all images of a call have the same number of tiles.
        crop_size: `height` and `width`; must be those of a tile.
        do_center_crop: accepted without effect, since the crop has the size of a tile.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    resample: int = 3
    image_grid_pinpoints: Sequence[Sequence[int]] = ()
    do_pad: bool = True
    do_center_crop: bool = False
    crop_size: Mapping[str, int] = field(default_factory=dict)
    default_to_square: bool = False

    names = (PIXELS, _SIZES)
    tells_by: ClassVar[tuple[str, ...]] = ("patch_size",)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(
            settings["size"], bool(settings["default_to_square"]), "`size`", _SQUARE, frozenset({"shortest_edge"})
        )
        settings["crop_size"] = size_of(settings["crop_size"], True, "`crop_size`", _SQUARE, frozenset())
        pinpoints = settings["image_grid_pinpoints"]
        fits = isinstance(pinpoints, (list, tuple)) and pinpoints
        if not fits or not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in pinpoints):
            raise PresetError(
                f"`image_grid_pinpoints` must be a list of pairs (height, width), not empty. Got: {pinpoints!r}"
            )
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        height, width = self.tile
        if self.do_center_crop and not self.crop_size:
            raise PresetError("`do_center_crop` needs a `crop_size`")
        if height != width:
            raise PresetError(f"`size` is supported only where tiles are square. Got: {dict(self.size)}")
        if self.crop_size and (self.crop_size["height"], self.crop_size["width"]) != self.tile:
            raise PresetError(f"`crop_size` must be the size of a tile, {self.tile}. Got: {dict(self.crop_size)}")
        for pinpoint in self.image_grid_pinpoints:
            if pinpoint[0] % height or pinpoint[1] % width:
                raise PresetError(
                    f"`image_grid_pinpoints` hold {list(pinpoint)}, which cannot be divided into whole tiles of {self.tile}"
                )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        canvases = [int(extent) for pinpoint in self.image_grid_pinpoints for extent in pinpoint]
        size, canvas = fn.fitted_size(data, rule="llava-next", canvases=canvases)
        tiles = fn.image_tiles(
            self.resized(data, backend, size),
            self.resized(data, backend, list(self.tile)),
            tile=list(self.tile),
            canvas=canvas,
            centred=True,
            **self.normalizing(backend),
            name=PIXELS,
        )
        return tiles, image_sizes(data, _SIZES)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        side = self.tile[0] // model["patch_size"]
        rows, columns = self._features(height, width, side)
        # Each row of tokens is followed by an end-of-row token.
        return side * side + rows * (columns + 1)

    def _features(self, height: int, width: int, side: int) -> tuple[int, int]:
        """Return the numbers of rows and columns of a canvas's features, without those of the padding around the image; ``side``: the
        number of rows and of columns of a tile.
        """
        canvases = tuple((int(rows), int(columns)) for rows, columns in self.image_grid_pinpoints)
        fit = fitted("llava-next", height, width, SizeArguments(canvases=canvases))
        rows, columns = (side * (extent // self.tile[0]) for extent in fit[2:])
        if width / height > columns / rows:
            rows -= 2 * ((rows - int(round(height * (columns / width), 7))) // 2)
        else:
            columns -= 2 * ((columns - int(round(width * (rows / height), 7))) // 2)
        return rows, columns

    def joined(self, images: Sequence[Features]) -> Values:
        values = [image[PIXELS] for image in images]
        return {
            PIXELS: extended(values, (0,)) if self.do_pad else values,
            _SIZES: np.stack([image[_SIZES] for image in images]),
        }


LLAVA_NEXT = AnyresFamily(
    size={"shortest_edge": 224},
    do_center_crop=True,
    crop_size={"height": 224, "width": 224},
    image_grid_pinpoints=((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)),
)


@dataclass(frozen=True, kw_only=True)
class OnevisionFamily(AnyresFamily):
    """LLaVA-OneVision, which returns the number of images of each prompt, and limits the number of tokens."""

    tells_by = ("patch_size", "max_tiles")

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        side = self.tile[0] // model["patch_size"]
        rows, columns = self._features(height, width, side)
        ratio = math.sqrt(rows * columns / (model["max_tiles"] * side**2))
        if ratio > _MAX_EXCESS_TO_KEEP_COUNT:
            rows, columns = int(rows // ratio), int(columns // ratio)
        return side * side + rows * (columns + 1)

    def joined(self, images: Sequence[Features]) -> Values:
        return super().joined(images) | {"batch_num_images": np.ones(len(images), np.int64)}

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        if len(groups) > 1 and max(map(len, groups)) > 1:
            raise PresetError(
                "Prompts with several images are not supported: LLaVA-OneVision does not tile their images, as presets do"
            )
        return super().joined_prompts(groups)


_SIDES = range(384, 2304 + 1, 384)
ONEVISION_PINPOINTS = tuple((rows, columns) for rows in _SIDES for columns in _SIDES)


@dataclass(frozen=True, kw_only=True)
class GridFamily(_TileFamily):
    """InternVL and GOT-OCR2: a grid of tiles with nearly the aspect ratio of the image, and then the whole image.

    Attributes:
        crop_to_patches: whether to cut images into tiles.
        min_patches, max_patches: the bounds of the number of tiles.
        rule: the rule of :func:`fn.fitted_size` that arranges tiles.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    resample: int = 3
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 384})
    crop_to_patches: bool = False
    min_patches: int = 1
    max_patches: int = 12
    rule: str = "internvl"

    names: ClassVar[tuple[str, ...]] = (PIXELS, "num_patches")
    concatenated = (PIXELS,)
    tells_by = ("image_seq_length",)
    hidden = ImageFamily.hidden | {"rule"}
    whole_at: ClassVar[str] = "last"

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", _SQUARE)
        if not 1 <= settings["min_patches"] <= settings["max_patches"]:
            raise PresetError(
                f"`min_patches` must be from 1 to `max_patches`. Got: {settings['min_patches']} and {settings['max_patches']}"
            )
        return settings

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tiles, canvas = self.tiled(data, backend)
        return tiles, self._second_output(tiles, canvas)

    def tiled(self, data: DataNode, backend: str) -> tuple[DataNode, DataNode | list[int]]:
        """Return the tiles and whole images, and the sizes of the canvases from which tiles are cut."""
        tile = list(self.tile)
        whole = self.resized(data, backend, tile)
        images: tuple[DataNode, ...] = (whole,)
        canvas: DataNode | list[int] = tile
        if self.crop_to_patches:
            size, canvas = fn.fitted_size(
                data, rule=self.rule, least=self.min_patches, most=self.max_patches, tile=tile
            )
            images = (self.resized(data, backend, size), whole)
        tiles = fn.image_tiles(
            *images, tile=tile, whole_at=self.whole_at, alone=False, **self.normalizing(backend), name=PIXELS
        )
        return tiles, canvas

    def _second_output(self, tiles: DataNode, canvas: DataNode | list[int]) -> DataNode:
        """Return the second output, which describes the tiles; ``canvas``: the sizes of the canvases."""
        return fn.reshape(tiles.shape()[0], shape=[], name=self.names[1])

    def fit(self, height: int, width: int) -> Fit:
        """Return the size to which an image is resized before it is cut into tiles, and the size of the canvas."""
        if not self.crop_to_patches:
            return Fit(*self.tile, *self.tile)
        return fitted(self.rule, height, width, SizeArguments(1, self.min_patches, self.max_patches, (), self.tile))

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = self.fit(height, width)
        tiles = (fit.height // self.tile[0]) * (fit.width // self.tile[1])
        return (tiles + (tiles > 1)) * model["image_seq_length"]

    def joined(self, images: Sequence[Features]) -> Values:
        return super().joined(images) | {"num_patches": [int(image["num_patches"]) for image in images]}


@dataclass(frozen=True, kw_only=True)
class OvisFamily(GridFamily):
    """Ovis 2: the whole image, and then tiles.

    Attributes:
        use_covering_area_grid: use the fewest tiles that cover nearly all of the image; otherwise, arrange tiles like InternVL.
    """

    use_covering_area_grid: bool = True

    names = (PIXELS, "grids")
    whole_at = "first"

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["crop_to_patches"] = settings["crop_to_patches"] and settings["max_patches"] > 1
        settings["rule"] = "ovis2" if settings["use_covering_area_grid"] else "internvl"
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.crop_to_patches and self.tile[0] != self.tile[1]:
            raise PresetError(f"`size` is supported only where tiles are square. Got: {dict(self.size)}")

    def _second_output(self, tiles: DataNode, canvas: DataNode | list[int]) -> DataNode:
        if not self.crop_to_patches:
            return fn.constant(idata=[1, 1], shape=[2], dtype=types.INT64, name=self.names[1])
        return fn.cast(canvas // types.Constant(self.tile[0], dtype=types.INT32), dtype=types.INT64, name=self.names[1])

    def joined(self, images: Sequence[Features]) -> Values:
        return _TileFamily.joined(self, images)


@dataclass(frozen=True, kw_only=True)
class DoclingFamily(GridFamily):
    """Granite Docling: tiles of a page, then the whole page, with a mask. Pages are padded with tiles of zeros to the largest number of
    tiles in a call.

    Attributes:
        fine_route, dense_max_patches: must be false and 0.
        dense_max_scale, dense_min_aspect, dense_max_aspect: accepted without effect: they are read only with `dense_max_patches`.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 512, "width": 512})
    crop_to_patches: bool = True
    max_patches: int = 32
    rule: str = "granite-docling"
    torchvision_only: bool = True
    fine_route: bool = False
    dense_max_patches: int = 0
    dense_max_scale: float = 0.0
    dense_min_aspect: float = 0.0
    dense_max_aspect: float = 0.0

    names: ClassVar[tuple[str, ...]] = (PIXELS, "rows", "cols")

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.fine_route or self.dense_max_patches:
            raise PresetError("`fine_route`, `dense_max_patches`: no preset follows the routes of dense pages")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tiles, canvas = self.tiled(data, backend)
        if isinstance(canvas, list):
            one = [fn.constant(idata=[1], shape=[], dtype=types.INT64, name=name) for name in self.names[1:]]
            return (tiles, *one)
        sides = fn.cast(canvas // types.Constant(list(self.tile), dtype=types.INT32), dtype=types.INT64)
        return tiles, fn.copy(sides[0], name="rows"), fn.copy(sides[1], name="cols")

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        pages = [np.concatenate([image[PIXELS] for image in group]) for group in groups]
        counts = np.array([len(page) for page in pages])
        numbers = {name: [[int(image[name]) for image in group] for group in groups] for name in self.names[1:]}
        return {
            PIXELS: extended(pages, (0,)),
            "pixel_attention_mask": np.arange(counts.max()) < counts[:, None],
            **numbers,
        }


@dataclass(frozen=True, kw_only=True)
class OcrFamily(ImageFamily):
    """DeepSeek-OCR 2: the whole image centred on a square, and tiles of a large image.

    Attributes:
        size: `height` and `width` of the square if `crop_to_patches` is set; they must be equal.
        tile_size: the side of a tile in pixels, and of the square if `crop_to_patches` is not set.
        crop_to_patches: whether to cut large images into tiles.
        min_patches, max_patches: the bounds of the number of tiles.
        background_color: the colour of the square around the image.
    """

    resample: int = 3
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 1024, "width": 1024})
    tile_size: int = 768
    crop_to_patches: bool = True
    min_patches: int = 2
    max_patches: int = 6
    background_color: Sequence[int] = (127, 127, 127)
    ignored: frozenset[str] = NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "num_local_patches", _LOCAL)
    concatenated: ClassVar[tuple[str, ...]] = (_LOCAL,)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", _SQUARE)
        if settings["tile_size"] < 1 or not 1 <= settings["min_patches"] <= settings["max_patches"]:
            raise PresetError(
                f"`tile_size` must be positive, and `min_patches` to `max_patches` a range. Got: {settings['tile_size']}, "
                f"{settings['min_patches']} to {settings['max_patches']}"
            )
        colour = settings["background_color"]
        fits = isinstance(colour, (list, tuple)) and len(colour) == CHANNELS
        if not fits or not all(isinstance(value, int) and 0 <= value <= _WHITE for value in colour):
            raise PresetError(f"`background_color` must have {CHANNELS} values from 0 to 255. Got: {colour!r}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()

    @property
    def _whole(self) -> int:
        """The side of the square on which the whole image is centred."""
        return self.size["height"] if self.crop_to_patches else self.tile_size

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile = [self.tile_size] * 2
        size: DataNode | list[int]
        if self.crop_to_patches:
            size, canvas = fn.fitted_size(
                data, rule="tiles-of-large", least=self.min_patches, most=self.max_patches, tile=tile
            )
        else:
            size, canvas = [1, 1], fn.constant(idata=[0, 0], shape=[2], dtype=types.INT32)
        images = self.resized(data, backend, size)
        tiles = fn.image_tiles(images, tile=tile, canvas=canvas, **self.normalizing(backend), name=_LOCAL)
        count = fn.cast(tiles.shape()[0], dtype=types.INT64)
        whole = self.normalized(self._squared(data, backend), backend)
        outputs = whole, fn.reshape(count, shape=[], name=self.names[1]), tiles
        return (*outputs, *self._arranged(canvas))

    def _squared(self, data: DataNode, backend: str) -> DataNode:
        size, _ = fn.fitted_size(data, rule="janus", most=self._whole)
        return on_square(self.resized(data, backend, size), self.background_color)

    def _arranged(self, canvas: DataNode) -> tuple[DataNode, ...]:
        """Return further outputs, which describe the arrangement of tiles; ``canvas``: the sizes of the canvases."""
        return ()

    def fit(self, height: int, width: int) -> Fit:
        """Return the size to which an image is resized before it is cut into tiles, and the size of the canvas."""
        if not self.crop_to_patches:
            return Fit(1, 1, 0, 0)
        arguments = SizeArguments(1, self.min_patches, self.max_patches, (), (self.tile_size,) * 2)
        return fitted("tiles-of-large", height, width, arguments)

    def joined(self, images: Sequence[Features]) -> Values:
        pixels, counts, local = self.names[:3]
        values = {
            pixels: stacked([image[pixels] for image in images]),
            counts: [int(image[counts]) for image in images],
        }
        tiles = np.concatenate([image[local] for image in images])
        return values | ({local: tiles} if len(tiles) else {})


@dataclass(frozen=True, kw_only=True)
class UnlimitedOcrFamily(OcrFamily):
    """Unlimited-OCR, which also returns the arrangement of the tiles.

    Attributes:
        maximum_pad_value: if `crop_to_patches` is not set and the side of the square is at most this many pixels, images are stretched to
            the square.
    """

    tile_size: int = 640
    max_patches: int = 32
    maximum_pad_value: int = 640
    torchvision_only: bool = True

    names = (PIXELS, "num_local_patches", _LOCAL, "patches_grid")

    @property
    def _whole(self) -> int:
        return max(self.size.values())

    def _squared(self, data: DataNode, backend: str) -> DataNode:
        if not self.crop_to_patches and self._whole <= self.maximum_pad_value:
            return self.resized(data, backend, [self._whole] * 2)
        return super()._squared(data, backend)

    def _arranged(self, canvas: DataNode) -> tuple[DataNode, ...]:
        # An image without tiles, whose canvas is empty, counts as one tile.
        grid = canvas // types.Constant(self.tile_size, dtype=types.INT32) + fn.cast(canvas == 0, dtype=types.INT32)
        return (fn.cast(fn.stack(grid[1], grid[0]), dtype=types.INT64, name=self.names[3]),)

    def joined(self, images: Sequence[Features]) -> Values:
        return super().joined(images) | {self.names[3]: [image[self.names[3]].tolist() for image in images]}


@dataclass(frozen=True, kw_only=True)
class PerceptionFamily(ImageFamily):
    """Perception LM: the whole image, then the tiles of a grid, to which the image is stretched.

    Attributes:
        vision_input_type: `thumb+tile`; with any other value, only the whole image is returned.
        tile_size: the side of a tile, in pixels.
        max_num_tiles: the largest number of tiles.
    """

    resample: int = 3
    vision_input_type: str = "thumb+tile"
    tile_size: int = 448
    max_num_tiles: int = 36
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"size"}

    unchanged = frozenset({"max_num_tiles"})

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        for key in ("tile_size", "max_num_tiles"):
            if settings[key] < 1:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if not self.do_resize:
            raise PresetError("`do_resize` must be true: presets that cut tiles always resize images")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile = [self.tile_size] * 2
        pictures: tuple[DataNode, ...] = (self.resized(data, backend, tile),)
        if self.vision_input_type == "thumb+tile":
            size, _ = fn.fitted_size(data, rule="perception-lm", most=self.max_num_tiles, tile=tile)
            pictures = (self.resized(data, backend, size), *pictures)
        return (fn.image_tiles(*pictures, tile=tile, **self.normalizing(backend), name=PIXELS),)

    def fit(self, height: int, width: int) -> Fit:
        """Return the size to which an image is resized before it is cut into tiles, and the size of the canvas."""
        arguments = SizeArguments(most=self.max_num_tiles, tile=(self.tile_size,) * 2)
        return fitted("perception-lm", height, width, arguments)


@dataclass(frozen=True, kw_only=True)
class SplitFamily(_TileFamily):
    """Idefics3 and SmolVLM: images enlarged to whole tiles, followed by the whole image.

    Attributes:
        size: `longest_edge` of the image before it is enlarged and cut into tiles.
        max_image_size: `longest_edge`, which is the side of a tile.
        do_image_splitting: whether to cut images into tiles.
        do_pad: whether to return a mask; it consists of ones, since all tiles have the same size.
        return_row_col_info: whether to return the numbers of rows and columns of tiles; they are 0 for an image that is not cut.
    """

    resample: int = 1
    max_image_size: Mapping[str, int] = field(default_factory=dict)
    do_image_splitting: bool = True
    do_pad: bool = True
    return_row_col_info: bool = False

    tells_by = ("image_seq_len",)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (PIXELS, *(_MASK,) * self.do_pad, *_ARRANGEMENT * self.return_row_col_info)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        for key in ("size", "max_image_size"):
            settings[key] = size_of(settings[key], False, f"`{key}`", _LONGEST)
        return settings

    @property
    def tile(self) -> tuple[int, int]:
        side = self.max_image_size["longest_edge"]
        return side, side

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile = list(self.tile)
        images = self.resized(data, backend, self.first_size(data))
        pictures: tuple[DataNode, ...] = (self.resized(images, backend, tile),)
        grid = fn.constant(idata=[0, 0], shape=[2], dtype=types.INT64)
        if self.do_image_splitting:
            size, _ = fn.fitted_size(images, rule="idefics3-tiles", factor=tile[0])
            enlarged = self.resized(images, backend, size)
            pictures = (enlarged, self.resized(enlarged, backend, tile))
            sides = enlarged.shape()[:2] // tile[0]
            grid = sides * fn.cast(fn.reductions.max(sides) > 1, dtype=types.INT64)
        outputs = _ARRANGEMENT if self.return_row_col_info else ()
        arrangement = tuple(fn.copy(grid[axis], name=name) for axis, name in enumerate(outputs))
        tiles = fn.image_tiles(
            *pictures, tile=tile, whole_at="last", alone=False, **self.normalizing(backend), name=PIXELS
        )
        if not self.do_pad:
            return (tiles, *arrangement)
        if data.device == "gpu":
            # Make the mask on the GPU: a mask made on the host would have to be copied to the GPU, and is larger than the image files.
            channel = tiles[:, 0]
            return (tiles, fn.cast(channel == channel, dtype=types.INT64, name=_MASK), *arrangement)
        shape = tiles.shape(dtype=types.INT32)
        return (tiles, fn.ones(shape=fn.cat(shape[:1], shape[2:]), dtype=types.INT64, name=_MASK), *arrangement)

    def first_size(self, images: DataNode) -> DataNode:
        """Return the size to which images are resized before they are enlarged to whole tiles."""
        size, _ = fn.fitted_size(images, rule="idefics3", most=self.size["longest_edge"])
        return size

    def _first_fit(self, height: int, width: int) -> Fit:
        """Return the size of :meth:`first_size` for an image's height and width."""
        return fitted("idefics3", height, width, SizeArguments(most=self.size["longest_edge"]))

    def fit(self, height: int, width: int) -> Fit:
        """Return the size to which an image is resized before it is cut into tiles, and the size of the canvas."""
        if not self.do_image_splitting:
            return Fit(*self.tile, *self.tile)
        first = self._first_fit(height, width)
        return fitted("idefics3-tiles", first.height, first.width, SizeArguments(self.tile[0]))

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = self.fit(height, width)
        tiles = (fit.height // self.tile[0]) * (fit.width // self.tile[1])
        return (tiles + (tiles > 1)) * model["image_seq_len"]

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        def joined(name: str) -> object:
            if name in _ARRANGEMENT:
                return [[int(image[name]) for image in group] for group in groups]
            return extended([np.concatenate([image[name] for image in group]) for group in groups], (0,))

        return {name: joined(name) for name in self.outputs}


@dataclass(frozen=True, kw_only=True)
class CappedSplitFamily(SplitFamily):
    """UltraV-BERT: like Idefics3, but with a limit on the number of tiles.

    Attributes:
        max_image_tiles: the largest number of tiles.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 3072})
    max_image_size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 512})
    max_image_tiles: int = 27
    torchvision_only: bool = True

    @property
    def _bounds(self) -> SizeArguments:
        return SizeArguments(self.tile[0], self.max_image_tiles, self.size["longest_edge"])

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.max_image_tiles < 1:
            raise PresetError(f"`max_image_tiles` must be positive. Got: {self.max_image_tiles}")

    def first_size(self, images: DataNode) -> DataNode:
        if not self.do_image_splitting:
            return super().first_size(images)
        bounds = self._bounds
        size, _ = fn.fitted_size(
            images, rule="idefics3-capped", factor=bounds.factor, least=bounds.least, most=bounds.most
        )
        return size

    def _first_fit(self, height: int, width: int) -> Fit:
        return fitted("idefics3-capped", height, width, self._bounds)


def _square(size: object) -> dict[str, int]:
    """Return a `size` as a mapping, after checking that height and width are equal."""
    sides = size_of(size, True, "`size`", _SQUARE)
    if sides["height"] != sides["width"]:
        raise PresetError(f"`size` must be square. Got: {sides}")
    return sides


@dataclass(frozen=True, kw_only=True)
class LlamaFamily(_TileFamily):
    """Llama 4: tiles of a canvas with the image in its upper left corner, then the whole image. Values are rounded to bfloat16, and
    returned as float32.

    Attributes:
        max_patches: the largest number of tiles of a canvas.
        resize_to_max_canvas: enlarge images as far as the largest canvas allows.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 336, "width": 336})
    torchvision_only: bool = True
    max_patches: int = 16
    resize_to_max_canvas: bool = False

    names = (PIXELS, "aspect_ratios")
    concatenated = (PIXELS,)
    tells_by = ("patch_size", "pixel_shuffle_ratio_inverse")
    bfloat16 = True

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        return {**settings, "size": _square(settings["size"])}

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_rescale and self.do_normalize):
            raise PresetError("Llama 4 is supported only where it rescales and normalizes")

    def fuses_factor(self, backend: str) -> bool:
        return False

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile = list(self.tile)
        size, canvas = fn.fitted_size(
            data, rule="llama4", most=self.max_patches, least=int(self.resize_to_max_canvas), tile=tile
        )
        tiles = fn.image_tiles(
            self.resized(data, backend, size),
            self.resized(data, backend, tile),
            tile=tile,
            canvas=canvas,
            whole_at="last",
            alone=False,
            **self.normalizing(backend) | {"reference": "bfloat16"},
            name=PIXELS,
        )
        ratios = fn.cast(canvas // types.Constant(tile[0], dtype=types.INT32), dtype=types.INT64, name="aspect_ratios")
        return tiles, ratios

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        arguments = SizeArguments(1, int(self.resize_to_max_canvas), self.max_patches, (), self.tile)
        fit = fitted("llama4", height, width, arguments)
        tiles = (fit.canvas_height // self.tile[0]) * (fit.canvas_width // self.tile[1])
        side = self.tile[0] // model["patch_size"]
        return (tiles + (tiles > 1)) * math.ceil(side * side / model["pixel_shuffle_ratio_inverse"] ** 2)


@dataclass(frozen=True, kw_only=True)
class MllamaFamily(_TileFamily):
    """Llama 3.2 Vision: tiles of a canvas with the image in its upper left corner, padded to a fixed number of tiles.

    Attributes:
        max_image_tiles: the number of tiles to which images are padded.
        do_pad: must be set; transformers' processor requires this, too.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    max_image_tiles: int = 4
    do_pad: bool = True

    names = (PIXELS, "aspect_ratio_ids", "aspect_ratio_mask", "num_tiles")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        return {**settings, "size": _square(settings["size"])}

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_pad or self.max_image_tiles < 1:
            raise PresetError(
                "Llama 3.2 Vision is supported only where `do_pad` is set, and `max_image_tiles` positive"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile, max_tiles = list(self.tile), self.max_image_tiles
        size, canvas = fn.fitted_size(data, rule="mllama", most=max_tiles, tile=tile)
        tiles = fn.image_tiles(
            self.resized(data, backend, size),
            tile=tile,
            canvas=canvas,
            length=max_tiles,
            **self.normalizing(backend),
            name=PIXELS,
        )
        rows, columns = (canvas[axis] // types.Constant(tile[0], dtype=types.INT32) for axis in (0, 1))
        known = arrangements(max_tiles)
        keys = [one * (max_tiles + 1) + other for one, other in known]
        numbers = fn.lookup_table(
            rows * types.Constant(max_tiles + 1, dtype=types.INT32) + columns,
            keys=keys,
            values=[float(number) for number in range(1, len(known) + 1)],
            dtype=types.INT64,
            name=self.names[1],
        )
        count = fn.cast(rows * columns, dtype=types.INT64)
        places = types.Constant(list(range(max_tiles)), dtype=types.INT64, shape=[max_tiles])
        mask = fn.cast(places < count, dtype=types.INT64, name=self.names[2])
        return tiles, numbers, mask, fn.copy(count, name=self.names[3])

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Llama 3.2 Vision has one token for an image, to which it attends across")

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        values: Values = {
            name: extended([np.stack([image[name] for image in group]) for group in groups], (0,))
            for name in self.names[:3]
        }
        # For images that a prompt lacks, the first tile counts as present, as in transformers.
        values[self.names[2]][..., 0] = 1
        return values | {self.names[3]: [[int(image[self.names[3]]) for image in group] for group in groups]}


@dataclass(frozen=True, kw_only=True)
class Idefics2Family(ImageFamily):
    """Idefics2, which limits the lengths of both sides, and pads to the largest height and width of a call.

    Attributes:
        size: `shortest_edge` and `longest_edge`, the bounds of a side's length; or `height` and `width`.
        do_pad: whether to pad images and to return a mask of the pixels that are not padding.
        do_image_splitting: must be false.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 378, "longest_edge": 980})
    do_pad: bool = True
    do_image_splitting: bool = False

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(
            settings["size"], False, "`size`", frozenset({"shortest_edge", "longest_edge"}), _SQUARE
        )
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if self.do_image_splitting:
            raise PresetError("`do_image_splitting`: no preset of Idefics2 splits images")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return (self.normalized(self._fitted(data, backend) if self.do_resize else data, backend),)

    def _fitted(self, images: DataNode, backend: str) -> DataNode:
        size = self.size
        if "height" in size:
            return self.resized(images, backend, [size["height"], size["width"]])
        target, _ = fn.fitted_size(images, rule="idefics2", least=size["shortest_edge"], most=size["longest_edge"])
        return self.resized(images, backend, target)

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        values = [[image[PIXELS] for image in group] for group in groups]
        if not self.do_pad:
            shapes = {value.shape for group in values for value in group} | {(len(group),) for group in values}
            return {PIXELS: np.array(values) if len(shapes) == 2 else values}
        flat = [value for group in values for value in group]
        masks = [np.ones(value.shape[1:], np.int64) for value in flat]
        starts = np.cumsum([len(group) for group in values])[:-1]
        arrays = ((PIXELS, extended(flat, (1, 2))), (_MASK, extended(masks, (0, 1))))
        return {name: extended(np.split(array, starts), (0,)) for name, array in arrays}
