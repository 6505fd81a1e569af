"""The compiled core's functions that read headers of images and recordings, and its interface to nvImageCodec's decoders;
`backend/core/core.h` defines the structs.

Reading the headers of a batch takes some microseconds, and holds the GIL.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Sequence
from ctypes import c_char_p, c_double, c_int64, c_void_p
from enum import IntEnum

import numpy as np

from penstock.core.loading import brief_core, core


def _record(*names: str) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


JPEG_HEADER = _record("height", "width", "channels", "orientation", "needs_all_coefficients")
"""``PenstockJpegHeader``: what a JPEG's header declares; height and width are those of the stored image. ``orientation``: the EXIF
orientation; 0: there is none. ``needs_all_coefficients``: 1 if the file has several scans, so that all coefficients must be in memory
before pixels are computed."""
ENCODED_IMAGE = _record("data", "size", "output", "height", "width", "top", "left", "bottom", "right", "decoded_by")
"""``PenstockEncodedImage``: an image to decode, and the number of the decoder that decoded it."""

RECORDING = _record("data", "encoding", "frames", "channels", "rate")
"""``PenstockRecording``: the address of a recording's samples, their encoding, the number of frames and channels, and the sample rate."""


class Encoding(IntEnum):
    """``PenstockEncoding``: how the samples of a recording are stored, little-endian."""

    UNUSUAL = 0
    UINT8 = 1
    INT16 = 2
    INT24 = 3
    INT32 = 4
    FLOAT32 = 5
    FLOAT64 = 6
    A_LAW = 7
    MU_LAW = 8


class _Files(ctypes.Structure):
    """``PenstockEncodedFiles``."""

    _fields_ = [("count", c_int64), ("addresses", c_void_p), ("sizes", c_void_p)]


class ImageBatch(ctypes.Structure):
    """``PenstockImageBatch``: images to decode together."""

    _fields_ = [
        ("decoder", c_void_p),
        ("images", c_void_p),
        ("count", c_int64),
        ("color_spec", c_int64),
        ("sample_format", c_int64),
        ("channels", c_int64),
        ("stream", c_void_p),
        ("status", c_int64),
    ]


class _Backend(ctypes.Structure):
    """``PenstockCodecBackend``."""

    _fields_ = [("kind", c_int64), ("load", c_double), ("load_policy", c_int64)]


def _backends(backends: Sequence[Backend]) -> ctypes.Array[_Backend]:
    return (_Backend * len(backends))(*(_Backend(*backend) for backend in backends))


class _DecoderSettings(ctypes.Structure):
    """``PenstockDecoderSettings``."""

    _fields_ = [
        ("device", c_int64),
        ("threads", c_int64),
        ("first", ctypes.POINTER(_Backend)),
        ("first_count", c_int64),
        ("second", ctypes.POINTER(_Backend)),
        ("second_count", c_int64),
        ("options", c_char_p),
        ("spares_baseline", c_int64),
    ]


def _files(addresses: np.ndarray, sizes: np.ndarray) -> _Files:
    """Return a ``PenstockEncodedFiles`` of files in memory; ``addresses``, ``sizes``: int64, contiguous."""
    return _Files(len(addresses), addresses.ctypes.data, sizes.ctypes.data)


