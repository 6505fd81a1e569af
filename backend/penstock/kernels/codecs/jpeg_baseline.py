"""Decodes JPEGs, or regions of them, with our kernels.

The libraries decode whole images; for a region they still transform and convert much of the rest, and their entropy
decoding is slower. Nearly all JPEGs are supported: 8 bits, one sequential scan or progressive ones, Huffman codes, grey
or YCbCr, chroma full, halved in one or both directions, or with a quarter of the columns. The libraries decode all others,
and damaged ones; our pixels match theirs bit for bit.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core.arrays import address
from penstock.core.chains import PART, Chain
from penstock.kernels.codecs.image_description import EncodedFiles, ImageHeader
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.files import Bench, Files

_local = threading.local()
_scans, _pixels = ThreadBuffers(), ThreadBuffers()


def decode_region(
    encoded: np.ndarray,
    header: ImageHeader,
    region: Region,
    output: np.ndarray,
    reverse: bool,
    scale: int = 1,
    smooth: bool = True,
) -> bool:
    """Decode a region of a JPEG into ``output``; return False, leaving ``output`` undefined, if it is not supported.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: the file's header.
        region: the region, in rows and columns as stored, within the image at its scale.
        output: filled; (H, W, 3) for RGB, (H, W, 1) for grey; uint8, contiguous.
        reverse: write BGR.
        scale: decode the image at one out of this many rows and columns: 1, 2, 4 or 8.
        smooth: smooth chroma where it is halved; otherwise repeat samples.
    """
    from penstock.kernels.cpu.jpeg.files import decode_file

    bench, place = _bench(encoded.size, header.width), encoded.__array_interface__["data"][0]
    (top, left), size = region.anchor, (header.height, header.width)
    return bool(decode_file(place, encoded.size, *size, scale, top, left, output, reverse, smooth, bench))


def decode_together(
    files: EncodedFiles,
    headers: np.ndarray,
    scales: np.ndarray,
    regions: np.ndarray,
    order: np.ndarray,
    targets: np.ndarray,
    channels: int,
    reverse: bool,
    smooth: bool,
    most_scans: int,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode regions of JPEGs on all threads, each of which takes the next file without asking Python.

    Args:
        files: the files.
        headers: height and width of each, as stored.
        scales: for each file, decode one out of this many rows and columns.
        regions: anchor and extents of each, within the image at its scale.
        order: the numbers of the files to decode, in the order in which threads take them.
        targets: addresses of the pixels of each; uint8 of shape (H, W, ``channels``).
        channels: 3 for RGB, 1 for grey.
        reverse: write BGR.
        smooth: smooth chroma where it is halved; otherwise repeat samples.
        most_scans: files with more scan markers are not decoded.
        parallel: runs a task on all ``num_threads`` threads.

    Returns:
        Which files were decoded; the pixels of others are undefined.
    """
    from penstock.kernels.cpu.jpeg.files import Files, decode_files

    columns, owners = Files(files.places, files.sizes, targets, headers, scales, regions, order), None
    if len(order) < num_threads and regions[order, 2:].prod(axis=1).max() >= 2 * _MIN_PIXELS_OF_PART:
        columns, owners = _split_by_restarts(columns, channels, num_threads)

    def decode(taken: np.ndarray, decoded: np.ndarray, bench: Bench) -> None:
        decode_files(columns, channels, reverse, smooth, most_scans, taken, decoded, bench)

    decoded = on_all_threads(decode, columns, parallel, num_threads)
    if owners is None:
        return decoded
    together = np.ones(len(files), np.bool_)
    np.logical_and.at(together, owners, decoded)
    return together


