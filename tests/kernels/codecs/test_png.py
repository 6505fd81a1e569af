"""PNGs decoded by the core have the pixels and errors of the decoders that it replaces."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from png_files import KINDS, PngKind, file_of, filtered, png, png_chunks

from penstock.core import codecs
from penstock.data_types import DALIImageType
from penstock.errors import PenstockError
from penstock.kernels.codecs import image_codec, image_header, libraries
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.windows import Region

TYPES = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY, DALIImageType.YCbCr, DALIImageType.ANY_DATA)
GAMMA, TEXT = (b"gAMA", struct.pack(">I", 45455)), (b"tEXt", b"Title\0a")
TRANSPARENT = {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: b"\x80\x40"}
Outcome = np.ndarray | tuple[type, str]


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test for anything that the core does not decode."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("The core left the file to another decoder")

    monkeypatch.setattr(image_codec, "_decode_stored", refuse)


def outcome(
    file: bytes, output_type: DALIImageType = DALIImageType.RGB, dtype: object = np.uint8, region: Region | None = None
) -> Outcome:
    """Return the pixels of a file, or its error."""
    encoded = np.frombuffer(file, np.uint8)
    try:
        header = read_header(encoded)
        shape = header.shape(output_type)
        output = np.zeros(shape if region is None else (*region.extents, shape[2]), dtype)
        decode(encoded, header, output, output_type, region=region)
    except PenstockError as error:
        return type(error), str(error)
    return output


def former(file: bytes, *arguments: object) -> Outcome:
    """Return the outcome without the core's decoder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_codec, "libdeflate", lambda: None)
        return outcome(file, *arguments)


def check_equal(file: bytes, *arguments: object) -> Outcome:
    """Compare both; return the common result."""
    ours, theirs = outcome(file, *arguments), former(file, *arguments)
    if _is_grey_with_alpha_of_16_bits(file) and DALIImageType.ANY_DATA in arguments:
        return ours  # other decoders fail
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), ours
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert isinstance(ours, tuple)
        assert ours == theirs
    return ours


def _is_grey_with_alpha_of_16_bits(file: bytes) -> bool:
    return file[24:26] == bytes([16, 4])


@pytest.mark.parametrize(("colour_type", "bits"), KINDS)
def test_all_kinds_have_the_same_pixels(colour_type: int, bits: int) -> None:
    transparent = [(b"tRNS", TRANSPARENT[colour_type])] if colour_type in TRANSPARENT else []
    for output_type, dtype in itertools.product(TYPES, (np.uint8, np.uint16, np.float32)):
        for before in ([], [TEXT], [GAMMA], transparent):
            check_equal(png(PngKind(colour_type, bits, before=before)), output_type, dtype)
        check_equal(png(PngKind(colour_type, bits, interlaced=True)), output_type, dtype)


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize("output_type", TYPES)
@pytest.mark.parametrize(("colour_type", "bits"), KINDS)
def test_the_core_decodes_ordinary_files(colour_type: int, bits: int, output_type: DALIImageType) -> None:
    assert isinstance(outcome(png(PngKind(colour_type, bits, parts=3, after=[TEXT])), output_type), np.ndarray)


@pytest.mark.parametrize("filters", [*itertools.product(range(5), repeat=2), (5,), (4, 4, 9)])
def test_all_pairs_of_filters(filters: tuple[int, ...]) -> None:
    for colour_type, bits in ((0, 4), (0, 8), (0, 16), (2, 8), (6, 8), (2, 16), (6, 16)):
        for height, width in ((1, 1), (2, 1), (1, 2), (7, 40)):
            check_equal(png(PngKind(colour_type, bits, height, width, filters)), DALIImageType.ANY_DATA, np.uint16)


def test_random_sizes_and_regions() -> None:
    rng = np.random.default_rng(5)
    for number in range(300):
        colour_type, bits = KINDS[rng.integers(len(KINDS))]
        height, width = rng.integers(1, 50, 2).tolist()
        filters = rng.integers(0, 5, 7).tolist()
        file = png(PngKind(colour_type, bits, height, width, filters, parts=int(rng.integers(1, 4))), number)
        rows, columns = rng.integers(1, height + 1), rng.integers(1, width + 1)
        anchor = int(rng.integers(height - rows + 1)), int(rng.integers(width - columns + 1))
        region = Region(anchor, (int(rows), int(columns)))
        output_type = TYPES[rng.integers(len(TYPES))]
        assert isinstance(check_equal(file, output_type, np.uint8, region), np.ndarray)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_files(orientation: int) -> None:
    exif = b"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0" + bytes([orientation, 0, 0, 0, 0, 0, 0, 0])
    file = png(PngKind(2, 8, before=[(b"eXIf", exif)]))
    assert isinstance(check_equal(file), np.ndarray)
    check_equal(file, DALIImageType.GRAY, np.float32)


