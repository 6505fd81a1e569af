"""Functions that resize, or move pixels unchanged: flips, crops, borders, frames of videos."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels import pillow
from penstock.plugin.torchvision._kinds import function_for
from penstock.plugin.torchvision._on_pixels import five_regions
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._settings import (
    borders_of,
    crop_anchor,
    crop_borders,
    filter_name,
    pair_of,
    resized_extents,
)
from penstock.plugin.torchvision._typing import Fill, Interpolation, Size, Tensor


@function_for("horizontal_flip", "tensor", "video", "mask")
def _mirrored(image: Tensor) -> Tensor:
    return image.flip(-1)


@function_for("vertical_flip", "tensor", "video", "mask")
def _upside_down(image: Tensor) -> Tensor:
    return image.flip(-2)


@function_for("resize", "tensor", "video")
def resized(
    image: Tensor,
    size: Size | None,
    interpolation: Interpolation = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    """Resize a tensor of images."""
    library, name = torch(), filter_name(interpolation)
    extents = resized_extents((int(image.shape[-2]), int(image.shape[-1])), size, max_size)
    if extents == tuple(image.shape[-2:]):
        return image
    if name in ("box", "hamming"):
        raise NotImplementedError(f"`interpolation='{name}'` is supported for PIL images, not for tensors")
    nearest = name.startswith("nearest")
    if name == "lanczos" and not antialias:
        raise ValueError("`interpolation='lanczos'` needs `antialias=True`")
    shape = (*image.shape[:-2], *extents)
    if image.numel() == 0:
        return image.reshape(shape)
    known = (library.float32, library.float64, library.uint8)
    batch = _pixels_first(image.reshape(-1, *image.shape[-3:]))
    batch = batch if image.dtype in known else batch.to(library.float32)
    result = library.nn.functional.interpolate(
        batch,
        size=list(extents),
        mode=name,
        align_corners=None if nearest else False,
        antialias=bool(antialias) and not nearest,
    )
    if image.dtype not in known and not image.is_floating_point():
        result = result.round_()
    return result.to(image.dtype).reshape(shape)


def _pixels_first(batch: Tensor) -> Tensor:
    """Return a single image with channels last in memory, so that PyTorch recognizes this layout."""
    library = torch()
    count, *shape = batch.shape
    if count == 1 and batch.is_contiguous(memory_format=library.channels_last) and batch.stride(0) != batch.numel():
        return batch.as_strided((1, *shape), (batch.numel(), *batch.stride()[1:]))
    return batch


@function_for("resize", "mask")
def _resized_mask(
    mask: Tensor,
    size: Size | None,
    interpolation: Interpolation = "nearest",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    name = filter_name(interpolation)
    return resized(mask, size, name if name.startswith("nearest") else "nearest", max_size)


@function_for("crop", "tensor", "video", "mask")
def cropped(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """Return a region of an image; what lies outside the image is black."""
    rows, columns = image.shape[-2:]
    bottom, right = top + height, left + width
    part = image[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and right <= columns and bottom <= rows:
        return part
    borders = [
        max(min(right, 0) - left, 0),
        max(right - max(columns, left), 0),
        max(min(bottom, 0) - top, 0),
        max(bottom - max(rows, top), 0),
    ]
    return torch().nn.functional.pad(part, borders)


@function_for("center_crop", "tensor", "video", "mask")
def _middle(image: Tensor, output_size: Size) -> Tensor:
    size = pair_of(output_size, "output_size")
    if image.numel() == 0:
        return image.reshape(*image.shape[:-2], *size)
    left, top, right, bottom = crop_borders((int(image.shape[-2]), int(image.shape[-1])), size)
    if left or top or right or bottom:
        image = torch().nn.functional.pad(image, [left, right, top, bottom])
    rows, columns = image.shape[-2:]
    if (rows, columns) == size:
        return image
    top, left = crop_anchor((int(rows), int(columns)), size)
    return image[..., top : top + size[0], left : left + size[1]]


@function_for("resized_crop", "tensor", "video")
def _resized_crop(
    image: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: Interpolation = "bilinear",
    antialias: bool | None = True,
) -> Tensor:
    return resized(cropped(image, top, left, height, width), size, interpolation, None, antialias)


@function_for("resized_crop", "mask")
def _resized_crop_mask(
    mask: Tensor, top: int, left: int, height: int, width: int, size: Size, **_unused: object
) -> Tensor:
    return resized(cropped(mask, top, left, height, width), size, "nearest")


@function_for("pad", "tensor", "video")
def padded(image: Tensor, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Tensor:
    """Add a border on each side."""
    left, top, right, bottom = borders_of(padding)
    if padding_mode not in pillow.PAD_MODES:
        raise ValueError(f"`padding_mode` must be one of {', '.join(pillow.PAD_MODES)}. Got: {padding_mode!r}")
    values = [0.0] if fill is None else [fill] if isinstance(fill, (int, float)) else list(fill)
    if len(values) > 1 and padding_mode != "constant":
        raise ValueError(f"`fill` has several values, which `padding_mode='{padding_mode}'` does not use")
    if padding_mode == "constant":
        return _framed(image, (left, top, right, bottom), values)
    if padding_mode == "symmetric":
        return _symmetric(image, (left, top, right, bottom))
    library = torch()
    batch = image.reshape(-1, *image.shape[-3:])
    floats = batch if image.is_floating_point() else batch.to(library.float32)
    mode = "replicate" if padding_mode == "edge" else "reflect"
    result = library.nn.functional.pad(floats, [left, right, top, bottom], mode=mode).to(image.dtype)
    return result.reshape(*image.shape[:-2], *result.shape[-2:])


def _framed(image: Tensor, borders: tuple[int, int, int, int], values: Sequence[float]) -> Tensor:
    library, (left, top, right, bottom) = torch(), borders
    if len(values) == 1:
        return library.nn.functional.pad(image, [left, right, top, bottom], value=float(values[0]))
    result = library.nn.functional.pad(image, [left, right, top, bottom])
    colours = library.tensor(list(values), device=image.device).to(image.dtype).reshape(-1, 1, 1)
    height, width = result.shape[-2:]
    for region in (
        (slice(0, max(top, 0)), slice(None)),
        (slice(None), slice(0, max(left, 0))),
        (slice(height - max(bottom, 0), height), slice(None)),
        (slice(None), slice(width - max(right, 0), width)),
    ):
        rows, columns = region
        result[..., rows, columns] = colours
    return result


def _symmetric(image: Tensor, borders: tuple[int, int, int, int]) -> Tensor:
    library, (left, top, right, bottom) = torch(), borders
    inside = image[
        ...,
        max(-top, 0) : image.shape[-2] - max(-bottom, 0),
        max(-left, 0) : image.shape[-1] - max(-right, 0),
    ]
    rows, columns = (
        library.cat([indices[:before].flip(0), indices, indices.flip(0)[:after]])
        for indices, before, after in (
            (library.arange(inside.shape[-2]), max(top, 0), max(bottom, 0)),
            (library.arange(inside.shape[-1]), max(left, 0), max(right, 0)),
        )
    )
    return inside[..., rows[:, None], columns[None, :]]


@function_for("pad", "mask")
def _padded_mask(mask: Tensor, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Tensor:
    if isinstance(fill, (tuple, list)):
        raise ValueError(f"Masks must be filled with a single value. Got: {fill!r}")
    return padded(mask, padding, fill, padding_mode)


@function_for("five_crop", "tensor", "video")
def _five_crops(image: Tensor, size: Size) -> tuple[Tensor, ...]:
    extents = (int(image.shape[-2]), int(image.shape[-1]))
    return tuple(cropped(image, *region) for region in five_regions(extents, size))


@function_for("ten_crop", "tensor", "video")
def _ten_crops(image: Tensor, size: Size, vertical_flip: bool = False) -> tuple[Tensor, ...]:
    return _five_crops(image, size) + _five_crops(image.flip(-2 if vertical_flip else -1), size)


@function_for("uniform_temporal_subsample", "tensor", "video")
def _frames(video: Tensor, num_samples: int) -> Tensor:
    last = video.shape[-4] - 1
    return video.index_select(-4, torch().linspace(0, last, num_samples, device=video.device).long())
