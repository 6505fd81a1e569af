"""Headers of encoded data: valid ones pass, impossible ones are rejected before a library sees them."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from penstock.kernels.codecs.headers import avif, jpeg2000, png
from penstock.kernels.codecs.headers.audio import CorruptRecordingError, check_recording
from penstock.kernels.codecs.headers.images import image_format
from penstock.kernels.codecs.headers.video import check_video
from penstock.kernels.codecs.image_errors import CorruptImageError, ImageError, NotAnImageError
from penstock.kernels.codecs.image_header import read_header

HEIGHT, WIDTH = 40, 56
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "jpeg": ("JPEG", {}),
    "png": ("PNG", {}),
    "bmp": ("BMP", {}),
    "ppm": ("PPM", {}),
    "webp": ("WEBP", {}),
    "lossless webp": ("WEBP", {"lossless": True}),
    "gif": ("GIF", {}),
    "tiff": ("TIFF", {}),
    "lzw tiff": ("TIFF", {"compression": "tiff_lzw"}),
    "bigtiff": ("TIFF", {"big_tiff": True}),
    "jp2": ("JPEG2000", {}),
    "j2k": ("JPEG2000", {"no_jp2": True, "tile_size": (16, 16)}),
    "avif": ("AVIF", {}),
    "ico": ("ICO", {"sizes": [(WIDTH, HEIGHT)]}),
    "ico of bitmaps": ("ICO", {"sizes": [(WIDTH, HEIGHT)], "bitmap_format": "bmp"}),
}


def saved(kind: str) -> bytes:
    name, options = KINDS[kind]
    pixels = np.add.outer(np.arange(HEIGHT) * 5, np.arange(WIDTH) * 2)[..., np.newaxis] + np.array([0, 40, 90])
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, name, **options)
    return buffer.getvalue()


def check(data: bytes) -> Any:
    known = image_format(memoryview(data))
    assert known is not None
    return known.check(memoryview(data))


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "jpeg"])
def test_valid_headers_tell_the_size(kind: str) -> None:
    declared = check(saved(kind))
    assert (declared.height, declared.width) == (HEIGHT, WIDTH)
    assert not declared.crash_prone


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_short_or_changed_raises_nothing_but_image_errors(kind: str) -> None:
    # Libraries do not run here: tests/fuzz passes them the files that the check accepts.
    data, generator = saved(kind), np.random.default_rng(3)
    for _ in range(400):
        changed = bytearray(data[: generator.integers(1, len(data)) if generator.random() < 0.3 else len(data)])
        for _ in range(generator.integers(1, 5)):
            place = generator.integers(0, min(len(changed), 250))
            changed[place] = generator.choice([0, 1, 127, 128, 255])
        try:
            if kind == "jpeg":
                read_header(as_array(bytes(changed)))
            elif (known := image_format(memoryview(bytes(changed)))) is not None:
                known.check(memoryview(bytes(changed)))
        except ImageError:
            continue


# -- hostile headers, format by format -----------------------------------------------------------------------------------


def chunk(name: bytes, contents: bytes) -> bytes:
    return struct.pack(">I", len(contents)) + name + contents + struct.pack(">I", zlib.crc32(name + contents))


def png_of(width: int = 8, height: int = 8, bits: int = 8, colour: int = 2, *more: bytes, interlace: int = 0) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace))
    return png.SIGNATURE + header + b"".join(more)


def bmp_of(width: int, height: int, bits: int = 24, compression: int = 0) -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


def tiff_of(**tags: int) -> bytes:
    numbers = {
        "width": 256,
        "height": 257,
        "bits": 258,
        "samples": 277,
        "rows": 278,
        "tile_width": 322,
        "tile_height": 323,
    }
    entries = {"width": 8, "height": 8, "bits": 8, "samples": 1} | tags
    packed = [struct.pack("<HHII", numbers[name], 4, 1, value) for name, value in entries.items()]
    return b"II*\0" + struct.pack("<IH", 8, len(packed)) + b"".join(packed) + bytes(4)


def siz(
    size: tuple[int, int] = (64, 48),
    start: tuple[int, int] = (0, 0),
    tile: tuple[int, int] = (64, 48),
    tile_start: tuple[int, int] = (0, 0),
    components: list[tuple[int, int, int]] | None = None,
    count: int | None = None,
    coding: bytes = b"\0\0\0\1\0\5\4\4\0\1",
) -> bytes:
    parts = [(7, 1, 1)] * 3 if components is None else components
    number = len(parts) if count is None else count
    numbers = struct.pack(">HIIIIIIIIH", 0, *size, *start, *tile, *tile_start, number)
    body = numbers + b"".join(map(bytes, parts))
    cod = struct.pack(">HH", 0xFF52, 2 + len(coding)) + coding
    return b"\xff\x4f\xff\x51" + struct.pack(">H", len(body) + 2) + body + cod + b"\xff\x90\0\x0a" + bytes(8)


def box(name: bytes, contents: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(contents), name) + contents


def jp2_of(codestream: bytes, *more: bytes, size: tuple[int, int, int] = (48, 64, 3)) -> bytes:
    header = box(b"ihdr", struct.pack(">IIHBBBB", *size, 7, 7, 0, 0)) + b"".join(more)
    return jpeg2000.BOX_SIGNATURE + box(b"ftyp", b"jp2 \0\0\0\0jp2 ") + box(b"jp2h", header) + box(b"jp2c", codestream)


def avif_of(width: int, height: int) -> bytes:
    sizes = box(b"iprp", box(b"ipco", box(b"ispe", bytes(4) + struct.pack(">II", width, height))))
    return box(b"ftyp", b"avif\0\0\0\0") + box(b"meta", bytes(4) + sizes)


def ico_of(image: bytes, offset: int = 22) -> bytes:
    return b"\0\0\1\0\1\0" + struct.pack("<BBBBHHII", 8, 8, 0, 0, 1, 32, len(image), offset) + image


def gif_of(width: int, height: int, *blocks: bytes) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b"".join(blocks)


def webp_of(name: bytes, contents: bytes) -> bytes:
    return (
        b"RIFF" + struct.pack("<I", 12 + len(contents)) + b"WEBP" + name + struct.pack("<I", len(contents)) + contents
    )


HOSTILE = {
    "png: no width": (png_of(width=0), "size is 8x0"),
    "png: a negative height": (png_of(height=1 << 31), "size is"),
    "png: bits": (png_of(bits=3), "3 bits"),
    "png: colour type": (png_of(colour=5), "colour type 5"),
    "png: interlace": (png_of(interlace=2), "interlacing"),
    "png: gigabytes in bytes": (png_of(16384, 16384), "cannot hold"),
    # For this chunk of 3 bytes, Pillow reserved the 4 GiB that it declares.
    "png: a chunk beyond the end, without room for a checksum": (
        png_of(8, 8, 8, 2, struct.pack(">I4s", 0xFFFFFFFF, b"eXIf"), b"xxx"),
        "beyond",
    ),
    "png: a chunk beyond the end": (png_of(8, 8, 8, 2, struct.pack(">I4s", 1 << 30, b"IDAT"), bytes(8)), "beyond"),
    "bmp: no size": (bmp_of(0, 8), "size is 8x0"),
    "bmp: bits": (bmp_of(8, 8, 7), "7 bits"),
    "bmp: a compression": (bmp_of(8, 8, 24, 9), "unknown kind 9"),
    "bmp: gigabytes in bytes": (bmp_of(30000, -30000), "cannot hold"),
    "pnm: no number": (b"P6\nx 3\n255\n", "numbers"),
    "pnm: no height": (b"P5 3 0 255 ", "size is 0x3"),
    "pnm: maximum": (b"P5 3 3 65536 ", "65536"),
    "pnm: gigabytes in bytes": (b"P6 30000 30000 255 ", "cannot hold"),
    "tiff: no size": (tiff_of(width=0), "size is 8x0"),
    "tiff: no bits": (tiff_of(bits=0), "0 bits"),
    "tiff: samples": (tiff_of(samples=65535), "65535 samples"),
    "tiff: strips without rows": (tiff_of(rows=0), "no rows"),
    "tiff: tiles without a width": (tiff_of(tile_width=0, tile_height=16), "16x0"),
    "tiff: tiles of gigabytes": (tiff_of(tile_width=1 << 20, tile_height=1 << 20), "cannot hold"),
    "tiff: a directory beyond the end": (b"II*\0\xff\xff\xff\x7f", "cut short"),
    "j2k: no tile width": (siz(tile=(0, 48)), "48x0"),
    "j2k: no tile height": (siz(tile=(64, 0)), "0x64"),
    "j2k: subsampled by 0": (siz(components=[(7, 1, 1), (7, 0, 1)]), "subsampled by 0"),
    "j2k: no components": (siz(components=[]), "0 components"),
    "j2k: more components than told": (siz(count=2), "for 2 components"),
    "j2k: bits": (siz(components=[(60, 1, 1)]), "61 bits"),
    "j2k: nothing of the image": (siz(start=(64, 0)), "reaches from"),
    "j2k: a first tile beside the image": (siz(tile_start=(65, 0), size=(70, 48), start=(1, 0)), "first tile"),
    "j2k: more tiles than bytes": (siz(tile=(1, 1)), "3072 tiles"),
    "j2k: more tiles than there may be": (siz(size=(1 << 20, 1 << 20), tile=(1, 1)), "tiles"),
    "j2k: levels": (siz(coding=b"\0\0\0\1\0\x21\4\4\0\1"), "33 levels"),
    "j2k: code-blocks": (siz(coding=b"\0\0\0\1\0\5\x09\4\0\1"), "code-blocks"),
    "j2k: wavelets": (siz(coding=b"\0\0\0\1\0\5\4\4\0\7"), "wavelets"),
    "j2k: no layers": (siz(coding=b"\0\0\0\0\0\5\4\4\0\1"), "no layers"),
    "j2k: precincts of too few levels": (siz(coding=b"\1\0\0\1\0\5\4\4\0\1\xff"), "too few levels"),
    "jp2: another size": (jp2_of(siz(), size=(48, 65, 3)), "48x65"),
    "jp2: no codestream": (jp2_of(siz()).replace(b"jp2c", b"free"), "no codestream"),
    "jp2: a palette that is not applied": (jp2_of(siz(), box(b"pclr", b"\0\1\1\7\0")), "no mapping for it"),
    "jp2: a palette's missing column": (
        jp2_of(siz(), box(b"pclr", b"\0\1\1\7\0"), box(b"cmap", b"\0\0\1\5")),
        "column",
    ),
    "jp2: a channel that is not there": (jp2_of(siz(), box(b"cdef", b"\0\1\0\x09\0\0\0\1")), "channel 9"),
    "avif: no size": (avif_of(0, 8), "8x0"),
    "avif: too large": (avif_of(1 << 20, 8), "8x1048576"),
    "avif: nothing": (box(b"ftyp", b"avif\0\0\0\0"), "no box meta"),
    "ico: none": (b"\0\0\1\0\0\0", "0 images"),
    "ico: beyond the end": (ico_of(png_of(), 1 << 20), "beyond its end"),
    "ico: a png of gigabytes": (ico_of(png_of(16384, 16384)), "cannot hold"),
    "gif: no image": (gif_of(8, 8), "before its first image"),
    "gif: an empty image": (gif_of(8, 8, b"\x2c" + bytes(9)), "0x0"),
    "gif: gigabytes in bytes": (gif_of(8, 8, b"\x2c" + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0)), "cannot hold"),
    "webp: another first chunk": (webp_of(b"ICCP", bytes(16)), "ICCP"),
    "webp: no key frame": (webp_of(b"VP8 ", bytes(16)), "key frame"),
    "webp: no signature": (webp_of(b"VP8L", bytes(16)), "signature"),
    "webp: a chunk beyond the end": (webp_of(b"VP8X", bytes(10)) + b"EXIF\xff\xff\xff\xffII*\0", "beyond"),
    "webp: an unknown chunk beyond the end": (webp_of(b"VP8X", bytes(10)) + b"iiii" * 3, "beyond"),
    "webp: more pixels than there may be": (webp_of(b"VP8X", bytes(4) + b"\xff" * 6 + bytes(6)), "size is"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused(name: str) -> None:
    data, message = HOSTILE[name]
    with pytest.raises(CorruptImageError, match=message):
        read_header(as_array(data))


def test_the_crafted_headers_are_good_but_for_what_is_wrong_with_them() -> None:
    good = [
        png_of(),
        bmp_of(8, -8) + bytes(8 * 8 * 3),
        b"P5 3 3 255 ",
        tiff_of(),
        siz(),
        jp2_of(siz()),
        avif_of(8, 8),
        ico_of(png_of()),
    ]
    good += [gif_of(8, 8, b"\x2c" + struct.pack("<HHHHB", 0, 0, 8, 8, 0)), webp_of(b"VP8X", bytes(16))]
    for data in good:
        check(data)


def frame(**changes: Any) -> bytes:
    values = {"bits": 8, "height": 8, "width": 8, "components": 3, "factors": b"\x22\x11\x11"} | changes
    parts = b"".join(bytes((i, factor, 0)) for i, factor in enumerate(values["factors"]))
    body = struct.pack(">BHHB", values["bits"], values["height"], values["width"], values["components"]) + parts
    return b"\xff\xc0" + struct.pack(">H", len(body) + 2) + body


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (frame(factors=b"\x22\x01\x11"), "sampling factor"),
        (frame(factors=b"\x52\x11\x11"), "sampling factor"),
        (frame(bits=0), "0 bits"),
        (frame(components=2), "for 2 components"),
        (frame(components=5, factors=b"\x11" * 5), "for 5 components"),
        (frame(height=65500, width=65500), "cannot hold"),
        (frame() + frame(), "more than one frame header"),
    ],
)
def test_hostile_jpegs_are_refused(frames: bytes, message: str) -> None:
    assert read_header(as_array(b"\xff\xd8" + frame() + b"\xff\xda\0\0")).height == 8
    with pytest.raises(CorruptImageError, match=message):
        read_header(as_array(b"\xff\xd8" + frames + b"\xff\xda\0\0"))


@pytest.mark.parametrize(
    "data", [b"%!PS-Adobe-3.0 EPSF-3.0\n", b"8BPS\0\1", b"\x0a\5\1\x08", b"/* XPM */", b"SIMPLE  =", b"DDS |"]
)
def test_formats_that_nobody_vetted_reach_no_library(data: bytes) -> None:
    # Pillow would read all of these, and run Ghostscript for the first.
    with pytest.raises(NotAnImageError, match="known format"):
        read_header(as_array(data + bytes(200)))


# -- animated PNG ----------------------------------------------------------------------------------------------------------


def animated(image_is_first_frame: bool) -> bytes:
    description = chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 8, 8, 0, 0, 1, 10, 0, 0))
    image = chunk(b"IDAT", zlib.compress(bytes(8 * 25)))
    parts = [description, image] if image_is_first_frame else [image, description]
    last = chunk(b"fdAT", bytes(4) + zlib.compress(bytes(8 * 25)))
    return png_of(8, 8, 8, 2, chunk(b"acTL", bytes(8)), *parts, last, chunk(b"IEND", b""))


def test_an_animation_is_decoded_as_its_first_frame() -> None:
    data = animated(image_is_first_frame=True)
    still = png.without_animation(as_array(data)).tobytes()
    assert not check(data).crash_prone
    assert [name for name in (b"acTL", b"fcTL", b"fdAT") if name in still] == []
    assert Image.open(io.BytesIO(still)).size == (8, 8)


def test_an_animation_whose_first_frame_is_apart_is_doubtful() -> None:
    data = animated(image_is_first_frame=False)
    assert check(data).crash_prone
    assert png.without_animation(as_array(data)).tobytes() == data


# -- recordings and videos ----------------------------------------------------------------------------------------------------


def recording(kind: str, subtype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros((400, 2), np.float32), 16000, format=kind, subtype=subtype)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("kind", "subtype", "trusted"),
    [
        *(("WAV", "PCM_16", True), ("WAV", "PCM_24", True), ("WAV", "FLOAT", True), ("WAV", "ULAW", True)),
        *(("WAVEX", "PCM_16", True), ("WAV", "IMA_ADPCM", False), ("WAV", "GSM610", False), ("FLAC", None, True)),
        *(("OGG", "VORBIS", False), ("OGG", "OPUS", False), ("MP3", None, False), ("AIFF", None, False)),
    ],
)
def test_plain_recordings_are_trusted(kind: str, subtype: str | None, trusted: bool) -> None:
    data = recording(kind, subtype) if subtype != "GSM610" else _mono_gsm()
    assert check_recording(memoryview(data)).trusted is trusted


def _mono_gsm() -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(400, np.float32), 16000, format="WAV", subtype="GSM610")
    return buffer.getvalue()


def put(data: bytes, place: int, contents: bytes) -> bytes:
    return data[:place] + contents + data[place + len(contents) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (put(recording("WAV"), 22, b"\0\0"), "0 channels"),
        (put(recording("WAV"), 22, b"\xff\xff"), "65535 channels"),
        (put(recording("WAV"), 24, bytes(4)), "0 Hz"),
        (recording("WAV")[:24], "cut short"),
        (put(recording("FLAC"), 8, bytes(2)), "blocks"),
        (put(recording("FLAC"), 18, bytes(3)), "0 Hz|bits"),
        (put(recording("FLAC"), 21, b"\xff" * 5), "cannot hold"),
        (recording("FLAC")[:30], "cut short"),
        (put(recording("OGG"), 28 + 11, b"\0"), "0 channels"),
        (recording("OGG")[:20], "cut short"),
    ],
    ids=lambda value: value if isinstance(value, str) else "recording",
)
def test_hostile_recordings_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(CorruptRecordingError, match=message):
        check_recording(memoryview(data))


def _ebml(identifier: bytes, contents: bytes) -> bytes:
    return identifier + bytes((0x80 | len(contents),)) + contents


def _matroska() -> bytes:
    sizes = _ebml(b"\xb0", b"\x75\x30") + _ebml(b"\xba", b"\x4e\x20")
    tracks = _ebml(b"\x16\x54\xae\x6b", _ebml(b"\xae", _ebml(b"\xe0", sizes)))
    return _ebml(b"\x1a\x45\xdf\xa3", b"") + b"\x18\x53\x80\x67\xff" + tracks


def _mp4() -> bytes:
    entry = box(b"avc1", bytes(24) + struct.pack(">HH", 30000, 20000) + bytes(50))
    inner = box(b"stsd", bytes(8) + entry)
    for name in (b"stbl", b"minf", b"mdia", b"trak", b"moov"):
        inner = box(name, inner)
    return box(b"ftyp", b"isom\0\0\0\0") + inner


_avi = b"RIFF\0\0\0\0AVI LIST\0\0\0\0hdrlavih" + bytes(36) + struct.pack("<II", 30000, 20000)
_ivf = b"DKIF\0\0\x20\0VP80" + struct.pack("<HH", 30000, 20000)


@pytest.mark.parametrize("make", [_matroska, _mp4, lambda: _avi, lambda: _ivf], ids=["mkv", "mp4", "avi", "ivf"])
def test_a_videos_header_tells_its_size(make: Callable[[], bytes]) -> None:
    data = make()
    assert check_video(memoryview(data)) == (20000, 30000)
    for size in range(len(data)):
        check_video(memoryview(data[:size]))  # must not raise: FFmpeg reports files that are cut short


@pytest.mark.parametrize("channels", [0, 1])
def test_opus_without_channels_is_refused(channels: int) -> None:
    page = b"OggS" + bytes(22) + b"\x01\x13"
    head = struct.pack("<8sBBHIhB", b"OpusHead", 1, channels, 0, 48_000, 0, 0)
    file = np.frombuffer(page + head, np.uint8)
    if channels:
        check_recording(file)
    else:
        with pytest.raises(CorruptRecordingError, match="no channels"):
            check_recording(file)


@pytest.mark.parametrize(("brand", "kind"), [(b"avif", "avif"), (b"heic", "heic"), (b"heis", "heic"), (b"mp42", "")])
def test_brands_tell_photographs_from_other_files_of_boxes(brand: bytes, kind: str) -> None:
    start = memoryview(b"\0\0\0\x18ftyp" + brand + bytes(8))
    assert (avif.is_avif(start), avif.is_heic(start)) == (kind == "avif", kind == "heic")
    assert not avif.is_heic(start[:11])
    assert not avif.is_heic(memoryview(b"\0\0\0\x18meta" + brand))
