"""The types of image tensors, and the value of white in each."""

from __future__ import annotations

from penstock.plugin.torchvision._kinds import Boxes, function_for
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import Canvas, DType, Tensor


def max_value_of(dtype: DType) -> int:
    """Return the value of white in a type, which is 1 for floats.

    Raises:
        TypeError: images cannot have this type.
    """
    library = torch()
    if dtype.is_floating_point:
        return 1
    if dtype in (library.uint8, library.int8, library.int16, library.uint16, library.int32, library.int64):
        return int(library.iinfo(dtype).max)
    raise TypeError(f"Images must be integers or floats. Got: {dtype}")


@function_for("to_dtype", "tensor", "video")
def converted(image: Tensor, dtype: DType | None = None, scale: bool = False) -> Tensor:
    """Convert an image to another type; with ``scale``, scale values so that white remains white, which is 1 in floats and booleans.

    Raises:
        RuntimeError: with ``scale``, the image's float type cannot represent all values of ``dtype``.
    """
    library = torch()
    dtype = library.float32 if dtype is None else dtype
    if image.dtype == dtype or not scale:
        return image.to(dtype)
    if image.is_floating_point():
        return image.to(dtype) if dtype.is_floating_point else _as_integers(image, dtype)
    if dtype.is_floating_point and image.dtype == library.bool:
        return image.to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype).mul_(1.0 / max_value_of(image.dtype))
    bits = max_value_of(dtype).bit_length() - max_value_of(image.dtype).bit_length()
    if bits < 0:
        # PyTorch cannot shift uint16, so divide instead.
        narrower = image / 2**-bits if image.dtype == library.uint16 else image.bitwise_right_shift(-bits)
        return narrower.to(dtype)
    wider = image.to(dtype)
    return wider * 2**bits if dtype == library.uint16 else wider.bitwise_left_shift_(bits)


def _as_integers(image: Tensor, dtype: DType) -> Tensor:
    library = torch()
    exact = {library.float32: (library.int32, library.int64), library.float64: (library.int64,)}
    if dtype in exact.get(image.dtype, ()):
        raise RuntimeError(f"{image.dtype} cannot represent all values of {dtype}")
    if dtype == library.bool:
        return image.to(dtype)
    # Each integer gets an equal part of the range of floats; 1.0 becomes the largest integer.
    return image.mul(float(max_value_of(dtype)) + 1.0 - 1e-3).to(dtype)


@function_for("to_dtype", "mask", "boxes", "points")
def _converted_other(
    values: Tensor, *info: Boxes | Canvas, dtype: DType | None = None, scale: bool = False
) -> Tensor | tuple[Tensor, Canvas]:
    result = values.to(dtype)
    if not info:
        return result
    return result, info[0].canvas if isinstance(info[0], Boxes) else info[0]
