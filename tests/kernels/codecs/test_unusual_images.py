"""Unusual files: rare kinds of TIFF, HEIC, and headers that declare more than the file contains."""

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs.headers.tiff import check_tiff
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import read_header

_TESTS = Path(__file__).parents[2]
# Written by tests/golden/make_decoders.py: real DALI's results for the files of tests/golden/tiff_files.py.
_TIFFS = np.load(_TESTS / "golden" / "decoders" / "tiffs.npz")
_DTYPES = {"UINT8": np.uint8, "UINT16": np.uint16, "FLOAT": np.float32}


def _decoded(encoded: bytes | np.ndarray, output_type: str = "RGB", dtype: type = np.uint8) -> np.ndarray:
    encoded = np.frombuffer(encoded, np.uint8)
    header = read_header(encoded)
    kind = getattr(types, output_type)
    output = np.empty(header.shape(kind), dtype)
    decode(encoded, header, output, kind)
    return output


@pytest.mark.parametrize("key", [key for key in _TIFFS.files if key.count("/") == 2])
def test_unusual_tiffs_equal_dali(key: str) -> None:
    name, output_type, dtype = key.split("/")
    result, expected = _decoded(_TIFFS[f"file/{name}"], output_type, _DTYPES[dtype]), _TIFFS[key]
    assert result.shape == expected.shape
    assert np.abs(result.astype(np.float64) - expected).max() <= (1e-5 if dtype == "FLOAT" else 0)


def test_all_of_them_were_decoded() -> None:
    # The only file that DALI refuses: two channels, unconverted.
    assert _TIFFS["errors"].tolist() == [f"8x2_planar.unusual.tiff/ANY_DATA/{dtype}" for dtype in _DTYPES]


def _tiff(tags: dict[int, tuple[int, int]], data: bytes) -> bytes:
    """Return a TIFF with one strip of data; ``tags``: type and value by number."""
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, (kind, value) in sorted(tags.items()))
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries + bytes(4)


def test_gray_and_alpha_as_colours_are_gray() -> None:
    pixels = bytes([10, 255, 20, 255, 30, 255, 40, 255])
    tags = {256: (4, 2), 257: (4, 2), 258: (3, 8), 259: (3, 1), 262: (3, 1), 273: (4, 8), 277: (3, 2), 278: (4, 2)}
    # The eight bits of both channels are packed into the tag's value.
    encoded = bytearray(_tiff(tags | {279: (4, 8), 338: (3, 0)}, pixels))
    place = encoded.index(struct.pack("<HHII", 258, 3, 1, 8))
    encoded[place : place + 12] = struct.pack("<HHIHH", 258, 3, 2, 8, 8)
    result = _decoded(bytes(encoded))
    np.testing.assert_array_equal(result, np.repeat([[[10], [20]], [[30], [40]]], 3, axis=2))


def test_planes_that_no_library_reads_right_are_refused() -> None:
    sys.path.insert(0, str(_TESTS / "golden"))
    try:
        from tiff_files import tiff
    finally:
        sys.path.pop(0)
    encoded = tiff(np.zeros((4, 4, 3), np.int64), 12, planar=True)
    with pytest.raises(CorruptImageError, match="Planes of 12 bits in a TIFF are not supported; save the image with"):
        _decoded(encoded)


@pytest.mark.parametrize("name", ["12x1.unusual.tiff", "8x6.unusual.tiff"])
def test_what_nothing_vets_is_decoded_in_a_process_of_its_own(name: str) -> None:
    """A damaged file may crash the process that decodes it, which must not be the user's."""
    encoded = _TIFFS[f"file/{name}"]
    assert check_tiff(encoded.data).crash_prone

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> object:
        data = fn.external_source(source=lambda: [encoded])
        return fn.decoders.image(data, output_type=types.ANY_DATA, dtype=types.UINT16)

    (images,) = pipeline().run()
    np.testing.assert_array_equal(images[0], _TIFFS[f"{name}/ANY_DATA/UINT16"])


