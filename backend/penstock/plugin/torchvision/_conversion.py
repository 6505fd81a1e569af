"""Conversions between PIL images, arrays and tensors."""

from __future__ import annotations

import numpy as np

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._on_pixels import tensor_of
from penstock.plugin.torchvision._pixels import Pixels, has_pixel_mode, held, is_pil
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import PilImage, Tensor

_MODES = {
    1: {"uint8": "L", "int16": "I;16", "int32": "I", "float32": "F"},
    2: {"uint8": "LA"},
    3: {"uint8": "RGB"},
    4: {"uint8": "RGBA"},
}
# The modes of PIL images whose type `to_tensor` changes.
_OF_TO_TENSOR = {"1": np.uint8, "I;16": np.int16, "I;16B": np.int16}
_ALSO = {3: ("YCbCr", "HSV"), 4: ("CMYK", "RGBX")}


def pil_to_tensor(pic: PilImage | Pixels) -> Tensor:
    """Return a PIL image as a tensor (C, H, W) of the same type.

    Raises:
        TypeError: the value is not a PIL image.
    """
    if isinstance(pic, Pixels) or (is_pil(pic) and has_pixel_mode(pic)):
        return tensor_of(held(pic))
    if not is_pil(pic):
        raise TypeError(f"`pil_to_tensor` takes an image of PIL. Got: {type(pic).__name__}")
    array = np.array(pic)
    return torch().from_numpy(array[:, :, None] if array.ndim == 2 else array).permute(2, 0, 1)


def to_image(inpt: PilImage | Pixels | np.ndarray | Tensor) -> Tensor:
    """Return a PIL image, an array (H, W, C) or a tensor, as a `tv_tensors.Image`.

    Raises:
        TypeError: the value is neither a PIL image, nor an array, nor a tensor.
    """
    if isinstance(inpt, np.ndarray):
        tensor = torch().from_numpy(np.atleast_3d(inpt)).permute(2, 0, 1).contiguous()
    elif isinstance(inpt, Pixels) or is_pil(inpt):
        tensor = pil_to_tensor(inpt)
    elif isinstance(inpt, torch().Tensor):
        tensor = inpt
    else:
        raise TypeError(f"`to_image` takes an image of PIL, an array or a tensor. Got: {type(inpt).__name__}")
    return tv_tensors.classes().Image(tensor)


def _to_tensor(picture: PilImage | Pixels) -> Tensor:
    """Convert like `pil_to_tensor`, except that images of 16 bits become signed integers, and black and white 0 and 255."""
    if isinstance(picture, Pixels) or picture.mode not in _OF_TO_TENSOR:
        return pil_to_tensor(picture)
    array = np.array(picture, _OF_TO_TENSOR[picture.mode])
    return torch().from_numpy(array * 255 if picture.mode == "1" else array)[None]


def to_tensor(inpt: PilImage | Pixels | np.ndarray) -> Tensor:
    """Return a PIL image or an array (H, W, C) as a tensor (C, H, W); uint8 becomes floats from 0 to 1.

    Raises:
        TypeError, ValueError: the value is neither a PIL image nor an array, or an array does not have two or three dimensions.
    """
    library = torch()
    if isinstance(inpt, np.ndarray):
        if inpt.ndim not in (2, 3):
            raise ValueError(f"An image must have two or three dimensions. Got {inpt.ndim}")
        tensor = library.from_numpy(inpt[:, :, None] if inpt.ndim == 2 else inpt).permute(2, 0, 1).contiguous()
    elif isinstance(inpt, Pixels) or is_pil(inpt):
        tensor = _to_tensor(inpt).contiguous()
    else:
        raise TypeError(f"`to_tensor` takes an image of PIL or an array. Got: {type(inpt).__name__}")
    return tensor.to(library.get_default_dtype()).div(255) if tensor.dtype == library.uint8 else tensor


def to_pil_image(pic: np.ndarray | Tensor, mode: str | None = None) -> PilImage:
    """Return a tensor (C, H, W) or an array (H, W, C) as a PIL image; floats from 0 to 1 become uint8.

    Raises:
        TypeError, ValueError: the shape, type or mode is not one that PIL images can have.
    """
    from PIL import Image

    if isinstance(pic, np.ndarray):
        array = pic
    elif hasattr(pic, "permute"):
        array = (pic.permute(1, 2, 0) if pic.ndim == 3 else pic).numpy(force=True)
    else:
        raise TypeError(f"`to_pil_image` takes a tensor or an array. Got: {type(pic).__name__}")
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] not in _MODES:
        raise ValueError(
            f"An image must have two or three dimensions, and 1 to 4 channels. Got the shape {array.shape}"
        )
    if array.dtype.kind == "f" and mode != "F":
        array = (array * 255).astype(np.uint8)
    channels = array.shape[2]
    usual = _MODES[channels].get(str(array.dtype))
    if mode not in (None, usual, *_ALSO.get(channels, ())):
        raise ValueError(f"An image of {channels} channels of {array.dtype} must have the mode {usual}. Got: {mode}")
    if usual is None:
        raise TypeError(f"PIL has no images of {channels} channels of {array.dtype}")
    array = np.ascontiguousarray(array[:, :, 0] if channels == 1 else array)
    if mode in (None, usual) and usual != "I;16":
        return Image.fromarray(array)
    height, width = array.shape[:2]
    return Image.frombytes(mode or usual, (width, height), array.tobytes())