def test_grey_with_alpha_of_16_bits_keeps_its_channels() -> None:
    kind = PngKind(4, 16, filters=(0,))
    rows = np.frombuffer(filtered(kind, np.random.default_rng(0)), np.uint8).reshape(kind.height, -1)[:, 1:]
    stored = np.ascontiguousarray(rows).view(">u2").reshape(kind.height, kind.width, 2)
    for filters in ((0,), (4, 3, 1)):
        pixels = outcome(png(kind._replace(filters=filters)), DALIImageType.ANY_DATA, np.uint16)
        np.testing.assert_array_equal(pixels, stored)


# -- bad files ---------------------------------------------------------------------------------------------------------


def damaged_files() -> Iterator[tuple[str, bytes]]:
    """Yield files with one fault each, and their names."""
    kind = PngKind(2, 8, parts=2)
    chunks, rows = png_chunks(kind), filtered(kind, np.random.default_rng(0))
    header, first, second, end = chunks
    palette = png_chunks(PngKind(3, 8))

    def with_data(data: bytes) -> bytes:
        return file_of([header, (b"IDAT", data), end])

    yield "without an end", file_of(chunks[:-1])
    yield "without data", file_of([header, end])
    yield "empty data", file_of([header, (b"IDAT", b""), end])
    yield "half of the data", file_of([header, first, end])
    yield "data apart", file_of([header, first, TEXT, second, end])
    yield "two headers", file_of([header, *chunks])
    yield "data twice", file_of([header, first, second, first, second, end])
    yield "an unknown critical chunk", file_of([header, (b"ABCD", b"x"), *chunks[1:]])
    yield "an unknown chunk", file_of([header, (b"abCd", b"x"), *chunks[1:]])
    yield "a large unknown chunk", file_of([header, (b"tEXt", b"a\0" + bytes(1 << 21)), *chunks[1:]])
    yield "rows missing", with_data(zlib.compress(rows[: len(rows) // 2]))
    yield "a byte missing", with_data(zlib.compress(rows[:-1]))
    yield "a byte too many", with_data(zlib.compress(rows + b"\0"))
    yield "bytes after the data", with_data(zlib.compress(rows) + b"1234")
    yield "a wrong checksum of the data", with_data(zlib.compress(rows)[:-1] + b"\0")
    yield "no checksum of the data", with_data(zlib.compress(rows)[:-4])
    yield "a dictionary", with_data(b"\x78\xbb\0\0\0\1" + zlib.compress(rows)[2:])
    yield "another compression", with_data(b"\x79\x9c" + zlib.compress(rows)[2:])
    yield "no palette", file_of([palette[0], *palette[2:]])
    yield "an empty palette", file_of([palette[0], (b"PLTE", b""), *palette[2:]])
    yield "a palette of 7 bytes", file_of([palette[0], (b"PLTE", bytes(7)), *palette[2:]])
    yield "a palette too short", file_of([palette[0], (b"PLTE", palette[1][1][:30]), *palette[2:]])
    yield "a palette too long", file_of([palette[0], (b"PLTE", bytes(771)), *palette[2:]])
    yield "two palettes", file_of([*palette[:2], *palette[1:]])
    yield "a late palette", file_of([palette[0], palette[2], palette[1], palette[3]])
    yield "a palette of grey", file_of([png_chunks(PngKind(0, 8))[0], palette[1], *png_chunks(PngKind(0, 8))[1:]])
    yield "a palette of colours", file_of([header, palette[1], *chunks[1:]])
    whole = png(kind)
    for size in range(8, len(whole), 17):
        yield f"{size} of {len(whole)} bytes", whole[:size]
    yield "followed by zeros", whole + bytes(30)
    yield "followed by others", whole + b"more"
    for number, (name, _) in enumerate(chunks):
        place = whole.index(name) + 4 + len(chunks[number][1])
        yield f"a wrong checksum of {name.decode()}", whole[:place] + bytes(4) + whole[place + 4 :]


DAMAGED = dict(damaged_files())


@pytest.mark.parametrize("name", DAMAGED)
def test_bad_files_have_the_same_outcome(name: str) -> None:
    for output_type in (DALIImageType.RGB, DALIImageType.GRAY):
        check_equal(DAMAGED[name], output_type)


def test_a_window_smaller_than_declared_distances() -> None:
    """Distances beyond the window that the stream declares are refused, as zlib refuses them."""
    kind = PngKind(2, 8, 40, 100)
    header, (_, data), end = png_chunks(kind)
    for window in range(8):
        start = window << 4 | 8
        start = start << 8 | 31 - (start << 8) % 31
        check_equal(file_of([header, (b"IDAT", start.to_bytes(2, "big") + data[2:]), end]))


def test_mutated_files_have_the_same_outcome() -> None:
    """Bytes are changed within chunks and checksums corrected, so that decoders read the changed bytes."""
    rng = np.random.default_rng(8)
    decoded = 0
    for number in range(1500):
        colour_type, bits = KINDS[rng.integers(len(KINDS))]
        chunks = png_chunks(PngKind(colour_type, bits, 6, 9, parts=int(rng.integers(1, 3))), number)
        place = int(rng.integers(1 if number % 4 else 0, len(chunks)))
        name, data = chunks[place]
        changed = bytearray(data)
        for _ in range(int(rng.integers(1, 4)) if data else 0):
            changed[rng.integers(len(changed))] = rng.integers(256)
        if number % 7 == 0:
            changed = changed[: rng.integers(len(changed) + 1)]
        chunks[place] = name, bytes(changed)
        decoded += isinstance(check_equal(file_of(chunks)), np.ndarray)
    assert decoded > 100


def test_a_file_that_declares_too_much_is_refused_before_memory_is_taken() -> None:
    chunks = png_chunks(PngKind(2, 8))
    chunks[0] = b"IHDR", struct.pack(">II", 1 << 16, 1 << 16) + chunks[0][1][8:]
    error, message = check_equal(file_of(chunks))
    assert issubclass(error, PenstockError)
    assert "cannot hold" in message or "declares" in message


def test_a_header_of_another_file_is_noticed() -> None:
    """The core writes no more than the output holds."""
    header = read_header(np.frombuffer(png(PngKind(0, 8)), np.uint8))
    output = np.zeros(header.shape(DALIImageType.ANY_DATA), np.uint8)
    library = libraries.libdeflate()
    assert library is not None
    for colour_type in (2, 3, 4, 6):
        file = np.frombuffer(png(PngKind(colour_type, 8)), np.uint8)
        assert not codecs.decode_png(library, file, (0, 0), codecs.PixelSpace.AS_STORED, output)
    larger = np.zeros((14, 17, 1), np.uint8)
    grey = np.frombuffer(png(PngKind(0, 8)), np.uint8)
    assert not codecs.decode_png(library, grey, (0, 0), codecs.PixelSpace.AS_STORED, larger)
    assert codecs.decode_png(library, grey, (0, 0), codecs.PixelSpace.AS_STORED, output)


# -- without the library -----------------------------------------------------------------------------------------------


def test_without_the_library_others_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deflate", None)
    libraries.libdeflate.cache_clear()
    try:
        assert libraries.libdeflate() is None
        assert isinstance(outcome(png(PngKind(6, 8))), np.ndarray)
    finally:
        libraries.libdeflate.cache_clear()


def test_pillow_alone_gives_what_it_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvImageCodec, the core has to match Pillow."""
    for module in (image_codec, image_header):
        monkeypatch.setattr(module, "nvimgcodec", lambda: None)
    for (colour_type, bits), output_type in itertools.product(KINDS, TYPES):
        transparent = [(b"tRNS", TRANSPARENT[colour_type])] if colour_type in TRANSPARENT else []
        for before in ([], [GAMMA], transparent):
            check_equal(png(PngKind(colour_type, bits, before=before)), output_type)


def test_threads_decode_at_the_same_time() -> None:
    """The decoder neither holds the GIL nor has shared state."""
    program = """
import sys, threading
import numpy as np
sys.path.insert(0, sys.argv[1])
from png_files import PngKind, png
from test_png import outcome
files = [png(PngKind(2, 8, 60, 80), seed) for seed in range(8)]
wanted = [outcome(file) for file in files]
bad = []
def work():
    for _ in range(25):
        bad.extend(n for n, file in enumerate(files) if not np.array_equal(outcome(file), wanted[n]))
threads = [threading.Thread(target=work) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not bad
"""
    folder = os.path.dirname(__file__)
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, folder], check=True, timeout=200)
