"""Determines which JPEGs give the same pixels and errors for a region as for the whole image."""

from __future__ import annotations

import numpy as np

from penstock.kernels.codecs.image_description import ImageHeader
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.windows import Region

_MIN_REGION_COLUMNS = 2
"""The smallest number of columns of a region. nvImageCodec 0.9 returns wrong colours for a single column at the left edge of an image with
halved chroma.
"""

_SEQUENTIAL = (0xC0, 0xC1)
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_RESTARTS, _FILL = range(0xD0, 0xD8), 0xFF


def decodes_alone(encoded: np.ndarray, header: ImageHeader, stored: Region) -> bool:
    """Return whether decoding only a region on the CPU gives the same pixels and errors as decoding the whole image.

    It does if a single scan follows the header, up to the end of the image: then a decoder that stops early misses no error. Damage to the
    scan's data is not an error, and affects pixels in the same way.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: the file's header.
        stored: the region, in rows and columns of the stored image.
    """
    if header.format != "jpeg" or header.channels not in (1, 3) or nvimgcodec() is None:
        return False
    return stored.extents[1] >= _MIN_REGION_COLUMNS and _has_single_scan(encoded)


def _has_single_scan(encoded: np.ndarray) -> bool:
    """Return whether a JPEG consists of one sequential scan followed by the end of the image; the header must be valid."""
    data = encoded.data
    position, sequential = 2, False
    while position + 4 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == _FILL:
            position += 1
            continue
        if marker in _RESTARTS or marker == 0x01 or marker == _END_OF_IMAGE:
            return False
        sequential |= marker in _SEQUENTIAL
        position += 2 + (data[position + 2] << 8 | data[position + 3])
        if marker == _START_OF_SCAN:
            return sequential and _first_marker(encoded[position:]) == _END_OF_IMAGE
    return False


def _first_marker(scan: np.ndarray) -> int:
    """Return the position of the first marker that ends a scan's data, or -1."""
    from penstock.kernels.cpu.jpeg.markers import first_marker

    return int(first_marker(scan))
