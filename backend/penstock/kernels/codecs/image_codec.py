"""Decodes images on the CPU into preallocated arrays.

Results equal those of DALI's CPU decoder: the accurate inverse DCT and smooth chroma upsampling for JPEG, conversion to other types scaled
to the types' ranges, and YCbCr in the studio range of ITU-R BT.601.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core.chains import Chain
from penstock.core.codecs import PNG, PixelSpace, decode_png
from penstock.core.codecs import decode_pngs as decode_several_pngs
from penstock.data_types import DALIImageType
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers import bmp, png, tiff, webp
from penstock.kernels.codecs.image_description import (
    UPRIGHT,
    EncodedFiles,
    ImageHeader,
    JpegHeaders,
    Orientation,
    PngHeaders,
    output_channels,
)
from penstock.kernels.codecs.image_errors import CorruptImageError, ImageError
from penstock.kernels.codecs.image_header import reading_with_pillow
from penstock.kernels.codecs.isolated_images import decode_isolated
from penstock.kernels.codecs.jpeg_baseline import decode_for_chain, decode_region, decode_together, on_all_threads
from penstock.kernels.codecs.jpeg_regions import decodes_alone
from penstock.kernels.codecs.libraries import decode_on_cpu, libdeflate, libwebp, nvimgcodec, simplejpeg
from penstock.kernels.colour import LUMA, TO_YCBCR, YCBCR_OFFSET
from penstock.kernels.cpu.opencv import opencv
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.files import Files, Scratch

_pixels = ThreadBuffers()

_COLOURS = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.YCbCr)
_SIMPLEJPEG_SPACES = {DALIImageType.RGB: "RGB", DALIImageType.BGR: "BGR", DALIImageType.GRAY: "GRAY"}


def decode(
    encoded: np.ndarray,
    header: ImageHeader,
    output: np.ndarray,
    output_type: DALIImageType = DALIImageType.RGB,
    adjust_orientation: bool = True,
    fast_idct: bool = False,
    region: Region | None = None,
    decoding: Decoding = FREELY,
    smooth: bool = True,
) -> None:
    """Decode an image, or a region of it, into ``output``.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        header: the header from :func:`~penstock.kernels.codecs.image_header.read_header`.
        output: the array to fill, of shape (H, W, C): that of ``header.shape(output_type, adjust_orientation)``, or of the region. Integers
            of 8, 16 and 32 bits hold values scaled to the type's range, float32 values in [0, 1].
        output_type: the colour space; ``ANY_DATA`` keeps the stored channels.
        adjust_orientation: whether to rotate the image as its EXIF data says.
        fast_idct: whether to use a faster, less accurate inverse DCT for JPEG.
        region: the region, in rows and columns of the upright image; None: the whole image.
        decoding: the settings, which determine in which process to decode; the same as for reading the header.
        smooth: whether to interpolate chroma of JPEGs that is subsampled by 2; otherwise samples are repeated.

    Raises:
        CorruptImageError: the data is truncated or damaged.
        DecoderDiedError: the worker process that decoded the image died.
    """
    if header.isolated and decoding.pool is not None:
        decode_isolated(
            decoding.pool, encoded, header, output, output_type, adjust_orientation, fast_idct, region, smooth
        )
    else:
        decode_in_process(encoded, header, output, output_type, adjust_orientation, fast_idct, region, smooth)


def decode_in_process(
    encoded: np.ndarray,
    header: ImageHeader,
    output: np.ndarray,
    output_type: DALIImageType,
    adjust_orientation: bool,
    fast_idct: bool,
    region: Region | None,
    smooth: bool,
) -> None:
    """Same as :func:`decode`, but always in this process."""
    encoded = _unwritable(encoded)
    if header.format == "jpeg":
        _check_scans(encoded)
    orientation = header.placed(adjust_orientation)
    fast_idct = fast_idct and orientation == UPRIGHT  # DALI has no fast transform for images that it rotates.
    stored = None
    if region is not None:
        stored = orientation.stored_region(region, *orientation.size(header.height, header.width))
    space = _jpeg_space(header, output_type) if output.dtype == np.uint8 else None
    if space is not None:
        upright = orientation == UPRIGHT and output.flags.c_contiguous
        size = (header.height, header.width) if stored is None else stored.extents
        pixels = output if upright else np.empty((*size, output.shape[2]), np.uint8)
        if _decode_jpeg(encoded, header, space, pixels, fast_idct, stored, smooth):
            if not upright:
                _copy_pixels(orientation.upright(pixels), output)
            return
    decoded = None
    wanted = output if orientation == UPRIGHT and output_type != DALIImageType.YCbCr else None
    if header.format == "webp" and wanted is not None and _decode_webp(encoded, output_type, stored, wanted):
        return
    if wanted is not None and _copy_plain(encoded, header, output_type, stored, wanted):
        return
    if header.format == "png":
        decoded = _decode_png(encoded, header, output_type, stored, wanted)
        if decoded is None:
            encoded = png.without_animation(encoded)
    pixels, maximum = decoded or _decode_stored(encoded, header, output_type, fast_idct, stored, smooth)
    if pixels is output:
        return
    shape = orientation.upright(pixels).shape
    if shape != output.shape:
        raise CorruptImageError(
            f"The image decodes to the shape {shape} (height, width, channels), but {output.shape} was expected"
        )
    _write_upright(pixels, maximum, output_type == DALIImageType.YCbCr, orientation, output)


def decode_to_scratch(
    encoded: np.ndarray,
    header: ImageHeader,
    region: Region,
    output_type: DALIImageType = DALIImageType.RGB,
    adjust_orientation: bool = True,
    fast_idct: bool = False,
) -> np.ndarray | None:
    """Return a region of an image as uint8, in scratch memory that this thread's next call overwrites.

    This saves the copy that :func:`decode` makes. Return None for images that cannot be decoded in place: those that need rotation or
    conversion, those that are decoded in a worker process, and those of which a region alone may not decode exactly.
    """
    space = _jpeg_space(header, output_type)
    if header.isolated or header.placed(adjust_orientation) != UPRIGHT or space is None:
        return None
    encoded = _unwritable(encoded)
    pixels = _pixels.array((*region.extents, 1 if space == "GRAY" else 3), np.dtype(np.uint8))
    if _decode_jpeg(encoded, header, space, pixels, fast_idct, region):
        return pixels
    if not decodes_alone(encoded, header, region):
        return None
    decoded, _ = _decode_stored(encoded, header, output_type, fast_idct, region)
    return decoded if decoded.dtype == np.uint8 else None


def reduced_extents(extents: Sequence[int], scale: int) -> tuple[int, ...]:
    """Return the numbers of rows and columns of an image that is reduced by ``scale``; the last row and column may cover fewer
    pixels.
    """
    return tuple(-(-extent // scale) for extent in extents)


def decode_reduced(
    encoded: np.ndarray,
    header: ImageHeader,
    scale: int,
    output: np.ndarray,
    output_type: DALIImageType = DALIImageType.RGB,
    adjust_orientation: bool = True,
    region: Region | None = None,
    decoding: Decoding = FREELY,
) -> None:
    """Decode an image, or a region of it, at a size reduced by ``scale``.

    Ordinary JPEGs are reduced in the transform domain; the results of most equal those of libjpeg-turbo at this scale. In other images,
    each pixel is the mean of ``scale`` x ``scale`` decoded pixels.

    Args:
        encoded, header, output_type, adjust_orientation, decoding: as for :func:`decode`.
        scale: 2, 4 or 8.
        output: the array to fill, of shape (H, W, C): that of the reduced image, or of the region.
        region: the region, in rows and columns of the upright reduced image; None: the whole image.

    Raises:
        CorruptImageError, DecoderDiedError: as for :func:`decode`.
    """
    whole = header.shape(output_type, adjust_orientation)
    region = region or Region.whole(reduced_extents(whole[:2], scale))
    space = _jpeg_space(header, output_type) if output.dtype == np.uint8 else None
    if space is not None and not (header.isolated and decoding.pool is not None):
        orientation, encoded = header.placed(adjust_orientation), _unwritable(encoded)
        _check_scans(encoded)
        # Incomplete blocks are at the end of the stored rows and columns, so images with such blocks must be rotated after the
        # reduction.
        complete = header.height % scale == 0 and header.width % scale == 0
        if orientation == UPRIGHT or complete:
            stored = orientation.stored_region(region, *reduced_extents(whole[:2], scale))
            pixels = output
            if orientation != UPRIGHT or not output.flags.c_contiguous:
                pixels = np.empty((*stored.extents, output.shape[2]), np.uint8)
            if decode_region(encoded, header, stored, pixels, space == "BGR", scale):
                if pixels is not output:
                    _copy_pixels(orientation.upright(pixels), output)
                return
    full = np.empty(whole, output.dtype)
    decode(encoded, header, full, output_type, adjust_orientation, decoding=decoding)
    output[...] = _averaged(full, scale, region)


def _averaged(image: np.ndarray, scale: int, region: Region) -> np.ndarray:
    """Return the means of ``scale`` x ``scale`` pixels in a region; the last rows and columns are repeated to complete
    blocks.
    """
    (top, left), (rows, columns) = region.anchor, region.extents
    part = image[top * scale : (top + rows) * scale, left * scale : (left + columns) * scale]
    missing = ((0, rows * scale - part.shape[0]), (0, columns * scale - part.shape[1]), (0, 0))
    blocks = np.pad(part, missing, "edge").reshape(rows, scale, columns, scale, -1)
    means = blocks.mean(axis=(1, 3), dtype=np.float64 if image.dtype.itemsize > 2 else np.float32)
    return means if image.dtype.kind == "f" else np.floor(means + 0.5)


def decode_reduced_to_scratch(
    encoded: np.ndarray,
    header: ImageHeader,
    scale: int,
    region: Region,
    output_type: DALIImageType,
    adjust_orientation: bool,
    decoding: Decoding,
) -> np.ndarray:
    """Same as :func:`decode_reduced` for a region, but return it as uint8 in scratch memory that this thread's next call overwrites."""
    channels = header.shape(output_type, adjust_orientation)[2]
    pixels = _pixels.array((*region.extents, channels), np.dtype(np.uint8))
    decode_reduced(encoded, header, scale, pixels, output_type, adjust_orientation, region, decoding)
    return pixels


