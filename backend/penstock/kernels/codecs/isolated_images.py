"""Images that are parsed and decoded in a worker process: what the parent asks, and what the worker does."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.codecs.image_codec import decode_in_process
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import ImageHeader, Orientation, parse_header
from penstock.kernels.codecs.worker_pool import DecoderPool
from penstock.kernels.windows import Region
from penstock.types import DALIImageType


def read_header_apart(pool: DecoderPool, encoded: np.ndarray, kind: str) -> ImageHeader:
    """What :func:`~penstock.kernels.codecs.image_header.parse_header` gives, by a worker."""
    return _header(pool.run("read_image_header", kind, encoded))


def decode_apart(
    pool: DecoderPool,
    encoded: np.ndarray,
    header: ImageHeader,
    output: np.ndarray,
    output_type: DALIImageType,
    adjust_orientation: bool,
    fast_idct: bool,
    region: Region | None,
) -> None:
    """What :func:`~penstock.kernels.codecs.image_codec.decode` does, by a worker."""
    arguments = {
        "header": _fields(header),
        "output_type": int(output_type),
        "adjust_orientation": adjust_orientation,
        "fast_idct": fast_idct,
        "region": None if region is None else [list(map(int, region.anchor)), list(map(int, region.extents))],
    }
    pool.run("decode_image", header.format.upper(), encoded, arguments, output)


# -- in the worker -----------------------------------------------------------------------------------------------------


def read_header_in_worker(data: np.ndarray, output: None) -> list[Any]:
    """The worker's part of :func:`read_header_apart`."""
    return _fields(parse_header(data))


def decode_in_worker(
    data: np.ndarray,
    output: np.ndarray,
    header: list[Any],
    output_type: int,
    adjust_orientation: bool,
    fast_idct: bool,
    region: list[list[int]] | None,
) -> None:
    """The worker's part of :func:`decode_apart`."""
    window = None if region is None else Region(tuple(region[0]), tuple(region[1]))
    kind = DALIImageType(output_type)
    decode_in_process(data, _header(header), output, kind, adjust_orientation, fast_idct, window)


# -- what goes between them --------------------------------------------------------------------------------------------


def _fields(header: ImageHeader) -> list[Any]:
    turned = header.orientation
    return [
        *(header.format, header.height, header.width, header.channels),
        *(turned.transposed, turned.flip_y, turned.flip_x),
        *(header.cmyk, header.by_pillow),
    ]


def _header(fields: Any) -> ImageHeader:
    try:
        name, height, width, channels, transposed, flip_y, flip_x, cmyk, by_pillow = fields
        orientation = Orientation(bool(transposed), bool(flip_y), bool(flip_x))
        size = int(height), int(width), int(channels)
    except (TypeError, ValueError) as error:
        raise CorruptImageError("Damaged image: the process that reads its header tells nonsense") from error
    return ImageHeader(str(name), *size, orientation, bool(cmyk), bool(by_pillow), True)
