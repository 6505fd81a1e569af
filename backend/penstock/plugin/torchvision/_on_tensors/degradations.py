"""Functions that degrade images: blur, noise, compression, erased regions."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from penstock.plugin.torchvision._kinds import function_for
from penstock.plugin.torchvision._on_pixels import through_tensor
from penstock.plugin.torchvision._on_tensors.color import COLOURS, check_factor
from penstock.plugin.torchvision._pixels import Pixels
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import Device, DType, Floats, Size, Tensor


@function_for("gaussian_blur", "tensor", "video")
def _blur(image: Tensor, kernel_size: Size, sigma: Floats | None = None) -> Tensor:
    sizes, widths = blur_of(kernel_size, sigma)
    if image.numel() == 0:
        return image
    library, floats = torch(), image.is_floating_point()
    dtype = image.dtype if floats else library.float32
    across, down = (_bell(size, width, dtype, image.device) for size, width in zip(sizes, widths))
    kernel = (down.unsqueeze(-1) * across).expand(image.shape[-3], 1, sizes[1], sizes[0])
    batch = image.reshape(-1, *image.shape[-3:]).to(dtype)
    borders = [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2]
    batch = library.nn.functional.pad(batch, borders, mode="reflect")
    result = library.nn.functional.conv2d(batch, kernel, groups=image.shape[-3]).reshape(image.shape)
    return result if floats else result.round_().to(image.dtype)


def blur_of(kernel_size: Size, sigma: Floats | None) -> tuple[list[int], list[float]]:
    """Return the sizes and the standard deviations of a blur, each across and down.

    Raises:
        TypeError, ValueError: a size is not odd and positive, or a deviation is not positive.
    """
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or any(size <= 0 or size % 2 == 0 for size in sizes):
        raise ValueError(f"`kernel_size` must be one or two odd positive numbers. Got: {kernel_size!r}")
    if sigma is None:
        return sizes, [size * 0.15 + 0.35 for size in sizes]
    if not isinstance(sigma, (int, float, list, tuple)):
        raise TypeError(f"`sigma` must be one or two numbers. Got: {sigma!r}")
    widths = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else list(sigma)
    widths = widths * 2 if len(widths) == 1 else widths
    if len(widths) != 2 or any(width <= 0 for width in widths):
        raise ValueError(f"`sigma` must be one or two positive numbers. Got: {sigma!r}")
    return sizes, widths


def blur_kernel(kernel_size: Size, sigma: Floats) -> np.ndarray:
    """Return the weights of a blur as PyTorch computes them, float32 of shape (rows, columns)."""
    library = torch()
    sizes, widths = blur_of(kernel_size, sigma)
    across, down = (_bell(size, width, library.float32, "cpu") for size, width in zip(sizes, widths))
    return (down.unsqueeze(-1) * across).numpy()


def _bell(size: int, width: float, dtype: DType, device: Device) -> Tensor:
    edge = (size - 1) / (2.0 * math.sqrt(2.0))
    positions = torch().linspace(-edge, edge, steps=size, dtype=dtype, device=device)
    return positions.div(width).pow(2).neg().softmax(dim=0)


@function_for("gaussian_noise", "tensor", "video")
def _noise(image: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Tensor:
    library = torch()
    check_factor(sigma, "sigma")
    if image.is_floating_point():
        result = image + (library.randn_like(image) * sigma + mean)
        return result.clamp(0, 1) if clip else result
    if image.dtype != library.uint8:
        raise ValueError(f"`gaussian_noise` takes images of uint8 or floats. Got: {image.dtype}")
    noise = (library.randn_like(image, dtype=library.float32) * (sigma * 255) + mean * 255).to(library.int16)
    result = image + noise
    return (result.clamp(0, 255) if clip else result).to(library.uint8)


@function_for("gaussian_noise", "pixels")
def _no_noise(image: Pixels, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> NoReturn:
    raise ValueError("`gaussian_noise` takes tensors, and not PIL's images: convert them with `to_image`")


@function_for("erase", "tensor", "video")
def _erase(image: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    image = image if inplace else image.clone()
    image[..., i : i + h, j : j + w] = v
    return image


@function_for("jpeg", "tensor", "video")
def _compressed(image: Tensor, quality: int) -> Tensor:
    import io

    from PIL import Image

    library = torch()
    if image.dtype != library.uint8 or image.shape[-3] not in COLOURS:
        raise ValueError(f"`jpeg` takes images of uint8 of 1 or 3 channels. Got {image.dtype}, {tuple(image.shape)}")
    results = []
    for one in image.reshape(-1, *image.shape[-3:]):
        file, array = io.BytesIO(), one.permute(1, 2, 0).numpy()
        Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(file, "JPEG", quality=quality)
        results.append(library.from_numpy(np.array(Image.open(file), ndmin=3).reshape(array.shape)).permute(2, 0, 1))
    return library.stack(results).reshape(image.shape) if results else image.clone()


through_tensor("gaussian_blur", _blur)
through_tensor("erase", _erase)
