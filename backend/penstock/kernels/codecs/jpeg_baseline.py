"""Decodes baseline JPEGs, or regions of them, with our own kernels.

The libraries decode whole images; for a region they still transform and convert much of the rest, and their entropy
decoding is slower. Nearly all JPEGs are supported: 8 bits, one sequential scan, Huffman codes, grey or YCbCr, chroma
full or halved in one or both directions. Others, and damaged ones, are left to the libraries, whose pixels are matched
bit for bit.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.kernels.codecs.image_description import ImageHeader
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

_local = threading.local()
_scans = ThreadBuffers()

# Compiling the kernels takes some 7 s, which pays off after a few thousand photographs of which a region is decoded, and after
# some ten thousand that are decoded whole.
_WORTH_COMPILING = 1000
_WORTH_COMPILING_FOR_WHOLE = 10_000
_regions, _whole = itertools.count(1), itertools.count(1)
_is_warming = False


@contextmanager
def compiling_at_once() -> Iterator[None]:
    """Compiles the kernels on the first region, as a server does before it is ready."""
    global _is_warming
    _is_warming = True
    try:
        yield
    finally:
        _is_warming = False


def is_worthwhile(whole: bool = False) -> bool:
    """Whether to decode the next image here: the kernels are compiled, or were wanted often enough.

    Until then the libraries decode, so that a pipeline's first batch does not wait for the compiler.

    Args:
        whole: the whole image is needed, not just a region, for which the libraries are slower.
    """
    from penstock.kernels.cpu.jpeg.scan import decode_scan

    if decode_scan.signatures or _is_cached(decode_scan) or _is_warming:
        return True
    return next(_whole) > _WORTH_COMPILING_FOR_WHOLE if whole else next(_regions) > _WORTH_COMPILING


@functools.cache
def _is_cached(kernel: Dispatcher[Callable[..., object]]) -> bool:
    """Whether an earlier process left a compiled kernel in numba's cache."""
    folder, function = kernel.stats.cache_path, kernel.py_func
    module = function.__module__.rpartition(".")[2]
    return folder is not None and any(Path(folder).glob(f"{module}.{function.__name__}-*.nbi"))


def decode_region(encoded: np.ndarray, header: ImageHeader, region: Region, output: np.ndarray, reverse: bool) -> bool:
    """Decodes a region of a JPEG into ``output``; returns False, leaving ``output`` undefined, if it is not supported.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: of the file.
        region: in rows and columns as stored, within the image.
        output: filled; (H, W, 3) for RGB, (H, W, 1) for grey; uint8, contiguous.
        reverse: write BGR.
    """
    from penstock.kernels.cpu.jpeg.colour import LANES
    from penstock.kernels.cpu.jpeg.scan import decode_scan

    if output.shape[1] < LANES:
        return False
    scan = _read_scan(encoded, header, output.shape[2])
    top, left = region.anchor
    return scan is not None and bool(decode_scan(scan, _strips(header.width), top, left, output, reverse))


def _read_scan(encoded: np.ndarray, header: ImageHeader, channels: int) -> Any:
    """The scan in the kernels' form, in this thread's memory; None if they do not support it."""
    from penstock.kernels.cpu.jpeg.entropy import MARGIN
    from penstock.kernels.cpu.jpeg.scan import Scan, copy_scan
    from penstock.kernels.cpu.jpeg.segments import build_tables, find_sampling, read_segments

    segments = _segments()
    if not read_segments(encoded, segments):
        return None
    height, width, interval, start, components, *_ = segments.numbers.tolist()
    across, down = find_sampling(segments, channels)
    if (height, width) != (header.height, header.width) or not across:
        return None
    units = -(-width // (8 * across)) * -(-height // (8 * down))
    interval = interval or units
    # There cannot be more intervals than bytes.
    ends = np.zeros(min(-(-units // interval), encoded.size), np.int64)
    data = _scans.array((encoded.size - start + MARGIN,), np.dtype(np.uint8))
    if not copy_scan(encoded, start, data, ends):
        return None
    build_tables(segments)
    return Scan(
        data,
        ends,
        interval,
        segments.tables,
        segments.dc_tables[:components],
        segments.ac_tables[:components],
        segments.factors,
        across,
        down,
        height,
        width,
    )


def _segments() -> Any:
    """This thread's memory for reading segments."""
    from penstock.kernels.cpu.jpeg.segments import memory_for_segments

    if not hasattr(_local, "segments"):
        _local.segments = memory_for_segments()
    return _local.segments


def _strips(width: int) -> Any:
    """This thread's memory for decoding images of a width."""
    from penstock.kernels.cpu.jpeg.scan import memory_for

    held, widest = getattr(_local, "strips", (None, 0))
    if widest < width:
        held = memory_for(width)
        _local.strips = held, width
    return held
