"""Parsing and decoding of images in a worker process: the functions that the worker runs."""

from __future__ import annotations

import numpy as np

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.image_codec import decode_in_process
from penstock.kernels.codecs.image_header import parse_header
from penstock.kernels.codecs.isolated_images import header_fields, header_of
from penstock.kernels.windows import Region


def read_header_in_worker(data: np.ndarray, output: None) -> list[object]:
    """Read a header for :func:`~penstock.kernels.codecs.isolated_images.read_header_isolated`. Runs in the worker."""
    return header_fields(parse_header(data))


def decode_in_worker(
    data: np.ndarray,
    output: np.ndarray,
    header: list[object],
    output_type: int,
    adjust_orientation: bool,
    fast_idct: bool,
    smooth: bool,
    region: list[list[int]] | None,
) -> None:
    """Decode an image for :func:`~penstock.kernels.codecs.isolated_images.decode_isolated`. Runs in the worker."""
    window = None if region is None else Region(tuple(region[0]), tuple(region[1]))
    kind = DALIImageType(output_type)
    decode_in_process(data, header_of(header), output, kind, adjust_orientation, fast_idct, window, smooth)
