"""The transforms as functions: `torchvision.transforms.v2.functional`.

Each function takes a PIL image, a uint8 array (H, W, C), a tensor (..., C, H, W), or one of the `tv_tensors`: boxes, points and masks
are transformed like their images.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.plugin.torchvision import (  # noqa: F401
    _on_boxes,
    _on_pictures,
    _on_pixels,
    _on_tensors,
    tv_tensors,
)
from penstock.plugin.torchvision._conversion import pil_to_tensor, to_image, to_pil_image
from penstock.plugin.torchvision._conversion import to_tensor as _to_tensor
from penstock.plugin.torchvision._kernels import get_kernel, public_kernels, register_kernel
from penstock.plugin.torchvision._kinds import (
    Boxes,
    call,
    canvas_of,
    dimensions_of,
    format_name,
    kind_of,
    registered,
    size_of,
)
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._settings import InterpolationMode
from penstock.plugin.torchvision._typing import (
    BoxFormat,
    Canvas,
    Corners,
    DType,
    Fill,
    Floats,
    Interpolation,
    Leaf,
    PilImage,
    Sample,
    Size,
    Tensor,
)

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "clamp_bounding_boxes",
    "clamp_keypoints",
    "convert_bounding_box_format",
    "convert_image_dtype",
    "crop",
    "elastic",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "gaussian_noise",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "get_kernel",
    "get_num_channels",
    "get_num_frames",
    "get_size",
    "grayscale_to_rgb",
    "hflip",
    "horizontal_flip",
    "invert",
    "is_pure_tensor",
    "jpeg",
    "normalize",
    "pad",
    "permute_channels",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "register_kernel",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "sanitize_bounding_boxes",
    "sanitize_keypoints",
    "solarize",
    "ten_crop",
    "to_dtype",
    "to_grayscale",
    "to_image",
    "to_pil_image",
    "to_tensor",
    "uniform_temporal_subsample",
    "vertical_flip",
    "vflip",
]


def adjust_brightness(inpt: Sample, brightness_factor: float) -> Sample:
    """Brighten by a factor, or darken if the factor is below 1."""
    return call("adjust_brightness", inpt, brightness_factor=brightness_factor)


def adjust_contrast(inpt: Sample, contrast_factor: float) -> Sample:
    """Raise the contrast by a factor, or lower it if the factor is below 1."""
    return call("adjust_contrast", inpt, contrast_factor=contrast_factor)


def adjust_gamma(inpt: Sample, gamma: float, gain: float = 1.0) -> Sample:
    """Compute ``gain * x ** gamma``, on a scale on which white is 1."""
    return call("adjust_gamma", inpt, gamma=gamma, gain=gain)


def adjust_hue(inpt: Sample, hue_factor: float) -> Sample:
    """Rotate the hue by a fraction of a circle, from -0.5 to 0.5."""
    return call("adjust_hue", inpt, hue_factor=hue_factor)


def adjust_saturation(inpt: Sample, saturation_factor: float) -> Sample:
    """Multiply the saturation by a factor; 0 removes the colours."""
    return call("adjust_saturation", inpt, saturation_factor=saturation_factor)


def adjust_sharpness(inpt: Sample, sharpness_factor: float) -> Sample:
    """Sharpen by a factor, or soften if the factor is below 1."""
    return call("adjust_sharpness", inpt, sharpness_factor=sharpness_factor)


def affine(
    inpt: Sample,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation = "nearest",
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Sample:
    """Rotate, shear and scale about the centre, and translate; angles are in degrees."""
    return call(
        "affine",
        inpt,
        angle=angle,
        translate=translate,
        scale=scale,
        shear=shear,
        interpolation=interpolation,
        fill=fill,
        center=center,
    )


def autocontrast(inpt: Sample) -> Sample:
    """Stretch the values of each channel to the full range."""
    return call("autocontrast", inpt)


def center_crop(inpt: Sample, output_size: Size) -> Sample:
    """Crop the middle; a smaller image is padded with black."""
    return call("center_crop", inpt, output_size=output_size)


def crop(inpt: Sample, top: int, left: int, height: int, width: int) -> Sample:
    """Crop a region; what lies outside the image is black."""
    return call("crop", inpt, top=top, left=left, height=height, width=width)


def elastic(inpt: Sample, displacement: Tensor, interpolation: Interpolation = "bilinear", fill: Fill = None) -> Sample:
    """Move each pixel by ``displacement``, a tensor (1, H, W, 2) in units of half the image's width and height."""
    return call("elastic", inpt, displacement=displacement, interpolation=interpolation, fill=fill)


