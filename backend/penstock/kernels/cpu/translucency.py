"""Multiplication of channels by alpha, and division by it, with Pillow's arithmetic (`Convert.c`)."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def _premultiply(pixels: np.ndarray, result: np.ndarray) -> None:
    """Multiply the channels of pixels (n, C) by the last channel, alpha."""
    last = pixels.shape[1] - 1
    for i in range(len(pixels)):
        alpha = np.uint32(pixels[i, last])
        for c in range(last):
            product = np.uint32(pixels[i, c]) * alpha + np.uint32(128)
            result[i, c] = ((product >> np.uint32(8)) + product) >> np.uint32(8)
        result[i, last] = alpha


@kernel
def _unmultiply(pixels: np.ndarray) -> None:
    last = pixels.shape[1] - 1
    for i in range(len(pixels)):
        alpha = np.uint32(pixels[i, last])
        if alpha != 0 and alpha != 255:
            for c in range(last):
                pixels[i, c] = min(np.uint32(255) * np.uint32(pixels[i, c]) // alpha, np.uint32(255))


def premultiplied(image: np.ndarray) -> np.ndarray:
    """Return a uint8 image (H, W, C) with its channels multiplied by the last channel, alpha."""
    result = np.empty(image.shape, np.uint8)
    _premultiply(image.reshape(-1, image.shape[2]), result.reshape(-1, image.shape[2]))
    return result


def unmultiply(image: np.ndarray) -> None:
    """Divide the channels of a contiguous image by the last channel, alpha, in place."""
    _unmultiply(image.reshape(-1, image.shape[2]))
