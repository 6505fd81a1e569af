"""Image processors that cut large images into tiles: LLaVA-NeXT and OneVision, InternVL, Idefics3 and SmolVLM, Llama 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import Fit, SizeArguments, fitted
from penstock.presets.family import (
    PIXELS,
    Features,
    ImageFamily,
    PresetError,
    Values,
    extended,
    image_sizes,
    size_of,
)
from penstock.presets.fixed import OPENAI

_SIZES, _MASK = "image_sizes", "pixel_attention_mask"
_SQUARE = frozenset({"height", "width"})
# Fewer tokens than so many times too many are left.
_MUCH = 1.1
_LONGEST = frozenset({"longest_edge"})


@dataclass(frozen=True, kw_only=True)
class _TileFamily(ImageFamily):
    """What they share: tiles of one size."""

    size: Mapping[str, int] = field(default_factory=dict)

    @property
    def tile(self) -> tuple[int, int]:
        """Height and width of a tile."""
        edge = self.size.get("shortest_edge", 0)
        return self.size.get("height", edge), self.size.get("width", edge)

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_resize:
            raise PresetError("`do_resize`: no preset of tiles leaves images as large as they are")


@dataclass(frozen=True, kw_only=True)
class AnyresFamily(_TileFamily):
    """LLaVA-NeXT and OneVision: a picture of the whole, and tiles of a canvas on which the image lies in the middle.

    Attributes:
        image_grid_pinpoints: the canvases.
        do_pad: images have as many tiles as the one that has most, by tiles of zeros.
        crop_size: `height` and `width`; must be those of a tile.
        do_center_crop: accepted; a tile is cropped to its own size.
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
        own = super().converted(values)
        own["size"] = size_of(
            own["size"], bool(own["default_to_square"]), "`size`", _SQUARE, frozenset({"shortest_edge"})
        )
        own["crop_size"] = size_of(own["crop_size"], True, "`crop_size`", _SQUARE, frozenset())
        pinpoints = own["image_grid_pinpoints"]
        fits = isinstance(pinpoints, (list, tuple)) and pinpoints
        if not fits or not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in pinpoints):
            raise PresetError(f"`image_grid_pinpoints` are pairs of a height and a width. Got: {pinpoints!r}")
        return own

    def check(self, backend: str) -> None:
        super().check(backend)
        height, width = self.tile
        if height != width:
            raise PresetError(f"`size` is followed where tiles are square. Got: {dict(self.size)}")
        if self.crop_size and (self.crop_size["height"], self.crop_size["width"]) != self.tile:
            raise PresetError(
                f"`crop_size` is followed where it is that of a tile, {self.tile}. Got: {dict(self.crop_size)}"
            )
        for pinpoint in self.image_grid_pinpoints:
            if pinpoint[0] % height or pinpoint[1] % width:
                raise PresetError(
                    f"`image_grid_pinpoints` hold {list(pinpoint)}, which are no whole tiles of {self.tile}"
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
        # Each row of tokens ends with one that tells so.
        return side * side + rows * (columns + 1)

    def _features(self, height: int, width: int, side: int) -> tuple[int, int]:
        """Rows and columns of what a canvas becomes, of tiles of ``side`` squared, less what lies beside the image."""
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
    """LLaVA-OneVision, which tells how many images each prompt has, and bounds the tokens."""

    tells_by = ("patch_size", "max_tiles")

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        side = self.tile[0] // model["patch_size"]
        rows, columns = self._features(height, width, side)
        ratio = math.sqrt(rows * columns / (model["max_tiles"] * side**2))
        if ratio > _MUCH:
            rows, columns = int(rows // ratio), int(columns // ratio)
        return side * side + rows * (columns + 1)

    def joined(self, images: Sequence[Features]) -> Values:
        return super().joined(images) | {"batch_num_images": np.ones(len(images), np.int64)}


_SIDES = range(384, 2304 + 1, 384)
ONEVISION_PINPOINTS = tuple((rows, columns) for rows in _SIDES for columns in _SIDES)


@dataclass(frozen=True, kw_only=True)
class GridFamily(_TileFamily):
    """InternVL and GOT-OCR2: a grid of tiles nearly as wide and high as the image, and then the whole.

    Attributes:
        crop_to_patches: whether there are several tiles.
        min_patches, max_patches: how many.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    resample: int = 3
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 384})
    crop_to_patches: bool = False
    min_patches: int = 1
    max_patches: int = 12

    names = (PIXELS, "num_patches")
    concatenated = (PIXELS,)
    tells_by = ("image_seq_length",)

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        own["size"] = size_of(own["size"], True, "`size`", _SQUARE)
        if not 1 <= own["min_patches"] <= own["max_patches"]:
            raise PresetError(f"`min_patches` to `max_patches`: got {own['min_patches']} to {own['max_patches']}")
        return own

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile = list(self.tile)
        whole = self.resized(data, backend, tile)
        images: tuple[DataNode, ...] = (whole,)
        if self.crop_to_patches:
            size, _ = fn.fitted_size(data, rule="internvl", least=self.min_patches, most=self.max_patches, tile=tile)
            images = (self.resized(data, backend, size), whole)
        tiles = fn.image_tiles(
            *images, tile=tile, whole_at="last", alone=False, **self.normalizing(backend), name=PIXELS
        )
        return tiles, fn.reshape(tiles.shape()[0], shape=[], name="num_patches")

    def fit(self, height: int, width: int) -> Fit:
        """The size that an image is given before it is cut."""
        if not self.crop_to_patches:
            return Fit(*self.tile, *self.tile)
        return fitted("internvl", height, width, SizeArguments(1, self.min_patches, self.max_patches, (), self.tile))

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = self.fit(height, width)
        tiles = (fit.height // self.tile[0]) * (fit.width // self.tile[1])
        return (tiles + (tiles > 1)) * model["image_seq_length"]

    def joined(self, images: Sequence[Features]) -> Values:
        return super().joined(images) | {"num_patches": [int(image["num_patches"]) for image in images]}


@dataclass(frozen=True, kw_only=True)
class SplitFamily(_TileFamily):
    """Idefics3 and SmolVLM: enlarged to whole tiles, which are followed by the whole.

    Attributes:
        size: `longest_edge`, of the image before it is cut.
        max_image_size: `longest_edge`, of a tile.
        do_image_splitting: whether it is cut.
        do_pad: accepted: all tiles are of one size.
    """

    resample: int = 1
    max_image_size: Mapping[str, int] = field(default_factory=dict)
    do_image_splitting: bool = True
    do_pad: bool = True

    names = (PIXELS, _MASK)
    tells_by = ("image_seq_len",)

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        for key in ("size", "max_image_size"):
            own[key] = size_of(own[key], False, f"`{key}`", _LONGEST)
        return own

    @property
    def tile(self) -> tuple[int, int]:
        side = self.max_image_size["longest_edge"]
        return side, side

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile = list(self.tile)
        size, _ = fn.fitted_size(data, rule="idefics3", most=self.size["longest_edge"])
        images = self.resized(data, backend, size)
        pictures: tuple[DataNode, ...] = (self.resized(images, backend, tile),)
        if self.do_image_splitting:
            size, _ = fn.fitted_size(images, rule="idefics3-tiles", factor=tile[0])
            enlarged = self.resized(images, backend, size)
            pictures = (enlarged, self.resized(enlarged, backend, tile))
        tiles = fn.image_tiles(
            *pictures, tile=tile, whole_at="last", alone=False, **self.normalizing(backend), name=PIXELS
        )
        channel = tiles[:, 0]
        if data.device == "gpu":
            # What the host fills would be copied, and is larger than the files: here the GPU makes it.
            return tiles, fn.cast(channel == channel, dtype=types.INT64, name=_MASK)
        return tiles, fn.ones_like(channel, dtype=types.INT64, name=_MASK)

    def fit(self, height: int, width: int) -> Fit:
        """The size that an image is given before it is cut."""
        if not self.do_image_splitting:
            return Fit(*self.tile, *self.tile)
        first = fitted("idefics3", height, width, SizeArguments(most=self.size["longest_edge"]))
        return fitted("idefics3-tiles", first.height, first.width, SizeArguments(self.tile[0]))

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = self.fit(height, width)
        tiles = (fit.height // self.tile[0]) * (fit.width // self.tile[1])
        return (tiles + (tiles > 1)) * model["image_seq_len"]

    def joined(self, images: Sequence[Features]) -> Values:
        return {name: np.concatenate([image[name] for image in images])[None] for name in self.names}


@dataclass(frozen=True, kw_only=True)
class LlamaFamily(_TileFamily):
    """Llama 4: tiles of a canvas in whose corner the image lies, and then the whole; in bfloat16, given as float32.

    Attributes:
        max_patches: so many tiles a canvas has at the most.
        resize_to_max_canvas: images are enlarged as far as a canvas holds.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 336, "width": 336})
    max_patches: int = 16
    resize_to_max_canvas: bool = False

    names = (PIXELS, "aspect_ratios")
    concatenated = (PIXELS,)
    tells_by = ("patch_size", "pixel_shuffle_ratio_inverse")

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        own["size"] = size_of(own["size"], True, "`size`", _SQUARE)
        if own["size"]["height"] != own["size"]["width"]:
            raise PresetError(f"`size` is square. Got: {own['size']}")
        return own

    def check(self, backend: str) -> None:
        super().check(backend)
        if backend != "torchvision" or not (self.do_rescale and self.do_normalize):
            raise PresetError("Llama 4 is followed in the arithmetic of torchvision, where it rescales and normalizes")

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
