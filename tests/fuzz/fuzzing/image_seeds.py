"""Small images in every format that can be written here, as bytes."""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

Seed = tuple[str, bytes]
"""The name of a format, and the bytes of a file in that format."""

HEIGHT, WIDTH = 48, 56


def picture(channels: int = 3, height: int = HEIGHT, width: int = WIDTH, dtype: Any = np.uint8) -> np.ndarray:
    """Return an image (H, W, C) or (H, W) of slopes and an edge, so that every kind of predictor has an effect."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [(x * 4 + y * (2 + c) + 90 * (x > width // 2)) % 251 for c in range(max(channels, 1))]
    pixels = np.stack(planes, axis=-1)
    if np.dtype(dtype) == np.uint16:
        pixels = pixels * 257
    elif np.dtype(dtype).kind == "f":
        pixels = pixels / 255
    pixels = pixels.astype(dtype)
    return pixels if channels else pixels[..., 0]


def image_seeds() -> Iterator[Seed]:
    """Yield all seeds of images that the installed libraries can write."""
    for family in (_jpegs, _pngs, _webps, _bitmaps, _netpbms, _tiffs, _jpeg2000s, _gifs, _others):
        yield from family()


def _saved(format: str, pixels: np.ndarray | Any, mode: str | None = None, **options: Any) -> bytes | None:
    """Return the file that Pillow writes; None if this build of Pillow cannot write it."""
    from PIL import Image

    image = Image.fromarray(pixels) if isinstance(pixels, np.ndarray) else pixels
    if mode is not None and image.mode != mode:
        image = image.convert(mode)
    file = io.BytesIO()
    try:
        image.save(file, format, **options)
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        return None
    return file.getvalue()


def _written(extension: str, pixels: np.ndarray, *flags: int) -> bytes | None:
    """Return the file that OpenCV writes; None if this build of OpenCV cannot write it."""
    try:
        import cv2

        good, data = cv2.imencode(extension, pixels, list(flags))
    except (ImportError, cv2.error):
        return None
    return data.tobytes() if good else None


def _known(format: str, *files: bytes | None) -> Iterator[Seed]:
    return ((format, file) for file in files if file)


def _exif(orientation: int) -> Any:
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def _jpegs() -> Iterator[Seed]:
    colour, grey = picture(), picture(0)
    for sampling, progressive in itertools.product(("4:4:4", "4:2:2", "4:2:0"), (False, True)):
        yield from _known("jpeg", _saved("JPEG", colour, subsampling=sampling, progressive=progressive, quality=85))
    for options in ({}, {"progressive": True}, {"restart_marker_blocks": 2}, {"optimize": True}):
        yield from _known("jpeg", _saved("JPEG", grey, **options))
    for blocks in (1, 3):
        yield from _known("jpeg", _saved("JPEG", colour, subsampling="4:2:0", restart_marker_blocks=blocks))
    for orientation in (3, 5, 6, 8):
        yield from _known("jpeg", _saved("JPEG", colour, exif=_exif(orientation)))
    yield from _known("jpeg", *(_saved("JPEG", colour, "CMYK", progressive=p) for p in (False, True)))
    yield from _known("jpeg", _saved("JPEG", colour, keep_rgb=True), _saved("JPEG", colour, icc_profile=b"i" * 300))
    yield from _known("jpeg", _saved("JPEG", picture(3, 40, 250), quality=95, subsampling="4:2:0"))
    # These images are wide enough to be decoded by kernels at smaller scales, too.
    for sampling, progressive in (("4:4:4", False), ("4:2:2", False), ("4:2:0", True)):
        yield from _known("jpeg", _saved("JPEG", picture(3, 40, 250), subsampling=sampling, progressive=progressive))
    # The values with which OpenCV writes the subsamplings 4:1:1 and 4:4:0.
    for sampling in (0x411111, 0x121111):
        yield from _known("jpeg", _written(".jpg", colour, 7, sampling))


def _pngs() -> Iterator[Seed]:
    colour = picture()
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        pixels = picture(0, dtype=np.uint16) if mode == "I;16" else colour
        yield from _known("png", _saved("PNG", pixels, None if mode == "I;16" else mode))
    yield from _known("png", _saved("PNG", colour, "P", bits=2, transparency=1), _saved("PNG", colour, exif=_exif(6)))
    yield from _known("png", _saved("PNG", colour, transparency=(1, 2, 3)), _saved("PNG", colour, dpi=(72, 72)))
    frames = [_pillow(colour), _pillow(colour[::-1])]
    yield from _known("png", _saved("PNG", frames[0], save_all=True, append_images=frames[1:]))
    yield from _known("png", *(_written(".png", picture(c, dtype=np.uint16)) for c in (3, 4)))
    for colour_type, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
        for depth in (8, 16):
            yield "png", interlaced_png(picture(channels, dtype=np.uint8 if depth == 8 else np.uint16), colour_type)


def _pillow(pixels: np.ndarray) -> Any:
    from PIL import Image

    return Image.fromarray(pixels)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG file, with its checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced_png(pixels: np.ndarray, colour_type: int) -> bytes:
    """Return an interlaced PNG, which has seven passes; no library that is used here can write one."""
    height, width = pixels.shape[:2]
    lines = bytearray()
    for top, left, down, across in (
        *((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4)),
        *((2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)),
    ):
        for line in pixels[top::down, left::across]:
            lines += b"\0" + line.astype(pixels.dtype.newbyteorder(">")).tobytes() if line.size else b""
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, colour_type, 0, 0, 1)
    data = png_chunk(b"IDAT", zlib.compress(bytes(lines)))
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + data + png_chunk(b"IEND", b"")


def _webps() -> Iterator[Seed]:
    colour, alpha = picture(), picture(4)
    for pixels in (colour, alpha):
        yield from _known("webp", *(_saved("WEBP", pixels, lossless=lossless) for lossless in (False, True)))
    frames = [_pillow(colour), _pillow(colour[::-1])]
    yield from _known("webp", _saved("WEBP", frames[0], save_all=True, append_images=frames[1:]))
    yield from _known("webp", _saved("WEBP", colour, exif=_exif(6).tobytes(), icc_profile=b"i" * 200))


def _bitmaps() -> Iterator[Seed]:
    yield from _known("bmp", *(_saved("BMP", picture(), mode) for mode in ("1", "L", "P", "RGB", "RGBA")))
    yield from _known("bmp", *(_written(".bmp", picture(channels)) for channels in (0, 3, 4)))
    yield "bmp", _run_length_bitmap()


def _run_length_bitmap() -> bytes:
    palette = bytes(range(256)) * 4
    rows = b"".join(bytes([20, 7 + row, 0, 4, 1, 2, 3, 4, 0, 0]) for row in range(24)) + b"\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, 24, 24, 1, 8, 1, len(rows), 0, 0, 256, 0)
    start = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + palette + rows


def _netpbms() -> Iterator[Seed]:
    yield from _known("pnm", *(_saved("PPM", picture(), mode) for mode in ("1", "L", "RGB")))
    yield from _known("pnm", _saved("PPM", picture(0, dtype=np.uint16)), _written(".pfm", picture(dtype=np.float32)))
    yield from _known("pnm", *(_written(".pam", picture(channels)) for channels in (0, 3)))
    yield from _known("pnm", _written(".ppm", picture(dtype=np.uint16)))
    grey = picture(0, 20, 36)
    for kind, samples, depth in (("P1", grey % 2, ""), ("P2", grey, " 255"), ("P3", picture(3, 20, 36), " 255")):
        body = "\n".join(" ".join(map(str, row.reshape(-1))) for row in samples)
        yield "pnm", f"{kind}\n# by hand\n36 20{depth}\n{body}\n".encode()


def _tiffs() -> Iterator[Seed]:
    colour = picture()
    for compression in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "zstd", "lzma", "webp"):
        yield from _known("tiff", _saved("TIFF", colour, compression=compression))
    for compression in ("group3", "group4", "tiff_ccitt"):
        yield from _known("tiff", _saved("TIFF", colour, "1", compression=compression))
    for mode in ("1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "LAB", "I", "F"):
        yield from _known("tiff", _saved("TIFF", colour, mode), _saved("TIFF", colour, mode, compression="tiff_lzw"))
    for dtype in (np.uint16, np.float32):
        yield from _known("tiff", _saved("TIFF", picture(0, dtype=dtype)))
        yield from _known("tiff", *(_written(".tiff", picture(channels, dtype=dtype)) for channels in (3, 4)))
    yield from _known("tiff", _saved("TIFF", colour, big_tiff=True), _saved("TIFF", colour, tiffinfo={0x0112: 6}))
    frames = [_pillow(colour), _pillow(colour[::-1])]
    yield from _known("tiff", _saved("TIFF", frames[0], save_all=True, append_images=frames[1:]))
    for order, planar, tiled in itertools.product("<>", (False, True), (False, True)):
        yield "tiff", hand_made_tiff(picture(3), order, planar, tiled)


def hand_made_tiff(pixels: np.ndarray, order: str, planar: bool, tiled: bool) -> bytes:
    """Return an uncompressed TIFF in a layout that Pillow does not write: of either byte order, planar or not, tiled or not."""
    height, width, channels = pixels.shape
    side = 16
    planes = [pixels[..., c : c + 1] for c in range(channels)] if planar else [pixels]
    if tiled:
        parts = [
            np.pad(tile, ((0, side - tile.shape[0]), (0, side - tile.shape[1]), (0, 0))).tobytes()
            for plane in planes
            for y in range(0, height, side)
            for x in range(0, width, side)
            for tile in [plane[y : y + side, x : x + side]]
        ]
    else:
        parts = [plane[y : y + 20].tobytes() for plane in planes for y in range(0, height, 20)]
    data = b"".join(parts)
    places = [8 + sum(map(len, parts[:i])) for i in range(len(parts))]
    layout = {322: [side], 323: [side], 324: places, 325: [len(p) for p in parts]}
    strips = {273: places, 278: [20], 279: [len(p) for p in parts]}
    tags = {
        256: [width],
        257: [height],
        258: [8] * channels,
        259: [1],
        262: [2],
        277: [channels],
        284: [2 if planar else 1],
        **(layout if tiled else strips),
    }
    directory = 8 + len(data)
    behind = directory + 2 + 12 * len(tags) + 4
    entries, values = b"", b""
    for tag, numbers in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(numbers)}I", *numbers)
        place = packed if len(numbers) == 1 else struct.pack(order + "I", behind + len(values))
        values += packed if len(numbers) > 1 else b""
        entries += struct.pack(order + "HHI", tag, 4, len(numbers)) + place
    start = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, directory)
    return start + data + struct.pack(order + "H", len(tags)) + entries + bytes(4) + values


def _jpeg2000s() -> Iterator[Seed]:
    for mode, options in itertools.product(
        ("L", "LA", "RGB", "RGBA"),
        ({}, {"no_jp2": True}, {"tile_size": (32, 32)}, {"irreversible": True, "quality_layers": [20, 5]}),
    ):
        yield from _known("jpeg2k", _saved("JPEG2000", picture(), mode, **options))
    yield from _known("jpeg2k", _saved("JPEG2000", picture(0, dtype=np.uint16)))
    for order in ("LRCP", "RLCP", "RPCL", "PCRL", "CPRL"):
        yield from _known(
            "jpeg2k", _saved("JPEG2000", picture(), progression=order, precinct_size=(32, 32), codeblock_size=(16, 16))
        )


def _gifs() -> Iterator[Seed]:
    colour = picture()
    frames = [_pillow(colour), _pillow(colour[::-1])]
    yield from _known("gif", _saved("GIF", colour), _saved("GIF", picture(0), interlace=0))
    yield from _known("gif", _saved("GIF", colour, "P", transparency=3, interlace=1))
    yield from _known("gif", _saved("GIF", frames[0], save_all=True, append_images=frames[1:], disposal=2))


def _others() -> Iterator[Seed]:
    yield from _known("avif", _saved("AVIF", picture()), _saved("AVIF", picture(4), quality=30))
    yield from _known(
        "ico", _saved("ICO", picture(4)), _saved("ICO", picture(4), sizes=[(16, 16)], bitmap_format="bmp")
    )
    # These formats are not supported: their files must be refused, or decoded without harm.
    for name in ("TGA", "PCX", "DDS", "SGI", "MSP", "XBM", "IM", "SPIDER", "QOI", "EPS", "PDF", "BLP"):
        yield from _known("foreign", _saved(name, picture(3, 24, 32), "1" if name in ("MSP", "XBM") else None))
    yield from _known("foreign", *(_written(name, picture(3, 24, 32)) for name in (".hdr", ".exr", ".sr", ".jxl")))