def equalize(inpt: Sample) -> Sample:
    """Equalize the histogram of each channel."""
    return call("equalize", inpt)


def erase(inpt: Sample, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Sample:
    """Overwrite the region at row ``i`` and column ``j`` with ``v``."""
    return call("erase", inpt, i=i, j=j, h=h, w=w, v=v, inplace=inplace)


def five_crop(inpt: Sample, size: Size) -> tuple[Sample, ...]:
    """Return five crops: at the four corners and in the middle."""
    return call("five_crop", inpt, size=size)


def gaussian_blur(inpt: Sample, kernel_size: Size, sigma: Floats | None = None) -> Sample:
    """Blur with a Gaussian filter."""
    return call("gaussian_blur", inpt, kernel_size=kernel_size, sigma=sigma)


def gaussian_noise(inpt: Sample, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Sample:
    """Add Gaussian noise, on a scale on which white is 1."""
    return call("gaussian_noise", inpt, mean=mean, sigma=sigma, clip=clip)


def grayscale_to_rgb(inpt: Sample) -> Sample:
    """Convert images to three channels."""
    return call("grayscale_to_rgb", inpt)


def horizontal_flip(inpt: Sample) -> Sample:
    """Mirror left to right."""
    return call("horizontal_flip", inpt)


def invert(inpt: Sample) -> Sample:
    """Invert the image."""
    return call("invert", inpt)


def jpeg(inpt: Sample, quality: int) -> Sample:
    """Compress as JPEG and decode again."""
    return call("jpeg", inpt, quality=quality)


def normalize(inpt: Sample, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Sample:
    """Compute ``(x - mean) / std`` for each channel."""
    return call("normalize", inpt, mean=mean, std=std, inplace=inplace)


def pad(inpt: Sample, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Sample:
    """Add a border on each side."""
    return call("pad", inpt, padding=padding, fill=fill, padding_mode=padding_mode)


def permute_channels(inpt: Sample, permutation: Sequence[int]) -> Sample:
    """Permute the channels."""
    return call("permute_channels", inpt, permutation=permutation)


def perspective(
    inpt: Sample,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation = "bilinear",
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Sample:
    """Change the perspective, which four corners and their targets define, or eight coefficients."""
    return call(
        "perspective",
        inpt,
        startpoints=startpoints,
        endpoints=endpoints,
        interpolation=interpolation,
        fill=fill,
        coefficients=coefficients,
    )


def posterize(inpt: Sample, bits: int) -> Sample:
    """Reduce each value to its highest ``bits`` bits."""
    return call("posterize", inpt, bits=bits)


def resize(
    inpt: Sample,
    size: Size | None,
    interpolation: Interpolation = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Sample:
    """Resize; see `Resize`."""
    return call("resize", inpt, size=size, interpolation=interpolation, max_size=max_size, antialias=antialias)


def resized_crop(
    inpt: Sample,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: Interpolation = "bilinear",
    antialias: bool | None = True,
) -> Sample:
    """Crop a region and resize it."""
    return call(
        "resized_crop",
        inpt,
        top=top,
        left=left,
        height=height,
        width=width,
        size=size,
        interpolation=interpolation,
        antialias=antialias,
    )


def rgb_to_grayscale(inpt: Sample, num_output_channels: int = 1) -> Sample:
    """Remove the colours."""
    return call("rgb_to_grayscale", inpt, num_output_channels=num_output_channels)


def rotate(
    inpt: Sample,
    angle: float,
    interpolation: Interpolation = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Sample:
    """Rotate counter-clockwise by ``angle`` degrees."""
    return call("rotate", inpt, angle=angle, interpolation=interpolation, expand=expand, center=center, fill=fill)


def solarize(inpt: Sample, threshold: float) -> Sample:
    """Invert values of at least the threshold."""
    return call("solarize", inpt, threshold=threshold)


def ten_crop(inpt: Sample, size: Size, vertical_flip: bool = False) -> tuple[Sample, ...]:
    """Return ten crops: those of :func:`five_crop`, from the image and from its mirror image."""
    return call("ten_crop", inpt, size=size, vertical_flip=vertical_flip)


def to_dtype(inpt: Sample, dtype: DType | None = None, scale: bool = False) -> Sample:
    """Convert to another type, float32 by default; with ``scale``, scale values so that white remains white."""
    return call("to_dtype", inpt, dtype=dtype, scale=scale)


def uniform_temporal_subsample(inpt: Sample, num_samples: int) -> Sample:
    """Select frames of a video at equal distances."""
    return call("uniform_temporal_subsample", inpt, num_samples=num_samples)


def vertical_flip(inpt: Sample) -> Sample:
    """Mirror top to bottom."""
    return call("vertical_flip", inpt)


to_grayscale = rgb_to_grayscale
hflip = horizontal_flip
vflip = vertical_flip
elastic_transform = elastic


def is_pure_tensor(inpt: object) -> bool:
    """Return whether a value is a tensor, and not of a `tv_tensors` class."""
    return kind_of(inpt) == "tensor"


def _image_property(name: str, inpt: Leaf, found: Callable[[Leaf], Any]) -> Any:
    """Return a property of an image, from the kernel registered for the user's class if there is one."""
    custom = registered(name, type(inpt))
    if custom is not None:
        return custom(inpt)
    if kind_of(inpt) is None:
        raise TypeError(f"`{name}` takes an image, a video, a mask, boxes or points. Got: {type(inpt)}")
    return found(inpt)


def get_size(inpt: Any) -> list[int]:
    """Return the height and width of an image, or of the image to which a value belongs."""
    return _image_property("get_size", inpt, lambda image: list(size_of(image)))


def get_image_size(inpt: Any) -> list[int]:
    """Return the width and height of an image. Deprecated: `get_size` returns height and width."""
    warnings.warn("`get_image_size` is deprecated: `get_size` gives height and width", stacklevel=2)
    return list(size_of(inpt))[::-1]


def get_dimensions(inpt: Any) -> list[int]:
    """Return the number of channels, the height and the width of an image."""
    return _image_property("get_dimensions", _image(inpt, "get_dimensions"), lambda image: list(dimensions_of(image)))


def get_num_channels(inpt: Any) -> int:
    """Return the number of channels of an image."""
    return _image_property("get_num_channels", _image(inpt, "get_num_channels"), lambda image: dimensions_of(image)[0])


get_image_num_channels = get_num_channels


def _image(inpt: Leaf, name: str) -> Leaf:
    """Return the value unless it is a mask, boxes or points, which have no channels.

    Raises:
        TypeError: the value is a mask, boxes or points.
    """
    if kind_of(inpt) in ("mask", "boxes", "points"):
        raise TypeError(f"`{name}` takes an image or a video. Got: {type(inpt)}")
    return inpt


def get_num_frames(inpt: Any) -> int:
    """Return the number of frames of a video (..., T, C, H, W)."""
    if kind_of(inpt) not in ("tensor", "video"):
        raise TypeError(f"`get_num_frames` takes a video. Got: {type(inpt)}")
    return _image_property("get_num_frames", inpt, lambda video: int(video.shape[-4]))


def to_tensor(inpt: PilImage | np.ndarray) -> Tensor:
    """Convert a PIL image or an array to a tensor; uint8 becomes floats from 0 to 1. Deprecated: use `to_image`, then
    `to_dtype(..., scale=True)`.
    """
    warnings.warn("`to_tensor` is deprecated: use `to_image`, then `to_dtype(..., scale=True)`", stacklevel=2)
    return _to_tensor(inpt)


def convert_image_dtype(image: Sample, dtype: DType | None = None) -> Sample:
    """Convert to another type, float32 by default, and scale values so that white remains white."""
    return call("to_dtype", image, dtype=dtype, scale=True)


def _is_metadata_given(
    inpt: object, values_given: Sequence[object], name: str, error: type[Exception] = TypeError
) -> bool:
    """Return whether a value contains its format and canvas, as boxes and points do; for a plain tensor, the caller passes them.

    Raises:
        ValueError: a plain tensor lacks its format and canvas, or a `tv_tensors` value comes with them.
        error: the value is neither a tensor, nor boxes, nor points.
    """
    kind = kind_of(inpt)
    if kind not in ("tensor", "boxes", "points"):
        raise error(f"`{name}` takes a tensor. Got: {type(inpt)}")
    if kind == "tensor" and any(value is None for value in values_given):
        raise ValueError(f"`{name}` of a plain tensor needs its format and canvas")
    if kind != "tensor" and any(value is not None for value in values_given):
        raise ValueError(f"`{name}` of `tv_tensors` must not get a format and canvas: the boxes have theirs")
    return kind != "tensor"


def _wrapped(values: Tensor, like: Tensor, **metadata: object) -> Tensor:
    return tv_tensors.classes().wrap(values, like=like, **metadata)


def convert_bounding_box_format(
    inpt: Tensor, old_format: BoxFormat | None = None, new_format: BoxFormat | None = None, inplace: bool = False
) -> Tensor:
    """Convert boxes to another format."""
    if new_format is None:
        raise TypeError("`convert_bounding_box_format` needs a `new_format`")
    if not _is_metadata_given(inpt, [old_format], "convert_bounding_box_format"):
        result = _on_boxes.converted(inpt, format_name(old_format), format_name(new_format))
        return _in_place(inpt, result) if inplace else result
    info = Boxes(inpt)
    plain, name = inpt.as_subclass(torch().Tensor), format_name(new_format)
    result = _on_boxes.converted(plain, info.format, name)
    return _wrapped(_in_place(plain, result) if inplace else result, inpt, format=type(info.kind)[name])


def _in_place(boxes: Tensor, result: Tensor) -> Tensor:
    """Write a result into the memory of the boxes, and return the boxes; if the sizes differ, return the result."""
    return boxes.copy_(result) if result is not boxes and boxes.shape == result.shape else result


def clamp_bounding_boxes(
    inpt: Tensor, format: BoxFormat | None = None, canvas_size: Canvas | None = None, clamping_mode: str | None = "auto"
) -> Tensor:
    """Clamp boxes to the image."""
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"`clamping_mode` must be soft, hard, auto or None. Got: {clamping_mode!r}")
    if not _is_metadata_given(inpt, [format, canvas_size], "clamp_bounding_boxes"):
        if clamping_mode == "auto":
            raise ValueError("`clamp_bounding_boxes` of a plain tensor needs a `clamping_mode`")
        assert canvas_size is not None
        return _on_boxes.clamped(inpt, format_name(format), canvas_size, clamping_mode)
    info = Boxes(inpt)
    mode = info.clamping if clamping_mode == "auto" else clamping_mode
    return _wrapped(_on_boxes.clamped(inpt.as_subclass(torch().Tensor), info.format, info.canvas, mode), inpt)


def clamp_keypoints(inpt: Tensor, canvas_size: Canvas | None = None) -> Tensor:
    """Move points that lie outside the image to its nearest pixel."""
    if not _is_metadata_given(inpt, [canvas_size], "clamp_keypoints"):
        assert canvas_size is not None
        return _on_boxes.clamped_points(inpt, canvas_size)
    return _wrapped(_on_boxes.clamped_points(inpt.as_subclass(torch().Tensor), canvas_of(inpt)), inpt)


def sanitize_bounding_boxes(
    bounding_boxes: Tensor,
    format: BoxFormat | None = None,
    canvas_size: Canvas | None = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return the boxes that lie inside the image and are large enough, and a mask of these boxes."""
    metadata = _is_metadata_given(bounding_boxes, [format, canvas_size], "sanitize_bounding_boxes", ValueError)
    if metadata:
        info = Boxes(bounding_boxes)
        format, canvas_size = info.kind, info.canvas
    assert canvas_size is not None
    plain = bounding_boxes.as_subclass(torch().Tensor)
    valid = _on_boxes.valid_boxes(plain, format_name(format), canvas_size, min_size, min_area)
    return _wrapped(plain[valid], bounding_boxes) if metadata else plain[valid], valid


def sanitize_keypoints(key_points: Tensor, canvas_size: Canvas | None = None) -> tuple[Tensor, Tensor]:
    """Return the points that lie inside the image, and a mask of these points."""
    metadata = _is_metadata_given(key_points, [canvas_size], "sanitize_keypoints", ValueError)
    if metadata:
        canvas_size = canvas_of(key_points)
    assert canvas_size is not None
    plain = key_points.as_subclass(torch().Tensor)
    valid = _on_boxes.valid_points(plain, canvas_size)
    return _wrapped(plain[valid], key_points) if metadata else plain[valid], valid


def get_size_image(image: Tensor) -> list[int]:
    """Return the height and width of a tensor."""
    return list(size_of(image))


def get_dimensions_image(image: Tensor) -> list[int]:
    """Return the number of channels, the height and the width of a tensor."""
    return list(dimensions_of(image))


def get_num_channels_image(image: Tensor) -> int:
    """Return the number of channels of a tensor."""
    return dimensions_of(image)[0]


def get_num_frames_video(video: Tensor) -> int:
    """Return the number of frames of a tensor (..., T, C, H, W)."""
    return int(video.shape[-4])


def get_size_bounding_boxes(bounding_box: Tensor) -> list[int]:
    """Return the height and width of the image to which boxes belong."""
    return list(canvas_of(bounding_box))


get_size_mask = get_size_video = get_size_image
get_size_keypoints = get_size_bounding_boxes
get_dimensions_video = get_dimensions_image
get_num_channels_video = get_num_channels_image

# The names of public kernels consist of the function's name and the kind of value.
globals().update(
    public_kernels({name: function for name in __all__ if inspect.isfunction(function := globals()[name])})
)
