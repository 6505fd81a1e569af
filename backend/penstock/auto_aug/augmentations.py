"""The augmentations of the published policies, for uint8 images of layout HWC."""

from __future__ import annotations

import numpy as np

from penstock import fn, types
from penstock.auto_aug.core._augmentation import augmentation
from penstock.graph import DataNode, constant_node
from penstock.types import Constant

_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
# Weights of the blurred image that :func:`sharpness` subtracts, as in Pillow.
_BLUR = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
_IDENTITY = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]])


def warp_x_param(magnitude: float) -> list[float]:
    """Return the displacement (x, y) along x."""
    return [magnitude, 0]


def warp_y_param(magnitude: float) -> list[float]:
    """Return the displacement (x, y) along y."""
    return [0, magnitude]


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(
    data: DataNode, shear: DataNode, fill_value: float | None = 128, interp_type: types.DALIInterpType | None = None
) -> DataNode:
    """Shear along x; the magnitude is the tangent of the angle."""
    return _warped(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(
    data: DataNode, shear: DataNode, fill_value: float | None = 128, interp_type: types.DALIInterpType | None = None
) -> DataNode:
    """Shear along y; the magnitude is the tangent of the angle."""
    return _warped(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode,
    rel_offset: DataNode,
    shape: DataNode,
    fill_value: float | None = 128,
    interp_type: types.DALIInterpType | None = None,
) -> DataNode:
    """Translate along x by a fraction of the width of ``shape`` (height, width)."""
    return _warped(data, fn.transforms.translation(offset=rel_offset * shape[1]), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(
    data: DataNode, offset: DataNode, fill_value: float | None = 128, interp_type: types.DALIInterpType | None = None
) -> DataNode:
    """Translate along x by ``offset`` pixels."""
    return _warped(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode,
    rel_offset: DataNode,
    shape: DataNode,
    fill_value: float | None = 128,
    interp_type: types.DALIInterpType | None = None,
) -> DataNode:
    """Translate along y by a fraction of the height of ``shape`` (height, width)."""
    return _warped(data, fn.transforms.translation(offset=rel_offset * shape[0]), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(
    data: DataNode, offset: DataNode, fill_value: float | None = 128, interp_type: types.DALIInterpType | None = None
) -> DataNode:
    """Translate along y by ``offset`` pixels."""
    return _warped(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


def _warped(
    data: DataNode, matrix: DataNode, fill_value: float | None, interp_type: types.DALIInterpType | None
) -> DataNode:
    return fn.warp_affine(data, matrix=matrix, fill_value=fill_value, interp_type=interp_type, inverse_map=False)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode,
    angle: DataNode,
    fill_value: float | None = 128,
    interp_type: types.DALIInterpType | None = None,
    rotate_keep_size: bool = True,
) -> DataNode:
    """Rotate by ``angle`` degrees."""
    return fn.rotate(data, angle=angle, fill_value=fill_value, interp_type=interp_type, keep_size=rotate_keep_size)


def shift_enhance_range(magnitude: float) -> float:
    """Return the factor of an enhancement, 1 plus the magnitude; 1 changes nothing."""
    return 1 + magnitude


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply all channels; 0 yields black, 1 changes nothing."""
    return fn.brightness(data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the distance to the mean luminance; 0 yields grey, 1 changes nothing."""
    mean = fn.reductions.mean(data, axis_names="HW", keep_dims=True)
    center = fn.reductions.sum(mean * constant_node(_LUMINANCE, device=data.device), axis_names="C", keep_dims=True)
    parameter = parameter.gpu() if data.device == "gpu" else parameter
    return fn.cast_like(center + (data - center) * parameter, data)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiply the saturation; 0 yields grey values, 1 changes nothing."""
    return fn.saturation(data, saturation=parameter)


def sharpness_kernel(magnitude: float) -> np.ndarray:
    """Return the filter that sharpens (positive magnitude) or blurs (negative); 0 changes nothing."""
    return ((1 + magnitude) * _IDENTITY - magnitude * _BLUR).astype(np.float32)


def sharpness_kernel_shifted(magnitude: float) -> np.ndarray:
    """Return the filter of :func:`sharpness_kernel` for a scale on which 1 changes nothing."""
    return sharpness_kernel(magnitude - 1)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
def sharpness(data: DataNode, kernel: DataNode) -> DataNode:
    """Sharpen or blur with a 3 x 3 filter."""
    return fn.filter(data, kernel)


def poster_mask_uint8(magnitude: float) -> np.ndarray:
    """Return the mask of the highest bits; their number is the rounded magnitude, but at least one."""
    bits = max(1, round(float(magnitude)))
    return np.array((0xFF00 >> bits) & 0xFF, np.uint8)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, randomly_negate=False, param_device="auto")
def posterize(data: DataNode, mask: DataNode) -> DataNode:
    """Keep only the high bits of each value."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="auto")
def solarize(data: DataNode, threshold: DataNode) -> DataNode:
    """Invert the values from the threshold on."""
    below = data < threshold
    return below * data + (below ^ True) * (Constant(255, dtype=types.UINT8) - data)


def solarize_add_shift(shift: float) -> np.uint8:
    """Return the value that :func:`solarize_add` adds, in the image's type."""
    if shift >= 128:
        raise ValueError(f"The shift of `solarize_add` must be less than 128, got {shift}")
    return np.uint8(shift)


@augmentation(mag_range=(0, 110), param_device="auto", mag_to_param=solarize_add_shift)
def solarize_add(data: DataNode, shift: DataNode) -> DataNode:
    """Add ``shift`` to the values below 128."""
    below = data < Constant(128, dtype=types.UINT8)
    return below * (data + shift) + (below ^ True) * data


@augmentation
def invert(data: DataNode, _: object) -> DataNode:
    """Return 255 minus each value."""
    return Constant(255, dtype=types.UINT8) - data


@augmentation
def equalize(data: DataNode, _: object) -> DataNode:
    """Equalize the histogram of each channel."""
    return fn.equalize(data)


@augmentation
def auto_contrast(data: DataNode, _: object) -> DataNode:
    """Stretch the values of each channel to the full range; a constant channel does not change."""
    low = fn.reductions.min(data, axis_names="HW", keep_dims=True)
    range_ = fn.reductions.max(data, axis_names="HW", keep_dims=True) - low
    varies = range_ > 0
    divisor = range_ * varies + Constant(255, dtype=types.UINT8) * (varies ^ True)
    return fn.cast_like((data - low * varies) * (255 / divisor), data)


@augmentation
def identity(data: DataNode, _: object) -> DataNode:
    """Change nothing."""
    return data