def decode_jpegs(
    files: EncodedFiles,
    headers: JpegHeaders,
    scale: int,
    regions: tuple[np.ndarray, np.ndarray] | None,
    targets: np.ndarray,
    output_type: DALIImageType,
    adjust_orientation: bool,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode many JPEGs in one call to RGB, BGR or grey of uint8; results equal those of :func:`decode`.

    Args:
        files: the files.
        headers: the headers of all files; no file may have to be decoded in a worker process.
        scale: the factor by which images are reduced; see :func:`decode_reduced`.
        regions: anchors and extents (H, W) of the parts of the reduced images to decode; None: whole images.
        targets: the addresses to which pixels are written.
        output_type, adjust_orientation: as for :func:`decode`.
        parallel, num_threads: as for :func:`~penstock.kernels.codecs.jpeg_baseline.decode_together`.

    Returns:
        Which files were decoded; the others need :func:`decode` or :func:`decode_reduced`.
    """
    sizes, order = headers.sizes, _largest_first(files, headers, adjust_orientation)
    reduced, scales = -(-sizes // scale), np.full(len(files), scale, np.int64)
    parts = np.hstack((np.zeros_like(sizes), reduced) if regions is None else regions)
    return _decode_in_order(files, sizes, scales, parts, order, targets, output_type, True, parallel, num_threads)


def decode_stored_jpegs(
    files: EncodedFiles,
    sizes: np.ndarray,
    windows: np.ndarray,
    targets: np.ndarray,
    output_type: DALIImageType,
    smooth: bool,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode windows of many JPEGs in one call, without rotating them.

    Args:
        files, targets, output_type, smooth, parallel, num_threads: as for :func:`decode_jpegs` and :func:`decode`.
        sizes: heights and widths of the stored images, int64 of shape (images, 2).
        windows: top, left, height and width of the parts to decode, int64 of shape (images, 4).

    Returns:
        Which files were decoded; the others need :func:`decode`.
    """
    order, scales = np.argsort(-files.sizes, kind="stable"), np.ones(len(files), np.int64)
    return _decode_in_order(files, sizes, scales, windows, order, targets, output_type, smooth, parallel, num_threads)


def _decode_in_order(
    files: EncodedFiles,
    sizes: np.ndarray,
    scales: np.ndarray,
    parts: np.ndarray,
    order: np.ndarray,
    targets: np.ndarray,
    output_type: DALIImageType,
    smooth: bool,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode the JPEGs whose numbers are in ``order``; return which JPEGs were decoded."""
    if not order.size:
        return np.zeros(len(files), np.bool_)
    how = output_channels(output_type, 0), output_type == DALIImageType.BGR, smooth, _most_scans()
    return decode_together(files, sizes, scales, parts, order, targets, *how, parallel, num_threads)


def decode_jpegs_for(
    files: EncodedFiles,
    headers: JpegHeaders,
    scales: np.ndarray,
    regions: np.ndarray,
    targets: np.ndarray,
    work: Callable[[Files, int, np.ndarray, np.ndarray, Scratch], None],
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Make threads decode upright JPEGs and compute the next step from each; return which were decoded.

    Args:
        files, headers, parallel, num_threads: as for :func:`decode_jpegs`.
        scales: the factor by which each image is reduced, int64.
        regions: anchors and extents (H, W) of the parts of the reduced images to decode, int64 of shape (images, 4).
        targets: the addresses to which results are written.
        work: the function that each thread runs. Its arguments are a ``Files``, the limit on scans, the counter of files that threads have
            taken, the flags of decoded files, and a ``Scratch``.
    """
    from penstock.kernels.cpu.jpeg.files import Files

    order = _largest_first(files, headers, upright=True)
    if not order.size:
        return np.zeros(len(files), np.bool_)
    columns, most = Files(files.places, files.sizes, targets, headers.sizes, scales, regions, order), _most_scans()
    return on_all_threads(functools.partial(work, columns, most), columns, parallel, num_threads)


def run_chain_of_jpegs(
    files: EncodedFiles,
    headers: JpegHeaders,
    scale: int,
    regions: np.ndarray,
    chain: Chain,
    output_type: DALIImageType,
    adjust_orientation: bool,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode regions of many JPEGs, and compute a sample of a chain from each; return which samples were computed.

    Args:
        files, headers, scale, output_type, adjust_orientation, parallel, num_threads: as for :func:`decode_jpegs`.
        regions: anchors and extents (H, W) of the parts of the reduced images to decode, int64 of shape (images, 4).
        chain: the chain whose samples are computed from the images.
    """
    order = _largest_first(files, headers, adjust_orientation)
    if not order.size:
        return np.zeros(len(files), np.bool_)
    scales = np.full(len(files), scale, np.int64)
    channels, reverse = output_channels(output_type, 0), output_type == DALIImageType.BGR
    return decode_for_chain(
        files,
        headers.sizes,
        scales,
        regions,
        order,
        channels,
        reverse,
        _most_scans(),
        chain,
        parallel,
        num_threads,
    )


def _largest_first(files: EncodedFiles, headers: JpegHeaders, upright: bool) -> np.ndarray:
    """Return the numbers of the files to decode, the largest file first; ``upright``: leave out images that have to be rotated."""
    order = np.argsort(-files.sizes, kind="stable")
    return order[~headers.turned[order]] if upright else order


def _unwritable(encoded: np.ndarray) -> np.ndarray:
    """Return a read-only view, as numba would compile kernels again for writable arrays."""
    view = encoded.view()
    view.flags.writeable = False
    return view


_SCAN = np.uint8(0xDA)


def _check_scans(encoded: np.ndarray) -> None:
    """Raise CorruptImageError for a JPEG whose number of scans can only be meant to exhaust the decoder.

    The limit, and the environment variable that sets it, are DALI's.
    """
    from penstock.kernels.cpu.jpeg.markers import count_markers

    limit = _most_scans()
    if count_markers(encoded, _SCAN) > limit:
        raise CorruptImageError(
            f"The number of scans ({limit + 1}) during progressive decoding exceeds the maximum of {limit}; "
            "the environment variable DALI_MAX_JPEG_SCANS changes this limit"
        )


def _most_scans() -> int:
    return int(os.environ.get("DALI_MAX_JPEG_SCANS", "256"))


# -- JPEG directly into the output ---------------------------------------------------------------------------------


def _jpeg_space(header: ImageHeader, output_type: DALIImageType) -> str | None:
    """Return simplejpeg's name of the colour space to which it can decode a JPEG without further conversion, or None."""
    if header.format != "jpeg" or header.channels not in (1, 3):
        return None
    if output_type == DALIImageType.ANY_DATA:
        return "GRAY" if header.channels == 1 else "RGB"
    return _SIMPLEJPEG_SPACES.get(output_type)


def _decode_jpeg(
    encoded: np.ndarray,
    header: ImageHeader,
    space: str,
    output: np.ndarray,
    fast_idct: bool,
    region: Region | None,
    smooth: bool = True,
) -> bool:
    """Decode a JPEG, or a region of it, into a contiguous array; return False if another decoder is needed."""
    whole = (header.height, header.width)
    if not fast_idct and (region is not None or encoded.size >= _MIN_BYTES_FOR_SCAN_KERNELS):
        part = Region.whole(whole) if region is None else region
        if decode_region(encoded, header, part, output, space == "BGR", smooth=smooth):
            return True
    if region is None:
        return _decode_with_simplejpeg(encoded, space, output, fast_idct, smooth)
    if smooth:
        return False
    pixels = np.empty((*whole, output.shape[2]), np.uint8)
    if not _decode_with_simplejpeg(encoded, space, pixels, fast_idct, smooth):
        return False
    output[...] = pixels[region.overlap(pixels.shape)[0]]
    return True


# Our kernels make tables for each file; for files smaller than this, that takes longer than faster decoding saves.
_MIN_BYTES_FOR_SCAN_KERNELS = 1 << 15


def _decode_with_simplejpeg(encoded: np.ndarray, space: str, output: np.ndarray, fast_idct: bool, smooth: bool) -> bool:
    if simplejpeg() is None:
        return False
    try:
        simplejpeg().decode_jpeg(encoded, space, fastdct=fast_idct, fastupsample=not smooth, buffer=output)
    except ValueError:
        # simplejpeg rejects data with the slightest damage; then nvImageCodec decodes, which accepts the same files as DALI.
        return False
    return True


# -- ordinary PNG ----------------------------------------------------------------------------------------------------

_PNG_SPACES = {
    DALIImageType.BGR: PixelSpace.BGR,
    DALIImageType.GRAY: PixelSpace.GREY,
    DALIImageType.ANY_DATA: PixelSpace.AS_STORED,
}


def _decode_png(
    encoded: np.ndarray,
    header: ImageHeader,
    output_type: DALIImageType,
    region: Region | None,
    wanted: np.ndarray | None,
) -> tuple[np.ndarray, float] | None:
    """Decode a PNG like :func:`_decode_stored`, into ``wanted`` if that array has the right type; return None if another
    decoder is needed.
    """
    library = libdeflate()
    if library is None or not png.decodes_alike(encoded, header, output_type):
        return None
    region = region or Region.whole((header.height, header.width))
    bits = png.value_bits(encoded)
    dtype = np.dtype(f"u{bits // 8}")
    pixels = wanted
    if pixels is None or pixels.dtype != dtype or not pixels.flags.c_contiguous:
        pixels = np.empty((*region.extents, output_channels(output_type, header.channels)), dtype)
    space = _PNG_SPACES.get(output_type, PixelSpace.RGB)
    if not decode_png(library, encoded, region.anchor, space, pixels):
        return None
    return pixels, float((1 << bits) - 1)


def decode_pngs(
    files: EncodedFiles,
    headers: PngHeaders,
    regions: tuple[np.ndarray, np.ndarray] | None,
    targets: np.ndarray,
    output_type: DALIImageType,
    parallel: Callable[[Callable[[int], None], int], None],
    num_threads: int,
) -> np.ndarray:
    """Decode many PNGs to RGB, BGR or grey of uint8, several small ones in each call; results equal those of :func:`decode`.

    Args:
        files, targets, output_type, parallel, num_threads: as for :func:`decode_jpegs`.
        headers: the headers of all files.
        regions: anchors and extents (H, W) of the parts to decode; None: whole images.

    Returns:
        Which files were decoded; the others need :func:`decode`.
    """
    library, decoded = libdeflate(), np.zeros(len(files), np.bool_)
    if library is None:
        return decoded
    pngs = np.zeros(len(files), PNG)
    pngs["data"], pngs["size"], pngs["output"], pngs["value_bytes"] = files.places, files.sizes, targets, 1
    anchors, extents = (np.zeros((1, 2), np.int64), headers.shapes[:, :2]) if regions is None else regions
    pngs["top"], pngs["left"] = anchors[:, 0], anchors[:, 1]
    pngs["height"], pngs["width"] = extents[:, 0], extents[:, 1]
    pngs["space"] = _PNG_SPACES.get(output_type, PixelSpace.RGB)
    pngs["output_pitch"] = extents[:, 1] * output_channels(output_type, 0)
    ends = files.sizes.cumsum()
    shares = min(len(files), int(ends[-1]) // _MIN_PNG_BYTES_PER_TASK) if num_threads > 1 and len(files) else 1
    bounds = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, shares) // shares).tolist(), len(files)]

    def decode_share(number: int) -> None:
        own = slice(*bounds[number : number + 2])
        decode_several_pngs(library, pngs[own], decoded[own])

    if shares < 2:
        decode_share(0)
    else:
        parallel(decode_share, shares)
    return decoded


# From this many bytes on, decoding takes longer than starting a task.
_MIN_PNG_BYTES_PER_TASK = 1 << 14


# -- WebP directly into the output -----------------------------------------------------------------------------------

_WEBP_DECODERS = {DALIImageType.RGB: "WebPDecodeRGBInto", DALIImageType.BGR: "WebPDecodeBGRInto"}


def _decode_webp(encoded: np.ndarray, output_type: DALIImageType, region: Region | None, output: np.ndarray) -> bool:
    """Decode a WebP that is not animated into ``output``; return False if another decoder is needed."""
    library = libwebp()
    if library is None or region is not None or output_type not in _WEBP_DECODERS or webp.is_animated(encoded):
        return False
    if output.dtype != np.uint8 or not output.flags.c_contiguous:
        return False
    place, (height, width, _) = (encoded.ctypes.data, encoded.size), output.shape
    found_width, found_height = ctypes.c_int(), ctypes.c_int()
    known = library.WebPGetInfo(*place, ctypes.byref(found_width), ctypes.byref(found_height))
    if not known or (found_height.value, found_width.value) != (height, width):
        return False
    decode_into = getattr(library, _WEBP_DECODERS[output_type])
    return bool(decode_into(*place, output.ctypes.data, output.size, output.strides[0]))


# -- plain BMP and TIFF --------------------------------------------------------------------------------------------

_PLAIN_ROWS = {"bmp": (bmp.plain_rows, DALIImageType.BGR), "tiff": (tiff.plain_rows, DALIImageType.RGB)}
"""For each uncompressed format, the function that returns a file's rows, and the order of the channels in them."""


def plain_pixels(
    encoded: np.ndarray, header: ImageHeader, output_type: DALIImageType, region: Region | None
) -> tuple[np.ndarray, bool] | None:
    """Find the pixels of an uncompressed 24-bit BMP or TIFF in its file.

    Args:
        encoded: the file.
        header: the file's header.
        output_type: the colour space of the result.
        region: the region of the image, as stored; None: the whole image.

    Returns:
        A view of the file, uint8 of shape (H, W, 3), and whether the result has the channels in reverse order; None if the file has
        other pixels, or the result other colours.
    """
    if header.format not in _PLAIN_ROWS or output_type not in (DALIImageType.RGB, DALIImageType.BGR):
        return None
    find_rows, stored_as = _PLAIN_ROWS[header.format]
    rows = find_rows(encoded)
    if rows is None:
        return None
    return rows if region is None else rows[region.overlap(rows.shape)[0]], output_type != stored_as


def _copy_plain(
    encoded: np.ndarray, header: ImageHeader, output_type: DALIImageType, region: Region | None, output: np.ndarray
) -> bool:
    """Copy the pixels of an uncompressed 24-bit BMP or TIFF; return False if another decoder is needed."""
    if output.dtype != np.uint8 or not output.flags.c_contiguous:
        return False
    found = plain_pixels(encoded, header, output_type, region)
    if found is None or found[0].shape != output.shape:
        return False
    rows, is_reversed = found
    if not is_reversed:
        output[...] = rows
        return True
    cv2 = opencv()
    # OpenCV does not accept rows in reverse order, so they are copied first, band by band: a band stays in the cache between both steps.
    for start in range(0, len(rows), _BAND):
        band = output[start : start + _BAND]
        cv2.cvtColor(np.ascontiguousarray(rows[start : start + _BAND]), cv2.COLOR_BGR2RGB, dst=band)
    return True


# -- everything else: the stored pixels and the value of full intensity ----------------------------------------------


def _decode_stored(
    encoded: np.ndarray,
    header: ImageHeader,
    output_type: DALIImageType,
    fast_idct: bool,
    region: Region | None,
    smooth: bool = True,
) -> tuple[np.ndarray, float]:
    """Return the pixels (H, W, C) as stored, not rotated, and the value of full intensity.

    For the output type YCbCr, pixels are RGB.
    """
    if gray_via_rgb(header, output_type):
        pixels, maximum = _decode_stored(encoded, header, DALIImageType.RGB, fast_idct, region, smooth)
        gray = pixels @ LUMA.astype(np.float32)
        return gray.astype(pixels.dtype)[..., np.newaxis], maximum
    if header.format == "tiff" and header.channels == 2 and output_type in _COLOURS:
        # nvImageCodec reads beyond the colour planes of such images.
        pixels, maximum = _decode_stored(encoded, header, DALIImageType.GRAY, fast_idct, region)
        return np.repeat(pixels, 3, axis=2), maximum
    codec = nvimgcodec()
    unknown_to_pillow = codec is not None and _is_unknown_to_pillow(encoded, header)
    if codec is None or not (
        unknown_to_pillow or taken_by_nvimgcodec(header, output_type) or _pillow_cuts_depth(codec, encoded, header)
    ):
        return _decode_with_pillow(encoded, header, output_type, region)
    if _holds_real_colours(codec, encoded, header):
        return _decode_with_opencv(encoded, header, output_type, region), 1.0
    if header.format in _VETTED_BY_PILLOW and not unknown_to_pillow:
        pixels, maximum = _decode_with_pillow(encoded, header, output_type, region)
        if _pillow_is_right(codec, encoded, header):
            return pixels, maximum
    try:
        stream = codec.CodeStream(encoded)
        # TIFFs of 10 to 14 bits are scaled to 16 bits when they are decoded.
        precision = stream.precision if header.format != "tiff" else 8 * np.dtype(stream.dtype).itemsize
        maximum = full_intensity(np.dtype(stream.dtype), precision)
    except (RuntimeError, TypeError):
        raise _decode_error(encoded, header) from None
    if region is not None:
        stream = stream.get_sub_code_stream(region=nvimgcodec_region(region))
    decoded = decode_on_cpu(stream, decode_parameters(output_type), fast_idct, smooth)
    if decoded is None:
        raise _decode_error(encoded, header)
    return decoded, maximum


def nvimgcodec_region(region: Region) -> Any:
    """Return a region in nvImageCodec's form."""
    return nvimgcodec().Region(*corners(region))


def corners(region: Region) -> tuple[int, int, int, int]:
    """Return a region's top, left, bottom and right."""
    (top, left), (height, width) = region.anchor, region.extents
    return top, left, top + height, left + width


def full_intensity(dtype: np.dtype, precision: int) -> float:
    """Return the value of full intensity in decoded images of a type, whose values have ``precision`` significant bits."""
    if dtype.kind == "f":
        return 1.0
    # Images of fewer than 8 bits are scaled to 8 bits when they are decoded.
    return float(2**precision - 1) if dtype.itemsize > 1 else 255.0


# Formats of which damaged files make nvImageCodec 0.9 crash, and which Pillow supports.
_VETTED_BY_PILLOW = ("jpeg2k", "tiff")


def _is_unknown_to_pillow(encoded: np.ndarray, header: ImageHeader) -> bool:
    """Return whether Pillow cannot read this kind of image; pipelines decode such files in worker processes."""
    return header.format == "tiff" and not header.by_pillow and tiff.check_tiff(encoded.data).crash_prone


def _pillow_is_right(codec: ModuleType, encoded: np.ndarray, header: ImageHeader) -> bool:
    """Return whether Pillow decodes a file without loss: it has at most 8 bits per value, and is not CMYK."""
    return not header.cmyk and codec.CodeStream(encoded).precision <= 8


def _pillow_cuts_depth(codec: ModuleType, encoded: np.ndarray, header: ImageHeader) -> bool:
    """Return whether an image is a TIFF with alpha and more than 8 bits, which Pillow would reduce to 8 bits."""
    return (
        header.format == "tiff"
        and header.channels == 4
        and not header.by_pillow
        and codec.CodeStream(encoded).precision > 8
    )


def _holds_real_colours(codec: ModuleType, encoded: np.ndarray, header: ImageHeader) -> bool:
    """Return whether an image is a floating-point colour TIFF, which Pillow cannot read."""
    return (
        header.format == "tiff"
        and header.channels == 3
        and not header.by_pillow
        and np.dtype(codec.CodeStream(encoded).dtype) == np.float32
    )


def _decode_with_opencv(
    encoded: np.ndarray, header: ImageHeader, output_type: DALIImageType, region: Region | None
) -> np.ndarray:
    """Decode an image with three channels, without rotating it."""
    cv2 = opencv()
    # OpenCV rotates some kinds of images and not others; DALI does not rotate images of this kind.
    pixels = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED) if header.orientation == UPRIGHT else None
    if pixels is None or pixels.shape != (header.height, header.width, 3):
        raise _decode_error(encoded, header)
    if region is not None:
        pixels = pixels[region.overlap(pixels.shape)[0]]
    if output_type == DALIImageType.GRAY:
        return (pixels[..., ::-1] @ LUMA.astype(np.float32))[..., np.newaxis]
    return pixels if output_type == DALIImageType.BGR else pixels[..., ::-1]


def gray_via_rgb(header: ImageHeader, output_type: DALIImageType) -> bool:
    """Return whether an image is converted to grey via RGB, which applies to CMYK JPEGs."""
    return header.format == "jpeg" and header.channels == 4 and output_type == DALIImageType.GRAY


def taken_by_nvimgcodec(header: ImageHeader, output_type: DALIImageType) -> bool:
    """Return whether nvImageCodec decodes images with this header correctly.

    It reads fewer formats than Pillow, changes the channels of some images, and multiplies the colours of TIFFs by alpha.
    """
    if header.by_pillow:
        return False
    if output_type != DALIImageType.ANY_DATA:
        return True
    if header.format == "tiff":
        return header.channels != 4 or header.cmyk
    return header.channels != 2 and (header.channels != 4 or header.format not in ("jpeg", "bmp"))


@functools.cache
def decode_parameters(output_type: DALIImageType) -> Any:
    """Return the parameters with which nvImageCodec decodes the stored image at its bit depth; for YCbCr, to RGB."""
    codec = nvimgcodec()
    spaces, formats = codec.ColorSpec, codec.SampleFormat
    space, layout = {
        DALIImageType.BGR: (spaces.SRGB, formats.I_BGR),
        DALIImageType.GRAY: (spaces.GRAY, formats.I_Y),
        DALIImageType.ANY_DATA: (spaces.UNCHANGED, formats.I_UNCHANGED),
    }.get(output_type, (spaces.SRGB, formats.I_RGB))
    return codec.DecodeParams(
        apply_exif_orientation=False, color_spec=space, sample_format=layout, allow_any_depth=True
    )


def _decode_error(encoded: np.ndarray, header: ImageHeader) -> ImageError:
    """Return the error for an image with a valid header and damaged data."""
    what = f"the {header.format.upper()} image of {header.height}x{header.width} pixels ({encoded.size} bytes)"
    if header.format == "jpeg" and simplejpeg() is not None:
        try:
            simplejpeg().decode_jpeg(encoded, "GRAY")
        except ValueError as error:
            return CorruptImageError(f"Failed to decode {what}: {error}")
    return CorruptImageError(f"Failed to decode {what}: its data are cut short, damaged or of an unsupported kind")


def _decode_with_pillow(
    encoded: np.ndarray, header: ImageHeader, output_type: DALIImageType, region: Region | None
) -> tuple[np.ndarray, float]:
    with reading_with_pillow(encoded.data) as image:
        pixels = np.asarray(_as_mode(image, output_type))
    if header.format == "tiff":
        pixels = header.orientation.stored(pixels)  # Pillow has rotated it
    if region is not None:
        pixels = pixels[region.overlap(pixels.shape)[0]]
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.dtype == np.int32:
        # Pillow's mode for 32 bits in TIFF, and for 16 bits in PNG and PNM.
        pixels = pixels.view(np.uint32) if header.format == "tiff" else pixels.astype(np.uint16)
    if pixels.shape[2] == 1 and output_type in _COLOURS:
        pixels = np.repeat(pixels, 3, axis=2)
    elif output_type == DALIImageType.BGR:
        pixels = pixels[..., ::-1]
    return pixels, 1.0 if pixels.dtype.kind == "f" else float(np.iinfo(pixels.dtype).max)


def _as_mode(image: Any, output_type: DALIImageType) -> object:
    """Convert a Pillow image to the mode of an output type; images with more than 8 bits keep their depth and a single
    channel.
    """
    if image.mode.startswith(("I", "F")):
        return image
    if output_type == DALIImageType.ANY_DATA:
        other = {"P": "RGB", "PA": "RGB", "YCbCr": "RGB", "1": "L"}.get(image.mode)
        return image if other is None else image.convert(other)
    mode = "L" if output_type == DALIImageType.GRAY else "RGB"
    # Pillow copies an image even if it has the mode already.
    return image if image.mode == mode else image.convert(mode)


# -- values --------------------------------------------------------------------------------------------------------


# The number of values that are converted at a time: intermediate results take up to 40 bytes per value.
_MAX_CONVERTED_VALUES = 1 << 18


def _write_upright(
    pixels: np.ndarray, maximum: float, to_ycbcr: bool, orientation: Orientation, output: np.ndarray
) -> None:
    """Convert stored pixels, whose full intensity is ``maximum``, turn them upright, and write them to ``output``."""
    if not to_ycbcr and _has_range(pixels, maximum, output.dtype):
        _copy_pixels(orientation.upright(pixels), output)
        return
    upright = orientation == UPRIGHT
    converted = output if upright else np.empty(pixels.shape, output.dtype)
    height, width, channels = pixels.shape
    columns = min(width, _MAX_CONVERTED_VALUES // channels)
    rows = max(_MAX_CONVERTED_VALUES // (columns * channels), 1)
    for top, left in itertools.product(range(0, height, rows), range(0, width, columns)):
        part = np.s_[top : top + rows, left : left + columns]
        values, intensity = pixels[part], maximum
        if to_ycbcr:
            values, intensity = _ycbcr(values, maximum, output.dtype)
        converted[part] = _converted(values, intensity, output.dtype)
    if not upright:
        _copy_pixels(orientation.upright(converted), output)


def _has_range(pixels: np.ndarray, maximum: float, dtype: np.dtype) -> bool:
    """Return whether pixels have the type ``dtype``, and its largest value is the full intensity."""
    return bool(pixels.dtype == dtype and maximum == (1.0 if dtype.kind == "f" else np.iinfo(dtype).max))


def _converted(pixels: np.ndarray, maximum: float, dtype: np.dtype) -> np.ndarray:
    """Scale ``pixels``, whose full intensity is ``maximum``, to the range of ``dtype``."""
    if _has_range(pixels, maximum, dtype):
        return pixels
    if pixels.dtype.kind == "f" or pixels.dtype.itemsize > _MAX_TABULATED:
        return _scaled(pixels, maximum, dtype)
    return np.take(_scaling_table(pixels.dtype, maximum, dtype), pixels)


# The largest size of a value, in bytes, that is converted by a table: a table for larger types would take gigabytes.
_MAX_TABULATED = 2


@functools.lru_cache(maxsize=32)
def _scaling_table(source: np.dtype, maximum: float, target: np.dtype) -> np.ndarray:
    """Return the scaled value of each possible value of ``source``, an unsigned type of 8 or 16 bits."""
    return _scaled(np.arange(np.iinfo(source).max + 1, dtype=np.float32), maximum, target)


def _scaled(values: np.ndarray, maximum: float, target: np.dtype) -> np.ndarray:
    normalized = values.astype(np.float32, copy=False) * np.float32(1 / maximum)
    if target.kind == "f":
        return normalized.astype(target, copy=False)
    limits = np.iinfo(target)
    # 2**31 - 1 cannot be represented in float32 and would be rounded up, so the result is clipped in float64.
    scaled = np.floor(normalized * np.float32(limits.max) + np.float32(0.5)).astype(np.float64)
    return np.clip(scaled, limits.min, limits.max).astype(target)


def _ycbcr(pixels: np.ndarray, maximum: float, dtype: np.dtype) -> tuple[np.ndarray, float]:
    """Convert RGB pixels to YCbCr; return them and their value of full intensity."""
    normalized = pixels.astype(np.float32) * np.float32(1 / maximum) @ TO_YCBCR.T.astype(np.float32)
    if dtype == np.uint8:
        return np.clip(np.floor(normalized * np.float32(255) + (YCBCR_OFFSET + 0.5)), 0, 255).astype(np.uint8), 255.0
    # DALI's offsets for all other types are 1/16 and 1/2 of the range.
    return normalized + (YCBCR_OFFSET / 256).astype(np.float32), 1.0


_BAND = 64


def _copy_pixels(source: np.ndarray, output: np.ndarray) -> None:
    """Copy an image whose rows and columns may be reversed or swapped.

    Whole pixels are copied, band by band, which is 2 to 3 times faster than numpy's copying of single values.
    """
    if source.strides == output.strides or source.strides[2] != source.itemsize or not output.flags.c_contiguous:
        np.copyto(output, source)
        return
    pixel = np.dtype((np.void, source.itemsize * source.shape[2]))
    target, view = output.view(pixel)[..., 0], source.view(pixel)[..., 0]
    for start in range(0, len(target), _BAND):
        target[start : start + _BAND] = view[start : start + _BAND]