def decode_for_chain(
    files: EncodedFiles,
    headers: np.ndarray,
    scales: np.ndarray,
    regions: np.ndarray,
    order: np.ndarray,
    channels: int,
    reverse: bool,
    most_scans: int,
    chain: Chain,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode regions of JPEGs on all threads, and compute a chain's sample from each while its pixels are in the cache.

    Args:
        files, headers, scales, regions, order, channels, reverse, most_scans, parallel, num_threads: as for :func:`decode_together`.
        chain: the chain whose samples are computed from the files.

    Returns:
        Which samples were computed.
    """
    from penstock.kernels.cpu.jpeg.files import Files, decode_files_for_chain

    columns = Files(files.places, files.sizes, np.empty(len(files), np.int64), headers, scales, regions, order)
    parts = np.zeros(len(files), PART)
    parts["strides"][:, 0], parts["strides"][:, 1], parts["strides"][:, 2] = channels * regions[:, 3], channels, 1
    parts["anchor"][:, :2] = regions[:, :2]
    parts["extents"][:, :2], parts["extents"][:, 2] = regions[:, 2:], channels
    places, first = chain.places(), address(parts)
    shape = (channels * int(regions[:, 2:].prod(axis=1).max()),)

    def compute(taken: np.ndarray, decoded: np.ndarray, bench: Bench) -> None:
        pixels = _pixels.array(shape, np.dtype(np.uint8))
        decode_files_for_chain(
            columns, channels, reverse, most_scans, places, first, PART.itemsize, address(pixels), taken, decoded, bench
        )

    return on_all_threads(compute, columns, parallel, num_threads)


# For fewer pixels, waking another thread does not pay.
_MIN_PIXELS_OF_PART = 1 << 19


def _split_by_restarts(files: Files, channels: int, num_threads: int) -> tuple[Files, np.ndarray]:
    """Cut large images whose scans have restarts into parts of whole rows, for threads that would be idle otherwise.

    Returns:
        The parts, and the number of each one's file.
    """
    from penstock.kernels.cpu.jpeg.files import Files, has_restarts

    owners: list[int] = []
    regions: list[tuple[int, int, int, int]] = []
    segments, order, most = _segments(), set(files.order.tolist()), num_threads // len(files.order)
    for number, (top, left, rows, columns) in enumerate(files.regions.tolist()):
        count = max(min(most, rows * columns // _MIN_PIXELS_OF_PART), 1) if number in order else 1
        if count > 1 and not has_restarts(files.places[number], files.sizes[number], segments):
            count = 1
        bounds = [top + rows * part // count for part in range(count + 1)]
        owners += [number] * count
        regions += [(begin, left, end - begin, columns) for begin, end in itertools.pairwise(bounds)]
    owned, parts = np.array(owners), np.array(regions)
    offsets = (parts[:, 0] - files.regions[owned, 0]) * parts[:, 3] * channels
    wanted = np.flatnonzero(np.isin(owned, files.order))
    targets = files.targets[owned] + offsets
    headers, scales = files.headers[owned], files.scales[owned]
    return Files(files.places[owned], files.sizes[owned], targets, headers, scales, parts, wanted), owned


def on_all_threads(
    work: Callable[[np.ndarray, np.ndarray, Bench], None],
    files: Files,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Make threads work on the files of a batch, each of which takes the next one without asking Python.

    Args:
        work: the function that a thread runs, with the counter of taken files (int64 of shape (1,)), the flags of
            decoded files, which it sets, and the thread's ``Bench``.
        files: a ``Files``, whose ``order`` has those to decode.
        parallel: runs a task on all ``num_threads`` threads.

    Returns:
        Which files were decoded.
    """
    decoded, taken, order = np.zeros(len(files.places), np.bool_), np.zeros(1, np.int64), files.order
    largest, widest = int(files.sizes[order].max()), int(files.headers[order, 1].max())
    parallel(lambda _: work(taken, decoded, _bench(largest, widest)), min(num_threads, len(order)))
    return decoded


def _bench(size: int, width: int) -> Any:
    """Return this thread's decoder state for files of up to ``size`` bytes and ``width`` columns."""
    from penstock.kernels.cpu.jpeg.entropy import MARGIN
    from penstock.kernels.cpu.jpeg.files import Bench

    return Bench(_segments(), _scans.array((size + MARGIN,), np.dtype(np.uint8)), _strips(width))


def _segments() -> Any:
    """Return this thread's memory for reading segments."""
    from penstock.kernels.cpu.jpeg.segments import memory_for_segments

    if not hasattr(_local, "segments"):
        _local.segments = memory_for_segments()
    return _local.segments


def _strips(width: int) -> Any:
    """Return this thread's memory for decoding images of a width."""
    from penstock.kernels.cpu.jpeg.scan import memory_for

    held, widest = getattr(_local, "strips", (None, 0))
    if widest < width:
        held = memory_for(width)
        _local.strips = held, width
    return held
