"""Settings of an operator's GPU decoders, and the conversion of decoded pixels that these settings ask for."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from penstock.data_types import DALIImageType, numpy_dtype
from penstock.kernels.codecs.image_codec import full_intensity
from penstock.kernels.codecs.image_description import UPRIGHT, ImageHeader
from penstock.kernels.codecs.nvimgcodec.decoder import BGR, GRAY, RGB, PixelFormat
from penstock.kernels.colour import TO_YCBCR, YCBCR_OFFSET
from penstock.kernels.cuda.launch import Located
from penstock.tensors.cuda import require_cupy

_PIXEL_FORMATS = {
    DALIImageType.RGB: RGB,
    DALIImageType.BGR: BGR,
    DALIImageType.GRAY: GRAY,
    DALIImageType.YCbCr: RGB,
}


@dataclass(frozen=True)
class DecodeSettings:
    """An operator's decode settings, which apply to all images.

    Attributes:
        output_type: the colour space of the results.
        dtype: the type of the results.
        adjust_orientation: whether images are turned upright.
        fast_idct: whether the CPU may use a faster, less accurate inverse DCT.
        smooth: whether subsampled chroma of JPEGs is interpolated, as libjpeg-turbo does by default.
        pixel_format: the format to which JPEGs are decoded; None: any, as stored.
        takes_bytes: whether upright images of bytes need no conversion.
    """

    output_type: DALIImageType
    dtype: np.dtype
    adjust_orientation: bool
    fast_idct: bool
    smooth: bool
    pixel_format: PixelFormat | None
    takes_bytes: bool

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any]) -> DecodeSettings:
        """Make the settings from an operator's arguments."""
        output_type, dtype = arguments["output_type"], numpy_dtype(arguments["dtype"])
        return cls(
            output_type,
            dtype,
            arguments["adjust_orientation"],
            arguments["use_fast_idct"],
            arguments["jpeg_fancy_upsampling"],
            _PIXEL_FORMATS.get(output_type),
            dtype == np.uint8 and output_type != DALIImageType.YCbCr,
        )

    def converted(self, header: ImageHeader, shape: tuple[int, ...], image: Any, precision: int) -> Any:
        """Return a decoded image turned upright and converted; None if its shape differs from the header's.

        Args:
            header: the image's header.
            shape: the result's shape (H, W, C).
            image: the decoded image: a CuPy array, or a location.
            precision: the number of significant bits of the image's values.
        """
        cupy = require_cupy()
        orientation = header.placed(self.adjust_orientation)
        if self.takes_bytes and orientation is UPRIGHT and image.dtype == np.uint8:
            return image if image.shape == shape else None
        pixels = as_array(image)
        maximum = full_intensity(pixels.dtype, precision)
        if self.output_type == DALIImageType.YCbCr:
            matrix = cupy.asarray(TO_YCBCR.T, cupy.float32)
            pixels, maximum = _ycbcr(cupy, pixels, maximum, matrix, self.dtype)
        pixels = _scaled(cupy, pixels, maximum, self.dtype)
        pixels = cupy.ascontiguousarray(orientation.upright(pixels))
        return pixels if pixels.shape == shape else None


def as_array(image: Any) -> Any:
    """Return a decoded image, which may be a location, as a CuPy array."""
    return image.array() if isinstance(image, Located) else image


def _ycbcr(cupy: ModuleType, pixels: Any, maximum: float, matrix: Any, dtype: np.dtype) -> tuple[Any, float]:
    """Convert pixels to YCbCr, with the same results as on the CPU; return them and the value of full intensity."""
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum) @ matrix
    if dtype == np.uint8:
        offset = cupy.asarray(YCBCR_OFFSET + 0.5, cupy.float32)
        return cupy.floor(normalized * np.float32(255) + offset).astype(cupy.uint8), 255.0
    return normalized + cupy.asarray(YCBCR_OFFSET / 256, cupy.float32), 1.0


def _scaled(cupy: ModuleType, pixels: Any, maximum: float, dtype: np.dtype) -> Any:
    """Scale pixels to the range of a type, with the same results as on the CPU."""
    if pixels.dtype == dtype and maximum == (1.0 if dtype.kind == "f" else np.iinfo(dtype).max):
        return pixels
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum)
    if dtype.kind == "f":
        return normalized.astype(dtype, copy=False)
    limit = int(np.iinfo(dtype).max)
    scaled = cupy.floor(normalized * np.float32(limit) + np.float32(0.5)).astype(cupy.float64)
    return cupy.clip(scaled, 0, limit).astype(dtype)