def read_jpeg_headers(addresses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the headers of ordinary JPEGs.

    Args:
        addresses, sizes: the files' addresses and sizes in bytes: int64, contiguous.

    Returns:
        A :data:`JPEG_HEADER` for each file: zeros unless the file is an ordinary JPEG.
    """
    headers = np.empty(len(addresses), JPEG_HEADER)
    brief_core().penstock_read_jpeg_headers(ctypes.byref(_files(addresses, sizes)), headers.ctypes.data)
    return headers


def read_png_sizes(addresses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the height and width of ordinary PNGs, int64 of shape (files, 2); zeros for files that another reader has to
    parse.

    Args:
        addresses, sizes: the files' addresses and sizes in bytes: int64, contiguous.
    """
    found = np.empty((len(addresses), 2), np.int64)
    brief_core().penstock_read_png_sizes(ctypes.byref(_files(addresses, sizes)), found.ctypes.data)
    return found


def read_png_headers(addresses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the height, width and number of channels of ordinary PNGs of 8 bits, int64 of shape (files, 3); zeros for other files.

    Args:
        addresses, sizes: the files' addresses and sizes in bytes: int64, contiguous.
    """
    found = np.empty((len(addresses), 3), np.int64)
    brief_core().penstock_read_png_headers(ctypes.byref(_files(addresses, sizes)), found.ctypes.data)
    return found


LIBDEFLATE_FUNCTIONS = "alloc_decompressor", "free_decompressor", "zlib_decompress_ex", "crc32"
"""The names of libdeflate's functions that the core calls, without the library's prefix."""


class Libdeflate(ctypes.Structure):
    """``PenstockLibdeflate``: addresses of libdeflate's functions of these names."""

    _fields_ = [(name, c_void_p) for name in LIBDEFLATE_FUNCTIONS]


class PixelSpace(IntEnum):
    """``PenstockPixelSpace``: the colour space of a decoded image's pixels."""

    AS_STORED = 0
    RGB = 1
    BGR = 2
    GREY = 3


PNG = _record("data", "size", "value_bytes", "top", "left", "height", "width", "space", "output", "output_pitch")
"""``PenstockPng``: a PNG to decode, or a region of one."""


def decode_png(
    library: Libdeflate, encoded: np.ndarray, anchor: Sequence[int], space: PixelSpace, output: np.ndarray
) -> bool:
    """Decode an ordinary PNG, or a region of one, without the GIL.

    Args:
        library: the library that inflates the file.
        encoded: the file's bytes, uint8 of shape (n,), contiguous.
        anchor: the row and column at which the region begins.
        space: the pixels' colour space.
        output: filled with the region's pixels; contiguous, of shape (H, W, C); uint16 for files of 16 bits, otherwise uint8.

    Returns:
        False, with the output undefined, if the file is damaged, interlaced or otherwise unusual, or if memory is lacking; else True.
    """
    png = np.array(
        (
            *(encoded.ctypes.data, encoded.size, output.itemsize),
            *(*anchor, *output.shape[:2]),
            *(space, output.ctypes.data, output.strides[0]),
        ),
        PNG,
    )
    return bool(core().penstock_decode_png(ctypes.byref(library), png.ctypes.data))


def decode_pngs(library: Libdeflate, pngs: np.ndarray, decoded: np.ndarray) -> None:
    """Decode several PNGs as :func:`decode_png` does.

    Args:
        library: the library that inflates the files.
        pngs: a :data:`PNG` for each file, contiguous.
        decoded: filled with whether each file was decoded: bool, contiguous.
    """
    core().penstock_decode_pngs(ctypes.byref(library), pngs.ctypes.data, len(pngs), decoded.ctypes.data)


def find_whole_jpegs(addresses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return whether each file ends with a JPEG's end marker, apart from trailing zeros: bool of shape (files,).

    Args:
        addresses, sizes: the files' addresses and sizes in bytes: int64, contiguous.
    """
    whole = np.empty(len(addresses), np.bool_)
    brief_core().penstock_find_whole_jpegs(ctypes.byref(_files(addresses, sizes)), whole.ctypes.data)
    return whole


def prepare_jpegs(
    addresses: np.ndarray, sizes: np.ndarray, channels: int, max_pixels: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """Describe files, all of which must be ordinary, complete, upright JPEGs.

    Args:
        addresses, sizes: the files' addresses and sizes in bytes: int64, contiguous.
        channels: the number of channels of the decoded images.
        max_pixels: the maximum number of pixels of an image; 0: any number.

    Returns:
        The number of bytes of all decoded images, or 0 if a file is not such a JPEG or has too many pixels; an :data:`ENCODED_IMAGE` for
        each file, whose ``output`` is an offset in these bytes; a :data:`JPEG_HEADER` for each file.
    """
    # Both results share one array, because getting the address of an array takes longer than reading a header.
    memory = np.empty(len(addresses) * (ENCODED_IMAGE.itemsize + JPEG_HEADER.itemsize), np.uint8)
    end, start = len(addresses) * ENCODED_IMAGE.itemsize, memory.ctypes.data
    files = ctypes.byref(_files(addresses, sizes))
    room: int = brief_core().penstock_prepare_jpegs(files, channels, max_pixels, start, start + end)
    return room, memory[:end].view(ENCODED_IMAGE), memory[end:].view(JPEG_HEADER)


def read_recordings(addresses: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, int]:
    """Find the samples of ordinary WAV files.

    Args:
        addresses, sizes: the files' addresses and sizes in bytes: int64, contiguous.

    Returns:
        A :data:`RECORDING` for each file, zeros unless it is an ordinary WAV file; and the number of files that are not.
    """
    recordings = np.empty(len(addresses), RECORDING)
    files = ctypes.byref(_files(addresses, sizes))
    unusual: int = brief_core().penstock_read_recordings(files, recordings.ctypes.data)
    return recordings, unusual


def load_codec(path: str) -> int | None:
    """Load nvImageCodec's library from a file; return its address, or None if the file is missing or of a version that the core does
    not support.
    """
    library: int | None = core().penstock_codec_load(path.encode())
    return library


def codec_version(library: int) -> int:
    """Return the version of nvImageCodec's library: 900 for 0.9.0."""
    version: int = core().penstock_codec_version(library)
    return version


def start_codec(library: int) -> int:
    """Create an instance of nvImageCodec, for all threads of this process; return its address.

    Raises:
        MemoryError: there is not enough memory for the instance.
        RuntimeError: the library fails.
    """
    codec = c_void_p()
    check_status(core().penstock_codec_start(library, ctypes.byref(codec)), "be loaded")
    return codec.value or 0


# nvImageCodec's statuses of a failed allocation, by the library itself or by a decoder.
_NO_MEMORY = 5, 15


def check_status(status: int, what: str) -> None:
    """Raise MemoryError or RuntimeError unless nvImageCodec's status is 0; ``what``: the operation that failed, for the message."""
    if status in _NO_MEMORY:
        raise MemoryError(f"nvImageCodec could not {what}: no memory was left for it (status {status})")
    if status:
        raise RuntimeError(f"nvImageCodec could not {what}: its C library answered with status {status}")


Backend = tuple[int, float, int]
"""One of nvImageCodec's decoders: its kind, the fraction of each batch that it gets, and the library's number of the policy by which
that fraction may change."""


class ImageDecoder:
    """nvImageCodec's decoders for batches of images: a first one, and a second one for images that the first rejects.

    Args:
        codec: the address of an instance of nvImageCodec.
        device: the number of the GPU; None: the CPU.
        threads: the number of CPU threads that the library may use.
        first, second: the backends of each decoder, in order of preference; ``second`` may be empty.
        options: the options for the backends, in the library's syntax.
        spares_baseline: whether to leave baseline JPEGs undecoded that the first decoder rejects.

    Attributes:
        address: the decoder's address.
        close: a function that destroys the decoder.

    Raises:
        MemoryError: there is not enough memory for the first decoder.
        RuntimeError: the backends are not available.
    """

    def __init__(
        self,
        codec: int,
        device: int | None,
        threads: int,
        first: Sequence[Backend],
        second: Sequence[Backend],
        options: str,
        spares_baseline: bool,
    ) -> None:
        settings = _DecoderSettings(
            device=-1 if device is None else device,
            threads=threads,
            first=_backends(first),
            first_count=len(first),
            second=_backends(second),
            second_count=len(second),
            options=options.encode(),
            spares_baseline=spares_baseline,
        )
        decoder = c_void_p()
        status = core().penstock_image_decoder_create(codec, ctypes.byref(settings), ctypes.byref(decoder))
        check_status(status, "make a decoder")
        self.address = decoder.value or 0
        self.close = weakref.finalize(self, core().penstock_image_decoder_destroy, self.address)


@functools.cache
def decode_function() -> int:
    """Return the address of the function that decodes an :class:`ImageBatch`, for a :class:`~penstock.core.threads.Job`."""
    return ctypes.cast(core().penstock_decode_images, c_void_p).value or 0
