"""Render arrays as pictures: images, frames, spectrograms, waveforms."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

# Colour stops from dark to bright, for spectrograms.
_COLOURS = np.array([[13, 8, 45], [83, 18, 122], [183, 55, 121], [251, 136, 97], [252, 253, 191]], np.float64)
_WAVE = (0, 137, 123)
_WAVE_SIZE = (100, 300)
_GAP = 4
_MOST_FRAMES = 4
_SMALL, _SHOWN_SMALL = 64, 160
_LEAST_LENGTH = 200


@dataclass(frozen=True)
class Picture:
    """A picture as a file.

    Attributes:
        content: the bytes of the file, WebP.
        width, height: the width and height on the page, in pixels; small pictures are shown larger.
        note: the meaning of its colours, where that is not plain.
    """

    content: bytes
    width: int
    height: int
    note: str = ""


def drawn(array: np.ndarray, layout: str) -> Picture | None:
    """Render an array as a picture, or return None if it is neither an image nor a spectrogram nor a wave."""
    array = np.asarray(array)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    if array.size == 0:
        return None
    if "H" in layout and "W" in layout:
        frames = _frames(array, layout)
        return None if frames is None else _picture(*_as_bytes(frames))
    if array.ndim == 1 and len(array) >= _LEAST_LENGTH and array.dtype.kind == "f":
        return _picture(_wave(array))
    if array.ndim == 2 and min(array.shape) >= 10 and array.dtype.kind == "f":
        return _picture(*_heat(array))
    return None


def _frames(array: np.ndarray, layout: str) -> np.ndarray | None:
    """Join frames, depths and channels side by side into one image of shape (H, W, 1 or 3)."""
    if "C" not in layout:
        array, layout = array[..., None], layout + "C"
    order = [layout.index(letter) for letter in (*(other for other in layout if other not in "HWC"), "H", "W", "C")]
    images = array.transpose(order).reshape(-1, *(array.shape[axis] for axis in order[-3:]))
    if not 1 <= images.shape[-1] <= 4:
        return None
    images = images[..., :3] if images.shape[-1] >= 3 else images[..., :1]
    gap = np.full((images.shape[1], _GAP, images.shape[-1]), images.max(), images.dtype)
    row = [part for image in images[:_MOST_FRAMES] for part in (image, gap)]
    return np.concatenate(row[:-1], axis=1)


def _as_bytes(image: np.ndarray) -> tuple[np.ndarray, str]:
    if image.dtype == np.uint8:
        return image, ""
    low, high = float(image.min()), float(image.max())
    if low >= 0 and high <= 1 and image.dtype.kind == "f":
        return np.rint(image * 255).astype(np.uint8), "0 is black, 1 is white"
    if low >= 0 and high <= 255:
        return np.rint(image).astype(np.uint8), ""
    scaled = (image.astype(np.float64) - low) * (255 / max(high - low, 1e-30))
    return np.rint(scaled).astype(np.uint8), f"{low:.3g} is black, {high:.3g} is white"


def _wave(signal: np.ndarray) -> np.ndarray:
    """Draw the range of the signal in each column."""
    height, width = _WAVE_SIZE
    columns = (
        np.array_split(signal.astype(np.float64), width)
        if len(signal) >= width
        else [signal[i : i + 2] for i in range(len(signal))]
    )
    reach = max(float(np.abs(signal).max()), 1e-9)
    image = np.full((height, len(columns), 3), 255, np.uint8)
    for x, column in enumerate(columns):
        top, bottom = ((1 - np.array([column.max(), column.min()]) / reach) / 2 * (height - 1)).round().astype(int)
        image[top : bottom + 1, x] = _WAVE
    return image


def _heat(array: np.ndarray) -> tuple[np.ndarray, str]:
    """Draw a spectrogram: low frequencies at the bottom, powers in decibels, as they span many magnitudes."""
    values = array.astype(np.float64)[::-1]
    are_powers = values.min() >= 0 and values.max() > 0
    if are_powers:
        values = 10 * np.log10(np.maximum(values / values.max(), 1e-8))
    low, high = np.percentile(values, [2, 98])
    places = (values - low) / max(high - low, 1e-9) * (len(_COLOURS) - 1)
    colours = [np.interp(places, range(len(_COLOURS)), channel) for channel in _COLOURS.T]
    return np.stack(colours, axis=-1).astype(np.uint8), "drawn in decibels" if are_powers else ""


def _picture(image: np.ndarray, note: str = "") -> Picture:
    height, width, channels = image.shape
    file = io.BytesIO()
    Image.fromarray(image[..., 0] if channels == 1 else image).save(file, "WEBP", lossless=True)
    largest = max(height, width)
    scale = min(8, _SHOWN_SMALL // largest) if largest < _SMALL else 1
    return Picture(file.getvalue(), width * scale, height * scale, note)
