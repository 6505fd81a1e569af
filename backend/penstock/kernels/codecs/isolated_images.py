"""Parsing and decoding of images in a worker process: the functions that the parent calls; :mod:`image_worker` has the worker's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.decoder_memory import image_memory
from penstock.kernels.codecs.image_description import ImageHeader, Orientation
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.worker_pool import DecoderPool
from penstock.kernels.windows import Region


def read_header_isolated(pool: DecoderPool, encoded: np.ndarray, kind: str) -> ImageHeader:
    """Run :func:`~penstock.kernels.codecs.image_header.parse_header` in a worker process."""
    return header_of(pool.run("read_image_header", kind, encoded))


def decode_isolated(
    pool: DecoderPool,
    encoded: np.ndarray,
    header: ImageHeader,
    output: np.ndarray,
    output_type: DALIImageType,
    adjust_orientation: bool,
    fast_idct: bool,
    region: Region | None,
    smooth: bool,
) -> None:
    """Run :func:`~penstock.kernels.codecs.image_codec.decode` in a worker process."""
    arguments = {
        "header": header_fields(header),
        "output_type": int(output_type),
        "adjust_orientation": adjust_orientation,
        "fast_idct": fast_idct,
        "smooth": smooth,
        "region": None if region is None else [list(map(int, region.anchor)), list(map(int, region.extents))],
    }
    memory = image_memory(header, encoded, output_type, output.dtype, adjust_orientation)
    pool.run("decode_image", header.format.upper(), encoded, arguments, output, memory)


# -- exchanged between them --------------------------------------------------------------------------------------------


def header_fields(header: ImageHeader) -> list[object]:
    """Return a header as a list that can be sent between processes."""
    turned = header.orientation
    return [
        *(header.format, header.height, header.width, header.channels),
        *(turned.transposed, turned.flip_y, turned.flip_x),
        *(header.cmyk, header.by_pillow),
    ]


def header_of(fields: Sequence[Any]) -> ImageHeader:
    """Return the header in a list that a worker sent; raise CorruptImageError if it is not valid."""
    try:
        name, height, width, channels, transposed, flip_y, flip_x, cmyk, by_pillow = fields
        orientation = Orientation(bool(transposed), bool(flip_y), bool(flip_x))
        size = int(height), int(width), int(channels)
    except (TypeError, ValueError) as error:
        raise CorruptImageError("Damaged image: the worker process returned invalid data") from error
    return ImageHeader(str(name), *size, orientation, bool(cmyk), bool(by_pillow), isolated=True)
