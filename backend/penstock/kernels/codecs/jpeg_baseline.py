"""Decodes baseline JPEGs, or regions of them, with our own kernels.

The libraries decode whole images; for a region they still transform and convert much of the rest, and their entropy
decoding is slower. Nearly all JPEGs are supported: 8 bits, one sequential scan, Huffman codes, grey or YCbCr, chroma
full or halved in one or both directions. Others, and damaged ones, are left to the libraries, whose pixels are matched
bit for bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.kernels.codecs.image_description import EncodedFiles, ImageHeader
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.files import Bench, Files

_local = threading.local()
_scans = ThreadBuffers()


def decode_region(encoded: np.ndarray, header: ImageHeader, region: Region, output: np.ndarray, reverse: bool) -> bool:
    """Decodes a region of a JPEG into ``output``; returns False, leaving ``output`` undefined, if it is not supported.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: of the file.
        region: in rows and columns as stored, within the image.
        output: filled; (H, W, 3) for RGB, (H, W, 1) for grey; uint8, contiguous.
        reverse: write BGR.
    """
    from penstock.kernels.cpu.jpeg.files import decode_file

    bench, place = _bench(encoded.size, header.width), encoded.__array_interface__["data"][0]
    top, left = region.anchor
    return bool(decode_file(place, encoded.size, header.height, header.width, top, left, output, reverse, bench))


def decode_together(
    files: EncodedFiles,
    headers: np.ndarray,
    regions: np.ndarray,
    order: np.ndarray,
    targets: np.ndarray,
    channels: int,
    reverse: bool,
    most_scans: int,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decodes regions of JPEGs on all threads, each of which takes the next file without asking Python.

    Args:
        files: the files.
        headers: height and width of each, as stored.
        regions: anchor and extents of each, within the image.
        order: those to decode, in the order to take them.
        targets: addresses of the pixels of each; uint8 of shape (H, W, ``channels``).
        channels: 3 for RGB, 1 for grey.
        reverse: write BGR.
        most_scans: files with more markers of scans are not decoded.
        parallel: runs a task on all threads, which are ``num_threads``.

    Returns:
        Which files were decoded; the pixels of others are undefined.
    """
    from penstock.kernels.cpu.jpeg.files import Files, decode_files

    columns = Files(files.places, files.sizes, targets, headers, regions, order)

    def decode(taken: np.ndarray, decoded: np.ndarray, bench: Bench) -> None:
        decode_files(columns, channels, reverse, most_scans, taken, decoded, bench)

    return on_all_threads(decode, columns, parallel, num_threads)


def on_all_threads(
    work: Callable[[np.ndarray, np.ndarray, Bench], None],
    files: Files,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Has threads work on the files of a batch, each of which takes the next one without asking Python.

    Args:
        work: what a thread does, from how many files were taken (int64 of shape (1,)), which were decoded, to be set, and a
            ``Bench`` of the thread's.
        files: a ``Files``, with those to decode.
        parallel: runs a task on all threads, which are ``num_threads``.

    Returns:
        Which files were decoded.
    """
    decoded, taken, order = np.zeros(len(files.places), np.bool_), np.zeros(1, np.int64), files.order
    largest, widest = int(files.sizes[order].max()), int(files.headers[order, 1].max())
    parallel(lambda _: work(taken, decoded, _bench(largest, widest)), min(num_threads, len(order)))
    return decoded


def _bench(size: int, width: int) -> Any:
    """What this thread decodes files with, of up to ``size`` bytes and ``width`` columns."""
    from penstock.kernels.cpu.jpeg.entropy import MARGIN
    from penstock.kernels.cpu.jpeg.files import Bench

    return Bench(_segments(), _scans.array((size + MARGIN,), np.dtype(np.uint8)), _strips(width))


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