_LIMITED = """
import resource, sys
import numpy as np
from penstock import fn, pipeline_def, types
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]) << 20,) * 2)
data = np.fromfile(sys.argv[1], np.uint8)

@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipeline():
    return fn.decoders.image(fn.external_source(source=lambda: [data]), output_type=types.ANY_DATA, dtype=types.FLOAT)

try:
    print(pipeline().run()[0][0].shape())
except Exception as error:
    print(type(error).__name__, error)
"""


def _within(encoded: bytes, folder: Path, megabytes: int) -> str:
    """Decode the file in a process with limited address space; return its output."""
    path = folder / "image"
    path.write_bytes(encoded)
    script = [sys.executable, "-c", _LIMITED, path, str(megabytes)]
    environment = {"PYTHONPATH": str(_TESTS.parent / "backend"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(script, env=environment, capture_output=True, text=True, check=True).stdout


def test_gray_of_32_bits_takes_no_table_of_all_values(tmp_path: Path) -> None:
    values = np.arange(30, dtype=np.uint32).reshape(5, 6) * 0x08080808
    tags = {256: (4, 6), 257: (4, 5), 258: (3, 32), 259: (3, 1), 262: (3, 1), 273: (4, 8), 277: (3, 1), 278: (4, 5)}
    encoded = _tiff(tags | {279: (4, values.nbytes), 339: (3, 1)}, values.tobytes())
    np.testing.assert_allclose(_decoded(encoded, "GRAY", np.float32)[..., 0], values / 2**32, rtol=1e-6)
    assert "[5, 6, 1]" in _within(encoded, tmp_path, 6000)


def _chunk(name: bytes, contents: bytes) -> bytes:
    return struct.pack(">I", len(contents)) + name + contents + struct.pack(">I", zlib.crc32(name + contents))


def test_a_few_bytes_of_one_bit_images_reserve_no_gigabytes(tmp_path: Path) -> None:
    """Sixteen million bytes hold 134 million such pixels."""
    header = struct.pack(">IIBBBBB", 32768, 4095, 1, 0, 0, 0, 0)
    encoded = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", b"")
    assert "cannot hold" in _within(encoded[:44], tmp_path, 6000)


def test_a_blank_image_may_be_as_small_as_its_compression_makes_it() -> None:
    buffer = io.BytesIO()
    Image.new("1", (6000, 6000)).save(buffer, "PNG")
    assert buffer.tell() < 40_000
    assert not _decoded(buffer.getvalue(), "GRAY").any()


def _heic(pixels: np.ndarray, **options: object) -> bytes:
    from pillow_heif import register_heif_opener

    register_heif_opener()
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "HEIF", quality=95, chroma=444, **options)
    return buffer.getvalue()


def _gradient() -> np.ndarray:
    rows, columns = np.mgrid[0:40, 0:56]
    return np.stack([rows * 3, columns * 2, rows + columns], -1).astype(np.uint8)


@pytest.mark.parametrize("isolate", ["none", "auto"])
def test_heic_is_read_where_pillow_heif_is_installed(isolate: str) -> None:
    pixels = _gradient()
    encoded = np.frombuffer(_heic(pixels), np.uint8)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, isolate_decoders=isolate)
    def pipeline() -> object:
        data = fn.external_source(source=lambda: [encoded])
        return fn.decoders.image(data), fn.peek_image_shape(data)

    images, shapes = pipeline().run()
    np.testing.assert_array_equal(shapes[0], [40, 56, 3])
    assert np.abs(np.asarray(images[0]).astype(int) - pixels).max() <= 6


def test_heic_is_turned_upright_once() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    result = _decoded(_heic(_gradient(), exif=exif.tobytes()))
    assert np.abs(result.astype(int) - np.rot90(_gradient(), -1)).max() <= 6


def test_damaged_heic() -> None:
    encoded = _heic(_gradient())
    for size in (40, 200, len(encoded) - 60):
        with pytest.raises(CorruptImageError):
            _decoded(encoded[:size])
    place = encoded.index(b"ispe") + 8
    with pytest.raises(CorruptImageError, match="HEIC: an image is of 40x0 pixels"):
        _decoded(encoded[:place] + struct.pack(">II", 0, 40) + encoded[place + 8 :])
