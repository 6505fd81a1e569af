"""Image processors that return the whole image, and slices of large images: MiniCPM-V, Step 3.7, LFM2-VL, Phi-4, Aria, Molmo 2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments, fitted
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Features,
    FloatFamily,
    PresetError,
    Values,
    extended,
    fitted_sizes,
    in_corner,
    named,
    size_of,
)
from penstock.presets.fixed import NO_CROP, NO_PAD, OPENAI

_MASK, _SHAPES = "pixel_attention_mask", "spatial_shapes"


@dataclass(frozen=True, kw_only=True)
class _SliceFamily(FloatFamily):
    """Base class of families that return slices of images."""

    def _resized_by(self, data: DataNode, backend: str, rule: str, bounds: SizeArguments) -> tuple[DataNode, DataNode]:
        """Return images resized by a rule, and the sizes of the canvases that the rule computes."""
        size, canvas = fitted_sizes(data, rule, bounds)
        return self.resized(data, backend, size), canvas


@dataclass(frozen=True, kw_only=True)
class MiniCPMFamily(_SliceFamily):
    """MiniCPM-V: patches of the whole image and of its slices, concatenated for all images of a call.

    Attributes:
        slice_mode: whether to slice large images.
        max_slice_nums: the largest number of slices of an image.
        scale_resolution: the side, in pixels, of a square with about as many pixels as the resized whole image and as a slice.
        patch_size: the side of a patch, in pixels.
        downsample_mode: `16x` or `4x`: how many patches become one token.
        use_image_id: accepted without effect: it concerns the text.
    """

    resample: int = 3
    slice_mode: bool = True
    max_slice_nums: int = 9
    scale_resolution: int = 448
    patch_size: int = 14
    downsample_mode: str = "16x"
    use_image_id: bool = True
    ignored: frozenset[str] = frozenset({"size"}) | NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "target_sizes", "grids", "num_patches_per_image")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        for key in ("max_slice_nums", "scale_resolution", "patch_size"):
            if settings[key] < 1:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        if settings["downsample_mode"] not in ("4x", "16x"):
            raise PresetError(f"`downsample_mode` must be '4x' or '16x'. Got: {settings['downsample_mode']!r}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_resize:
            raise PresetError("`do_resize` must be true: MiniCPM-V's presets always resize images")

    @property
    def _merged(self) -> int:
        """The side, in patches, of the squares of patches that become one token."""
        return 2 if self.downsample_mode == "4x" else 4

    @property
    def _bounds(self) -> SizeArguments:
        side = self.patch_size
        slices = self.max_slice_nums if self.slice_mode else 1
        return SizeArguments(side * self._merged, slices, self.scale_resolution, (), (side, side))

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        pixels, sizes, arrangement, count = self.patched(data, backend)
        return (
            fn.expand_dims(pixels, axes=[0], name=self.names[0]),
            named(sizes, self.names[1], 2),
            fn.cast(arrangement, dtype=types.INT64, name=self.names[2]),
            fn.copy(count, name=self.names[3]),
        )

    def patched(self, data: DataNode, backend: str) -> tuple[DataNode, DataNode, DataNode, DataNode]:
        """Return four nodes: the concatenated patches; the numbers of rows and columns of patches for the whole image and for each slice;
        the numbers of rows and columns of slices; and the number of pictures, which are the whole image and the slices.
        """
        whole, _ = self._resized_by(data, backend, "minicpm", self._bounds)
        large, tile = self._resized_by(data, backend, "minicpm-slices", self._bounds)
        # For an image without slices, the rule returns a tile of the size of a patch.
        sliced = fn.cast(tile[0] > types.Constant(self.patch_size, dtype=types.INT32), dtype=types.INT32)
        settings: Values = {"patch": self.patch_size, "beside": True, **self.normalizing(backend)}
        pixels, grids = fn.image_patches(large, whole, tile=tile * sliced, **settings)
        arrangement = large.shape(dtype=types.INT32)[:2] // tile * sliced
        return pixels, fn.cast(grids[:, 1:], dtype=types.INT32), arrangement, grids.shape()[0]

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        whole = fitted("minicpm", height, width, self._bounds)
        large = fitted("minicpm-slices", height, width, self._bounds)
        area = self._bounds.factor**2
        sliced = large.canvas_height > self.patch_size
        return (whole.height * whole.width + sliced * large.height * large.width) // area

    def joined(self, images: Sequence[Features]) -> Values:
        pixels, sizes, grids, counts = self.names
        return {
            pixels: np.concatenate([image[pixels] for image in images], axis=-1),
            sizes: np.concatenate([image[sizes] for image in images]),
            grids: [image[grids].tolist() for image in images],
            counts: [int(image[counts]) for image in images],
        }


@dataclass(frozen=True, kw_only=True)
class MiniCPMOcrFamily(MiniCPMFamily):
    """MiniCPM-OCR.

    Attributes:
        small_image_upsize: must be `always`: presets do not detect the text size of small images.
    """

    downsample_mode: str = "4x"
    small_image_upsize: str = "always"
    torchvision_only: bool = True

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.small_image_upsize != "always":
            raise PresetError(f"`small_image_upsize` must be 'always'. Got: {self.small_image_upsize!r}")


@dataclass(frozen=True, kw_only=True)
class Step3Family(_SliceFamily):
    """Step 3.7: the whole image, and windows of the image that are resized to one size.

    Attributes:
        size: the `height` and `width` of the whole image; the height is used for both.
        patch_size: the side of a resized window, in pixels.
        max_image_size: the greatest length of an image's longer side.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 728, "width": 728})
    patch_size: int = 504
    max_image_size: int = 3024
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "num_local_patches", "pixel_values_local", "patch_newline_masks")
    unchanged = frozenset({"max_image_size"})

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"height", "width"}))
        if min(settings["patch_size"], settings["max_image_size"]) < 1:
            raise PresetError("`patch_size` and `max_image_size` must be positive")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_resize:
            raise PresetError("`do_resize`: Step 3.7 always resizes")

    @property
    def _bounds(self) -> SizeArguments:
        return SizeArguments(most=self.max_image_size, tile=(self.size["height"], self.patch_size))

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        size, square = fitted_sizes(data, "step3-whole", self._bounds)
        images = in_corner(data, square)
        whole = self.resized(self.resized(images, backend, size), backend, [self.size["height"]] * 2)
        extents, window = fitted_sizes(data, "step3-windows", self._bounds)
        # For an image without windows, a window of one pixel is cut out, and dropped below.
        cut = self.resized(images, backend, extents)
        windows, counts = fn.crop_boxes(cut, fn.tile_boxes(cut, tile=window))
        enlarged = self.normalized(self.resized(windows, backend, [self.patch_size] * 2), backend, None)
        one = types.Constant(1, dtype=types.INT32)
        rows, columns = ((cut.shape(dtype=types.INT32)[axis] + window[0] - one) // window[0] for axis in (0, 1))
        area = cut.shape(dtype=types.INT32)[0] * cut.shape(dtype=types.INT32)[1]
        count = fn.cast(area >= window[0], dtype=types.INT32) * rows * columns
        local = fn.slice(fn.collect(enlarged, counts=counts), start=[0], shape=fn.stack(count), axes=[0])
        # The mask is true for the last window of each row of windows, after which the text has a line break, except for the last row.
        breaks = fn.slice(
            fn.ones(shape=fn.stack(rows - one, one), dtype=types.INT32),
            start=fn.stack(types.Constant(0, dtype=types.INT32), one - columns),
            shape=fn.stack(rows, columns),
            axes=[0, 1],
            out_of_bounds_policy="pad",
        )
        masks = fn.slice(fn.reshape(breaks, shape=[-1]), start=[0], shape=fn.stack(count), axes=[0])
        return (
            self.normalized(whole, backend),
            fn.cast(count, dtype=types.INT64, name=self.names[1]),
            named(local, self.names[2], 4),
            fn.cast(masks, dtype=types.BOOL, name=self.names[3]),
        )

    def joined(self, images: Sequence[Features]) -> Values:
        pixels, counts, local, masks = self.names
        values: Values = {
            pixels: np.stack([image[pixels] for image in images]),
            counts: np.stack([image[counts] for image in images]),
        }
        largest = int(values[counts].max())
        if largest:
            values[local] = np.concatenate([image[local] for image in images])
            values[masks] = [[*image[masks].tolist(), *[False] * (largest - len(image[masks]))] for image in images]
        return values


@dataclass(frozen=True, kw_only=True)
class Lfm2Family(_SliceFamily):
    """LFM2-VL: patches of the tiles of a large image and of the whole image, padded to a fixed number of patches.

    Attributes:
        downsample_factor: the side, in patches, of the squares of patches that become one token.
        do_image_splitting: whether to cut large images into tiles.
        min_tiles, max_tiles: the bounds of the number of tiles.
        use_thumbnail: whether the whole image follows the tiles.
        min_image_tokens, max_image_tokens: the bounds of the whole image's number of tokens.
        encoder_patch_size: the side of a patch, in pixels.
        tile_size: the side of a tile, in pixels.
        max_pixels_tolerance: an image is cut into tiles if it has more pixels than this factor times the greatest number of pixels of a
            whole image.
        return_row_col_info: whether to return the numbers of rows and columns of tiles, and the size of the whole image.
        do_pad: must be set.
    """

    downsample_factor: int = 2
    do_image_splitting: bool = True
    min_tiles: int = 2
    max_tiles: int = 10
    use_thumbnail: bool = True
    min_image_tokens: int = 64
    max_image_tokens: int = 256
    encoder_patch_size: int = 16
    tile_size: int = 512
    max_pixels_tolerance: float = 2.0
    return_row_col_info: bool = False
    do_pad: bool = True
    torchvision_only: bool = True
    # Ignored because transformers' processor computes `max_num_patches` from other settings when it is created.
    ignored: frozenset[str] = frozenset({"size", "pad_size", "max_num_patches"}) | NO_CROP

    unchanged = frozenset({"max_num_patches"})

    concatenated: ClassVar[tuple[str, ...]] = (PIXELS, _MASK, _SHAPES)

    @property
    def outputs(self) -> tuple[str, ...]:
        sizes = ("image_rows", "image_cols", "image_sizes")
        return (PIXELS, _MASK, _SHAPES, *sizes * self.return_row_col_info)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        keys = "downsample_factor", "min_tiles", "min_image_tokens", "encoder_patch_size", "tile_size"
        for key in (*keys, "max_image_tokens", "max_pixels_tolerance"):
            if settings[key] <= 0:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        if settings["min_tiles"] > settings["max_tiles"]:
            raise PresetError(f"`min_tiles` exceeds `max_tiles`: {settings['min_tiles']} and {settings['max_tiles']}")
        if (
            settings["tile_size"] % settings["encoder_patch_size"]
            or settings["tile_size"] == settings["encoder_patch_size"]
        ):
            raise PresetError(
                f"`tile_size` must be several times the patch size, {settings['encoder_patch_size']}. Got: {settings['tile_size']}"
            )
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_pad:
            raise PresetError("`do_pad`: LFM2-VL's presets always pad patches")

    @property
    def _splits(self) -> bool:
        return self.do_image_splitting and (self.min_tiles, self.max_tiles) != (1, 1)

    @property
    def _length(self) -> int:
        """The number of patches to which tiles and whole images are padded."""
        patches = self.max_image_tokens * self.downsample_factor**2
        return max(patches, (self.tile_size // self.encoder_patch_size) ** 2 if self.do_image_splitting else 0)

    @property
    def _bounds(self) -> SizeArguments:
        """The arguments of the rule that computes the size of the whole image."""
        factor = self.encoder_patch_size * self.downsample_factor
        return SizeArguments(factor, self.min_image_tokens * factor**2, self.max_image_tokens * factor**2)

    @property
    def _tiling(self) -> SizeArguments:
        factor, _, most, *_ = self._bounds
        large = math.floor(most * self.max_pixels_tolerance)
        sides = self.tile_size, self.encoder_patch_size
        return SizeArguments(factor, 0, large, ((self.min_tiles, self.max_tiles),), sides)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        settings: Values = {"patch": self.encoder_patch_size, "channels_last": True, "length": self._length}
        settings |= self.normalizing(backend)
        whole, _ = self._resized_by(data, backend, "lfm2", self._bounds)
        one = fn.constant(idata=[1], shape=[], dtype=types.INT64)
        arrangement = (one, fn.copy(one))
        if self._splits:
            large, tile = self._resized_by(data, backend, "lfm2-tiles", self._tiling)
            # For an image without tiles, the rule returns a tile of another size than `tile_size`.
            tiled = fn.cast(tile[0] == types.Constant(self.tile_size, dtype=types.INT32), dtype=types.INT32)
            max_extra_tiles = 2 if self.use_thumbnail else self.max_tiles + 1
            patches, grids, mask = fn.image_patches(
                large, whole, tile=tile * tiled, whole_at="last", whole_from=max_extra_tiles, **settings
            )
            results = [patches, mask, grids[:, 1:]]
            rows = fn.cast(large.shape(dtype=types.INT32)[:2] // tile, dtype=types.INT64)
            arrangement = rows[0], rows[1]
        else:
            patches, grid, mask = fn.image_patches(whole, **settings)
            results = [fn.expand_dims(each, axes=[0]) for each in (patches, mask, grid[1:])]
        outputs = tuple(named(each, name, ndim) for each, name, ndim in zip(results, self.outputs, (3, 2, 2)))
        if not self.return_row_col_info:
            return outputs
        size = fn.cast(whole.shape()[:2], dtype=types.INT64)
        names = self.outputs[3:]
        return (
            *outputs,
            *(fn.copy(each, name=name) for each, name in zip(arrangement, names)),
            named(size, names[2], 1),
        )

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        whole = fitted("lfm2", height, width, self._bounds)
        of_tile = math.ceil(self.tile_size // self.encoder_patch_size / self.downsample_factor) ** 2
        of_whole = whole.height * whole.width // self._bounds.factor**2
        if self._splits:
            large = fitted("lfm2-tiles", height, width, self._tiling)
            tiles = large.height * large.width // self.tile_size**2
            if tiles:
                return tiles * of_tile + (of_whole if self.use_thumbnail and tiles > 1 else 0)
        return of_whole


# The number of Phi-4's tokens for the whole image: merged patches, ends of rows, and a separator.
_PHI4_WHOLE = 256 + 16 + 1


@dataclass(frozen=True, kw_only=True)
class Phi4Family(_SliceFamily):
    """Phi-4 Multimodal: the whole image, then tiles of a white canvas with the image in its upper left corner, and masks.

    Attributes:
        size: `height` and `width` of a tile, which must be equal.
        patch_size: the side of a patch, in pixels; masks have one element for each patch.
        dynamic_hd: the largest number of tiles.
        resample: the filter with which the canvas is reduced to the whole image; to fit the canvas, images are always resized with the
            bilinear filter.
    """

    resample: int = 3
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 448, "width": 448})
    patch_size: int = 14
    dynamic_hd: int = 36
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = ("image_pixel_values", "image_sizes", "image_attention_mask", "num_img_tokens")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"height", "width"}))
        side, patch = settings["size"]["height"], settings["patch_size"]
        if side != settings["size"]["width"] or not 1 <= patch <= side or side // patch % 2:
            raise PresetError(
                f"`size` must be square, and of an even number of patches. Got: {settings['size']}, {patch}"
            )
        if settings["dynamic_hd"] < 1:
            raise PresetError(f"`dynamic_hd` must be positive. Got: {settings['dynamic_hd']}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.filter_of(backend) == "lanczos":
            raise PresetError("`resample`: presets cannot resize float images with lanczos")

    @property
    def _side(self) -> int:
        return self.size["height"]

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        tile, cells = [self._side] * 2, self._side // self.patch_size
        size, canvas = fn.fitted_size(data, rule="phi4", most=self.dynamic_hd, tile=tile)
        images = fn.resize(data, size=size, reference=backend, interpolation="bilinear")
        extents = fn.cast(canvas, dtype=types.FLOAT)
        white = fn.crop(
            images,
            crop_h=extents[0],
            crop_w=extents[1],
            crop_pos_x=0.0,
            crop_pos_y=0.0,
            out_of_bounds_policy="pad",
            fill_values=[255],
        )
        floats = self.normalized(white, backend, None)
        whole = fn.resize(floats, size=tile, reference=backend, interpolation=self.filter_of(backend), antialias=False)
        tiles = fn.image_tiles(white, whole, tile=tile, canvas=canvas, name=self.names[0], **self.normalizing(backend))
        patch, across = (types.Constant(each, dtype=types.INT32) for each in (self.patch_size, cells))
        grid = canvas // types.Constant(self._side, dtype=types.INT32)
        filled = grid * across - (canvas - fn.cast(size, dtype=types.INT32)) // patch
        mask = fn.pad(fn.ones(shape=filled, dtype=types.FLOAT), axes=[0, 1], shape=grid * across)
        squares = fn.reshape(mask, shape=fn.stack(grid[0], across, grid[1], across))
        squares = fn.reshape(fn.transpose(squares, perm=[0, 2, 1, 3]), shape=[-1, cells, cells])
        of_whole = fn.ones(shape=[1, cells, cells], dtype=types.FLOAT)
        # Tokens are made from every second row and column of patches, and each row ends with another token.
        rows, columns = ((filled[axis] + 1) // types.Constant(2, dtype=types.INT32) for axis in (0, 1))
        return (
            tiles,
            fn.cast(canvas, dtype=types.INT64, name=self.names[1]),
            fn.cat(of_whole, squares, name=self.names[2]),
            fn.cast(rows * columns + rows + _PHI4_WHOLE, dtype=types.INT64, name=self.names[3]),
        )

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = fitted("phi4", height, width, SizeArguments(most=self.dynamic_hd, tile=(self._side, self._side)))
        cells = self._side // self.patch_size
        rows, columns = (
            -(-(extent // self._side * cells - (extent - side) // self.patch_size) // 2)
            for side, extent in zip(fit[:2], fit[2:])
        )
        return rows * columns + rows + _PHI4_WHOLE

    def joined(self, images: Sequence[Features]) -> Values:
        pixels, _, masks, _ = self.names
        values = super().joined(images)
        shown = [image[masks] for image in images]
        largest = max(map(len, shown))
        # The masks of tiles that an image lacks are ones.
        full = [np.pad(each, ((0, largest - len(each)), (0, 0), (0, 0)), constant_values=1) for each in shown]
        return values | {pixels: extended([image[pixels] for image in images], (0,)), masks: np.stack(full)}


# The unit of Aria's canvases in pixels, and the heights and widths of the canvases in units.
_ARIA_UNIT_PIXELS = 490
_ARIA_CANVASES = (
    *((1, across) for across in range(2, 9)),
    *((2, 4), (2, 3), (2, 2), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (6, 1), (7, 1), (8, 1)),
)
_ARIA_TOKENS = {490: 128, 980: 256}


@dataclass(frozen=True, kw_only=True)
class AriaFamily(_SliceFamily):
    """Aria: the whole image, or parts of the image on a canvas, each in the upper left corner of a square and with a mask.

    Attributes:
        max_image_size: the side of the square: 490 or 980 pixels.
        min_image_size: the smallest length of a side of the resized image or part.
        split_image: whether to cut images into parts.
        split_resolutions: the heights and widths of the canvases.
    """

    resample: int = 3
    max_image_size: int = 980
    min_image_size: int = 336
    split_image: bool = False
    split_resolutions: Sequence[Sequence[int]] = tuple(
        (_ARIA_UNIT_PIXELS * down, _ARIA_UNIT_PIXELS * across) for down, across in _ARIA_CANVASES
    )
    ignored: frozenset[str] = frozenset({"size"}) | NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "pixel_mask", "num_crops")
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS, "pixel_mask")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if (
            settings["max_image_size"] not in _ARIA_TOKENS
            or not 1 <= settings["min_image_size"] <= settings["max_image_size"]
        ):
            raise PresetError(
                f"`max_image_size` must be 490 or 980, and `min_image_size` at most as large. Got: {settings['max_image_size']}, "
                f"{settings['min_image_size']}"
            )
        canvases = settings["split_resolutions"]
        fits = isinstance(canvases, (list, tuple)) and canvases
        if not fits or not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in canvases):
            raise PresetError(
                f"`split_resolutions` must be a list of pairs (height, width), not empty. Got: {canvases!r}"
            )
        return settings

    @property
    def _canvases(self) -> SizeArguments:
        return SizeArguments(canvases=tuple((int(high), int(wide)) for high, wide in self.split_resolutions))

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        side = self.max_image_size
        if not self.split_image:
            values, masks = self._on_squares(data, backend)
            count = fn.constant(idata=[1], shape=[], dtype=types.INT64, name=self.names[2])
            return named(values, self.names[0], 4), fn.expand_dims(masks, axes=[0], name=self.names[1]), count
        images, canvas = self._resized_by(data, backend, "llava-next", self._canvases)
        if not any(extent % side for pair in self._canvases.canvases for extent in pair):
            return self._as_squares(images, canvas, backend)
        extents = fn.cast(canvas, dtype=types.FLOAT)
        whole = fn.crop(
            images,
            crop_h=extents[0],
            crop_w=extents[1],
            rounding="truncate",
            out_of_bounds_policy="pad",
            fill_values=[0],
        )
        parts, counts = fn.crop_boxes(whole, fn.tile_boxes(whole, tile=[side, side]))
        values, masks = self._on_squares(parts, backend)
        return (
            fn.collect(values, counts=counts, join="cat", name=self.names[0]),
            fn.collect(masks, counts=counts, name=self.names[1]),
            fn.cast(counts, dtype=types.INT64, name=self.names[2]),
        )

    def _as_squares(self, images: DataNode, canvas: DataNode, backend: str) -> tuple[DataNode, ...]:
        """Return the outputs for images centred on canvases that consist of whole squares, which are the parts."""
        side = types.Constant(self.max_image_size, dtype=types.INT32)
        square = [self.max_image_size] * 2
        values = fn.image_tiles(
            images, tile=square, canvas=canvas, centred=True, name=self.names[0], **self.normalizing(backend)
        )
        count = canvas[0] // side * (canvas[1] // side)
        return (
            values,
            fn.ones(shape=fn.stack(count, side, side), dtype=types.BOOL, name=self.names[1]),
            fn.cast(count, dtype=types.INT64, name=self.names[2]),
        )

    def _on_squares(self, data: DataNode, backend: str) -> tuple[DataNode, DataNode]:
        """Return images resized and put in the upper left corners of squares, and masks of the squares' pixels that belong to images."""
        bounds = SizeArguments(1, self.min_image_size, self.max_image_size)
        images, _ = self._resized_by(data, backend, "aria", bounds)
        square, channel = [self.max_image_size] * 2, images[:, :, 0]
        values = fn.image_tiles(images, tile=square, canvas=square, **self.normalizing(backend))
        mask = fn.pad(fn.cast(channel == channel, dtype=types.UINT8), axes=[0, 1], shape=square)
        return values, fn.cast(mask, dtype=types.BOOL)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        side, parts = self.max_image_size, 1
        if self.split_image:
            fit = fitted("llava-next", height, width, self._canvases)
            parts = math.ceil(fit.canvas_height / side) * math.ceil(fit.canvas_width / side)
        return parts * _ARIA_TOKENS[side]

    def joined(self, images: Sequence[Features]) -> Values:
        largest = max(int(image[self.names[2]]) for image in images)
        return super().joined(images) | {self.names[2]: np.array(largest)}


@dataclass(frozen=True, kw_only=True)
class MolmoFamily(_SliceFamily):
    """Molmo 2: patches of the whole image and of overlapping crops, and the indices of the patches to pool.

    Attributes:
        size: `height` and `width` of the whole image and of a crop, which must be equal.
        max_crops: the largest number of crops of an image.
        overlap_margins: the numbers of patches at the beginning and at the end of a crop that it shares with its neighbours.
        patch_size: the side of a patch, in pixels.
        pooling_size: the numbers of rows and columns of patches that become one token.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 378, "width": 378})
    max_crops: int = 8
    overlap_margins: Sequence[int] = (4, 4)
    patch_size: int = 14
    pooling_size: Sequence[int] = (2, 2)
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "image_token_pooling", "image_grids", "image_num_crops")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"height", "width"}))
        side, patch = settings["size"]["height"], settings["patch_size"]
        if side != settings["size"]["width"] or patch < 1 or side % patch or settings["max_crops"] < 1:
            raise PresetError(
                "`size` must be square, and of whole patches (`patch_size`); `max_crops` must be positive"
            )
        for key, lowest in (("overlap_margins", 0), ("pooling_size", 1)):
            pair = settings[key]
            if not isinstance(pair, (list, tuple)) or len(pair) != 2 or min(pair) < lowest:
                raise PresetError(f"`{key}` must be two numbers, of at least {lowest}. Got: {pair!r}")
        if sum(settings["overlap_margins"]) >= side // patch:
            raise PresetError(
                f"The sum of `overlap_margins` must be less than the number of patches along a crop. Got: {settings['overlap_margins']}"
            )
        return settings

    @property
    def _bounds(self) -> SizeArguments:
        margin = sum(self.overlap_margins) * self.patch_size
        return SizeArguments(most=self.max_crops, tile=(self.size["height"] - margin, margin))

    def resized(self, images: DataNode, backend: str, size: DataNode | list[int]) -> DataNode:
        # transformers' processor resizes float images and rounds the results, which differ from those of resizing uint8 images.
        return fn.resize(
            images,
            size=size,
            reference=backend,
            interpolation=self.filter_of(backend),
            antialias=False,
            as_floats=True,
        )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        settings: Values = {"patch": self.patch_size, "channels_last": True, **self.normalizing(backend)}
        tile, cells = [self.size["height"]] * 2, self.size["height"] // self.patch_size
        canvases, _ = self._resized_by(data, backend, "molmo2", self._bounds)
        whole, step = self.resized(data, backend, tile), [self._bounds.tile[0]] * 2
        patches, grids = fn.image_patches(canvases, whole, tile=tile, stride=step, **settings)
        indices, grid = fn.pooled_patches(
            canvases,
            crop=tile[0],
            patch=self.patch_size,
            margins=list(self.overlap_margins),
            pool=list(self.pooling_size),
        )
        return (
            fn.reshape(patches, shape=[-1, cells * cells, CHANNELS * self.patch_size**2], name=self.names[0]),
            named(indices, self.names[1], 2),
            named(grid, self.names[2], 1),
            fn.copy(grids.shape()[0], name=self.names[3]),
        )

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit, side = fitted("molmo2", height, width, self._bounds), self.size["height"]
        pictures = (fit.height, fit.width), (side, side)
        return sum(
            math.prod(-(-(extent // self.patch_size) // pool) for extent, pool in zip(extents, self.pooling_size))
            for extents in pictures
        )

    def joined(self, images: Sequence[Features]) -> Values:
        pixels, indices, *others = self.names
        starts = np.cumsum([0, *(math.prod(image[pixels].shape[:2]) for image in images[:-1])])
        values = [image[indices] for image in images]
        return super().joined(images) | {
            pixels: np.concatenate([image[pixels] for image in images]),
            # Indices count the patches of all images of the call.
            indices: np.concatenate(
                [np.where(each < 0, each, each + start) for each, start in zip(values, starts)]
            ).astype(values[0].dtype),
            **{name: np.stack([image[name] for image in images]) for name in others},
        }
