"""Decodes JPEGs, or regions of them, with our kernels.

The libraries decode whole images: for a region, they transform and convert much of the rest, too. Their entropy decoding is also slower.
Nearly all JPEGs are supported: 8 bits, a single sequential scan or progressive scans, Huffman codes, grey or YCbCr, chroma at full
resolution, halved in one or both directions, or with a quarter of the columns. Other files, and damaged ones, are left to the libraries,
whose pixels ours match bit for bit.
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
    from penstock.kernels.cpu.jpeg.files import Files, Scratch

_local = threading.local()
_scans, _pixels = ThreadBuffers(), ThreadBuffers()
_NO_ROWS = np.empty(0, np.uint8)
_ANY_NUMBER = np.iinfo(np.int64).max


def decode_region(
    encoded: np.ndarray,
    header: ImageHeader,
    region: Region,
    output: np.ndarray,
    reverse: bool,
    scale: int = 1,
    smooth: bool = True,
) -> bool:
    """Decode a region of a JPEG into ``output``; if the file is not supported, return False, with ``output`` undefined.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: the file's header.
        region: the region, in rows and columns of the stored image after it is reduced by ``scale``.
        output: the array to fill: uint8 of shape (H, W, 3) for RGB, or (H, W, 1) for grey; contiguous.
        reverse: whether to write BGR.
        scale: the factor by which the image is reduced: 1, 2, 4 or 8.
        smooth: whether to interpolate chroma that is subsampled by 2; otherwise samples are repeated.
    """
    from penstock.kernels.cpu.jpeg.files import Files, decode_files
    from penstock.kernels.cpu.jpeg.scan import NO_CONSUMER

    places, sizes, scales, order = np.array([[address(encoded)], [encoded.size], [scale], [0]], np.int64)
    headers, regions = np.array([[header.height, header.width]]), np.array([[*region.anchor, *output.shape[:2]]])
    files = Files(places, sizes, np.array([address(output)]), headers, scales, regions, order)
    taken, decoded, scratch = np.zeros(1, np.int64), np.zeros(1, np.bool_), _scratch(encoded.size, header.width)
    decode_files(files, output.shape[2], reverse, smooth, _ANY_NUMBER, NO_CONSUMER, _NO_ROWS, taken, decoded, scratch)
    return bool(decoded[0])


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
    """Decode regions of JPEGs on all threads; each thread takes the next file itself, without Python.

    Args:
        files: the files.
        headers: the height and width of each image, as stored.
        scales: the factor by which each image is reduced.
        regions: the anchor and the extents of each region, in the reduced image.
        order: the numbers of the files to decode, in the order in which threads take them.
        targets: the address to which each image's pixels are written, uint8 of shape (H, W, ``channels``).
        channels: 3 for RGB, 1 for grey.
        reverse: whether to write BGR.
        smooth: whether to interpolate chroma that is subsampled by 2; otherwise samples are repeated.
        most_scans: files with more scan markers than this are not decoded.
        parallel: function that runs a task on all ``num_threads`` threads.

    Returns:
        Which files were decoded; the pixels of other files are undefined.
    """
    from penstock.kernels.cpu.jpeg.files import Files, decode_files
    from penstock.kernels.cpu.jpeg.scan import NO_CONSUMER

    columns, owners = Files(files.places, files.sizes, targets, headers, scales, regions, order), None
    if len(order) < num_threads and regions[order, 2:].prod(axis=1).max() >= 2 * _MIN_PIXELS_OF_PART:
        columns, owners = _split_by_restarts(columns, channels, num_threads)

    def decode(taken: np.ndarray, decoded: np.ndarray, scratch: Scratch) -> None:
        decode_files(columns, channels, reverse, smooth, most_scans, NO_CONSUMER, _NO_ROWS, taken, decoded, scratch)

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
    """Decode regions of JPEGs on all threads, and compute a sample of a chain from each while its pixels are in the CPU's cache.

    Args:
        files, headers, scales, regions, order, channels, reverse, most_scans, parallel, num_threads: as for :func:`decode_together`.
        chain: the chain whose samples are computed from the files.

    Returns:
        Which samples were computed.
    """
    from penstock.kernels.cpu.jpeg.files import Files, decode_files
    from penstock.kernels.cpu.jpeg.scan import Consumer

    columns = Files(files.places, files.sizes, np.empty(len(files), np.int64), headers, scales, regions, order)
    parts = np.zeros(len(files), PART)
    parts["strides"][:, 0], parts["strides"][:, 1], parts["strides"][:, 2] = channels * regions[:, 3], channels, 1
    parts["anchor"][:, :2] = regions[:, :2]
    parts["extents"][:, :2], parts["extents"][:, 2] = regions[:, 2:], channels
    shape = (channels * int(regions[:, 2:].prod(axis=1).max()),)

    def compute(taken: np.ndarray, decoded: np.ndarray, scratch: Scratch) -> None:
        pixels = _pixels.array(shape, np.dtype(np.uint8))
        function, context = chain.consumer(parts, pixels)
        consumer = Consumer(function, address(context), int(regions[:, 2].max()), 0)
        decode_files(columns, channels, reverse, True, most_scans, consumer, pixels, taken, decoded, scratch)

    return on_all_threads(compute, columns, parallel, num_threads)


# With fewer pixels than this, waking another thread does not pay off.
_MIN_PIXELS_OF_PART = 1 << 19


def _split_by_restarts(files: Files, channels: int, num_threads: int) -> tuple[Files, np.ndarray]:
    """Cut large images with restart markers into parts of whole rows, to occupy threads that would be idle otherwise.

    Returns:
        The parts, and for each part the number of its file.
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
    work: Callable[[np.ndarray, np.ndarray, Scratch], None],
    files: Files,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Make threads work on the files of a batch; each thread takes the next file itself, without Python.

    Args:
        work: the function that each thread runs. Its arguments are the counter of files that threads have taken (int64 of shape (1,)), the
            flags of decoded files, which it sets, and the thread's ``Scratch``.
        files: a ``Files``; its ``order`` contains the numbers of the files to decode.
        parallel: function that runs a task on all ``num_threads`` threads.

    Returns:
        Which files were decoded.
    """
    decoded, taken, order = np.zeros(len(files.places), np.bool_), np.zeros(1, np.int64), files.order
    largest, widest = int(files.sizes[order].max()), int(files.headers[order, 1].max())
    parallel(lambda _: work(taken, decoded, _scratch(largest, widest)), min(num_threads, len(order)))
    return decoded


def _scratch(size: int, width: int) -> Any:
    """Return this thread's decoder state, for files of up to ``size`` bytes and images of up to ``width`` columns."""
    from penstock.kernels.cpu.jpeg.entropy import MARGIN
    from penstock.kernels.cpu.jpeg.files import Scratch

    return Scratch(_segments(), _scans.array((size + MARGIN,), np.dtype(np.uint8)), _strips(width))


def _segments() -> Any:
    """Return this thread's memory for reading segments."""
    from penstock.kernels.cpu.jpeg.segments import memory_for_segments

    if not hasattr(_local, "segments"):
        _local.segments = memory_for_segments()
    return _local.segments


def _strips(width: int) -> Any:
    """Return this thread's memory for decoding images of up to ``width`` columns."""
    from penstock.kernels.cpu.jpeg.scan import memory_for

    held, widest = getattr(_local, "strips", (None, 0))
    if widest < width:
        held = memory_for(width)
        _local.strips = held, width
    return held
