"""Image processors that keep an image's shape, and cut it into patches: Qwen-VL, GLM-4V, PaddleOCR-VL, SigLIP 2, Pixtral."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import Fit, SizeArguments, fitted
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Features,
    ImageFamily,
    PresetError,
    Values,
    checked_extents,
    extended,
    image_sizes,
    named,
    size_of,
)
from penstock.presets.fixed import OPENAI

_GRID = "image_grid_thw"
_BOTH_EDGES = frozenset({"shortest_edge", "longest_edge"})


@dataclass(frozen=True, kw_only=True)
class PatchFamily(ImageFamily):
    """Resizes to whole patches, of which there are about as many as the image has pixels to offer.

    Attributes:
        rule: of :func:`fn.fitted_size`.
        size: `shortest_edge` and `longest_edge`: the least and the most pixels.
        min_pixels, max_pixels: the same, older names, which take precedence; 0: not given.
        patch_size: extent of a patch.
        temporal_patch_size: frames in a patch.
        merge_size: so many patches on a side become one token.
        flat: a patch is a row of values, not an image; then patches are grouped by token.
    """

    rule: str = "qwen2-vl"
    resample: int = 3
    size: Mapping[str, int]
    min_pixels: int = 0
    max_pixels: int = 0
    patch_size: int = 14
    temporal_patch_size: int = 2
    merge_size: int = 2
    flat: bool = True

    names: ClassVar[tuple[str, ...]] = (PIXELS, _GRID)
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)
    hidden = frozenset({"rule", "flat"})

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        size = dict(own["size"]) if isinstance(own["size"], Mapping) else {}
        for key, older in (("shortest_edge", "min_pixels"), ("longest_edge", "max_pixels")):
            if own[older]:
                size[key], own[older] = own[older], 0
        own["size"] = size_of(size, False, "`size`", _BOTH_EDGES)
        for key in ("patch_size", "temporal_patch_size", "merge_size"):
            if own[key] < 1:
                raise PresetError(f"`{key}` is positive. Got: {own[key]}")
        return own

    def fit(self, height: int, width: int) -> Fit:
        """The size that an image is given."""
        arguments = SizeArguments(self._factor, self.size["shortest_edge"], self.size["longest_edge"])
        return fitted(self.rule, height, width, arguments)

    @property
    def _factor(self) -> int:
        return self.patch_size * self.merge_size

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        pixels, grid = self.names
        images = data
        if self.do_resize:
            size, _ = fn.fitted_size(
                data,
                rule=self.rule,
                factor=self._factor,
                least=self.size["shortest_edge"],
                most=self.size["longest_edge"],
            )
            images = self.resized(data, backend, size)
        patches, grids = fn.image_patches(
            images,
            patch=self.patch_size,
            merge=self.merge_size if self.flat else 1,
            temporal=self.temporal_patch_size,
            **self.normalizing(backend),
        )
        if self.flat:
            return named(patches, pixels, 2), named(grids, grid, 1)
        side = self.patch_size
        shape = [-1, CHANNELS * self.temporal_patch_size, side, side]
        return fn.reshape(patches, shape=shape, name=pixels), named(grids, grid, 1)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = self.fit(height, width) if self.do_resize else Fit(height, width, height, width)
        return (fit.height // self._factor) * (fit.width // self._factor)


QWEN2_VL = PatchFamily(size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}, **OPENAI)
GLM4V = PatchFamily(rule="glm4v", size={"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 15000}, **OPENAI)
PADDLEOCR_VL = PatchFamily(
    rule="paddleocr-vl",
    size={"shortest_edge": 384 * 384, "longest_edge": 1536 * 1536},
    temporal_patch_size=1,
    flat=False,
    **OPENAI,
)


@dataclass(frozen=True, kw_only=True)
class VideoFamily(PatchFamily):
    """Videos of Qwen-VL, whose frames were chosen before.

    Attributes:
        cap_pixels_per_frame: must be false.
        do_sample_frames, fps, num_frames, min_frames, max_frames, max_video_tokens: accepted: frames are taken as they are
            given.
    """

    cap_pixels_per_frame: bool = False
    do_sample_frames: bool = False
    fps: float = 2.0
    num_frames: int = 0
    min_frames: int = 4
    max_frames: int = 768
    max_video_tokens: int = 0

    kind = "videos"
    names = ("pixel_values_videos", "video_grid_thw")
    concatenated = ("pixel_values_videos",)

    def check(self, backend: str) -> None:
        super().check(backend)
        if backend != "torchvision":
            raise PresetError("Videos have no variant of `pil`")
        if self.cap_pixels_per_frame:
            raise PresetError("`cap_pixels_per_frame`: no preset bounds a video's pixels by its frames")

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        frames, height, width = checked_extents(size, ("frames", "height", "width"))
        fit = Fit(height, width, height, width)
        if self.do_resize:
            bounds = SizeArguments(self._factor, self.size["shortest_edge"], self.size["longest_edge"], frames=frames)
            fit = fitted(self.rule, height, width, bounds)
        return -(-frames // self.temporal_patch_size) * (fit.height // self._factor) * (fit.width // self._factor)


QWEN2_VL_VIDEO = VideoFamily(size={"shortest_edge": 128 * 28 * 28, "longest_edge": 28 * 28 * 768}, **OPENAI)
QWEN3_VL_VIDEO = VideoFamily(
    rule="qwen3-vl-video",
    size={"shortest_edge": 128 * 32 * 32, "longest_edge": 32 * 32 * 768},
    patch_size=16,
)


@dataclass(frozen=True, kw_only=True)
class SigLIP2Family(ImageFamily):
    """SigLIP 2 of any shape: patches up to a number, padded to it.

    Attributes:
        patch_size: extent of a patch.
        max_num_patches: so many patches an image becomes at the most, and is padded to.
    """

    patch_size: int = 16
    max_num_patches: int = 256

    names = (PIXELS, "pixel_attention_mask", "spatial_shapes")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            size, _ = fn.fitted_size(data, rule="siglip2", factor=self.patch_size, most=self.max_num_patches)
            images = self.resized(data, backend, size)
        patches, grid, mask = fn.image_patches(
            images,
            patch=self.patch_size,
            channels_last=True,
            length=self.max_num_patches,
            **self.normalizing(backend),
        )
        outputs = (patches, 2), (mask, 1), (grid[1:], 1)
        return tuple(named(node, name, ndim) for name, (node, ndim) in zip(self.names, outputs))

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = fitted("siglip2", height, width, SizeArguments(self.patch_size, most=self.max_num_patches))
        return (fit.height // self.patch_size) * (fit.width // self.patch_size)


@dataclass(frozen=True, kw_only=True)
class PixtralFamily(ImageFamily):
    """Pixtral: whole patches, left where they are.

    Attributes:
        size: `longest_edge`: the most pixels of a side.
        patch_size: `height` and `width`, which are equal.
    """

    resample: int = 3
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 1024})
    patch_size: Mapping[str, int] = field(default_factory=lambda: {"height": 16, "width": 16})
    do_pad: bool = True

    names = (PIXELS, "image_sizes")
    tells_by = ("spatial_merge_size",)

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        own["size"] = size_of(own["size"], True, "`size`", frozenset({"longest_edge"}))
        own["patch_size"] = size_of(own["patch_size"], True, "`patch_size`", frozenset({"height", "width"}))
        if own["patch_size"]["height"] != own["patch_size"]["width"]:
            raise PresetError(f"`patch_size` is followed where it is square. Got: {own['patch_size']}")
        return own

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            patch = self.patch_size["height"]
            size, _ = fn.fitted_size(data, rule="pixtral", factor=patch, most=self.size["longest_edge"])
            images = self.resized(data, backend, size)
        values = fn.rescale_normalize(images, **self.normalizing(backend), name=PIXELS)
        return values, image_sizes(images, "image_sizes")

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        patch = self.patch_size["height"]
        fit = fitted("pixtral", height, width, SizeArguments(patch, most=self.size["longest_edge"]))
        rows, columns = (side // (patch * model["spatial_merge_size"]) for side in fit[:2])
        # Each row of tokens ends with one that tells so.
        return rows * (columns + 1)

    def joined(self, images: Sequence[Features]) -> Values:
        values = [image[PIXELS] for image in images]
        return {
            PIXELS: extended(values, (1, 2)) if self.do_pad else values,
            "image_sizes": np.stack([image["image_sizes"] for image in images]),
        }
