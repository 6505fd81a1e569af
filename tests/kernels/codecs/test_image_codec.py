"""Decoding on the CPU, compared with real DALI's results (tests/golden/make_decoders.py)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock import types
from penstock.kernels.codecs import image_codec
from penstock.kernels.codecs.image_codec import decode, decode_to_scratch
from penstock.kernels.codecs.image_header import CorruptImageError, NotAnImageError, read_header
from penstock.kernels.cpu.opencv import opencv
from penstock.kernels.windows import Region
from penstock.types import DALIImageType

_RECORDED = Path(__file__).parents[2] / "golden" / "decoders" / "images.npz"
_RECORDING = np.load(_RECORDED)
_ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[3] / "backend")}
_FILES = [key.removeprefix("file/") for key in _RECORDING.files if key.startswith("file/")]
_DECODED = [key for key in _RECORDING.files if key.count("/") == 2]
_DTYPES = {"UINT8": np.uint8, "FLOAT": np.float32, "UINT16": np.uint16, "INT8": np.int8}

# DALI refuses gray with alpha and unconverted inks; Penstock returns them as they are stored.
_MORE_THAN_DALI = ("cmyk.jpg/ANY_DATA/UINT8",)


def _decoded(name: str, output_type: str = "RGB", dtype: type = np.uint8, region: Region | None = None) -> np.ndarray:
    encoded = _RECORDING[f"file/{name}"]
    header = read_header(encoded)
    kind = getattr(types, output_type)
    shape = header.shape(kind)
    output = np.empty(shape if region is None else (*region.extents, shape[2]), dtype)
    decode(encoded, header, output, kind, region=region)
    return output


@pytest.mark.parametrize("key", _DECODED)
def test_equals_dali(key: str) -> None:
    name, output_type, dtype = key.split("/")
    expected = _RECORDING[key]
    result = _decoded(name, output_type, _DTYPES[dtype])
    assert result.shape == expected.shape
    # JPEGs in RGB are equal bit for bit; gray values of colours may be rounded the other way.
    exact = name.endswith(".jpg") and output_type in ("RGB", "BGR", "ANY_DATA") and dtype == "UINT8"
    steps = np.abs(result.astype(np.float64) - expected).max()
    assert steps <= (0 if exact else 1e-5 if dtype == "FLOAT" else 1)


@pytest.mark.parametrize("key", [key for key in _RECORDING["errors"].tolist() if key not in _MORE_THAN_DALI])
def test_fails_where_dali_does(key: str) -> None:
    name, output_type, dtype = key.split("/")
    with pytest.raises((NotAnImageError, CorruptImageError)):
        _decoded(name, output_type, _DTYPES[dtype])


def test_inks_come_as_stored() -> None:
    assert _decoded("cmyk.jpg", "ANY_DATA").shape == (35, 41, 4)


_WITH_REGIONS = (
    *(f"exif_{orientation}.jpg" for orientation in range(1, 9)),
    *("rgb_420.jpg", "gray.jpg", "cmyk.jpg", "exif_6.png", "lzw.tiff", "rgb.jp2", "lossy.webp", "rgb.ppm"),
)


@pytest.mark.parametrize("name", _WITH_REGIONS)
def test_a_region_is_that_part_of_the_whole(name: str) -> None:
    whole = _decoded(name)
    part = _decoded(name, region=Region((3, 5), (20, 17)))
    np.testing.assert_array_equal(part, whole[3:23, 5:22])


@pytest.mark.parametrize("output_type", ["RGB", "BGR", "GRAY", "ANY_DATA"])
def test_a_region_for_now_is_the_same(output_type: str) -> None:
    region = Region((5, 6), (12, 14))
    for name in ("rgb_420.jpg", "gray.jpg", "rgb_420.jpg"):
        encoded = _RECORDING[f"file/{name}"]
        pixels = decode_to_scratch(encoded, read_header(encoded), region, getattr(types, output_type))
        np.testing.assert_array_equal(pixels, _decoded(name, output_type)[5:17, 6:20])


@pytest.mark.parametrize("name", ["exif_6.jpg", "progressive.jpg", "rgb.png", "cmyk.jpg"])
def test_not_all_images_are_decoded_for_now(name: str) -> None:
    encoded = _RECORDING[f"file/{name}"]
    assert decode_to_scratch(encoded, read_header(encoded), Region((5, 6), (12, 14))) is None


@pytest.mark.parametrize("name", ["rgb_420.jpg", "exif_6.jpg", "rgb.png", "gray.jpg"])
def test_fills_views_that_are_not_contiguous(name: str) -> None:
    encoded = _RECORDING[f"file/{name}"]
    header = read_header(encoded)
    height, width, channels = header.shape(types.RGB)
    frame = np.zeros((height + 2, width + 4, channels), np.uint8)
    decode(encoded, header, frame[1:-1, 2:-2])
    np.testing.assert_array_equal(frame[1:-1, 2:-2], _decoded(name))
    assert not frame[0].any()
    assert not frame[:, :2].any()


@pytest.mark.parametrize("name", ["rgb_420.jpg", "rgb.png", "palette.png", "exif_6.jpg", "lossless.webp", "rgb.tiff"])
@pytest.mark.parametrize("output_type", ["RGB", "BGR", "ANY_DATA"])
def test_pillow_takes_over_where_the_codecs_are_missing(
    name: str, output_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _decoded(name, output_type)
    for module in (image_codec, sys.modules[read_header.__module__]):
        for library in ("nvimgcodec", "simplejpeg"):
            monkeypatch.setattr(module, library, lambda: None, raising=False)
    np.testing.assert_array_equal(_decoded(name, output_type), expected)


def test_truncated_jpeg_says_so() -> None:
    with pytest.raises(CorruptImageError, match=r"JPEG image of 35x41 pixels \(\d+ bytes\)"):
        _decoded("truncated.jpg")


def test_fast_transform_is_close() -> None:
    encoded = _RECORDING["file/rgb_444.jpg"]
    header = read_header(encoded)
    accurate, fast = (np.empty(header.shape(types.RGB), np.uint8) for _ in range(2))
    decode(encoded, header, accurate)
    decode(encoded, header, fast, fast_idct=True)
    assert 0 < np.abs(accurate.astype(int) - fast).max() <= 8


def test_importing_penstock_loads_no_codec() -> None:
    code = (
        "import sys, penstock; import penstock.kernels.codecs.image_codec; "
        "assert not {'PIL', 'simplejpeg', 'nvidia.nvimgcodec', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=_ENVIRONMENT)


def test_damaged_files_raise_nothing_but_image_errors() -> None:
    script = Path(__file__).parent / "damaged_images.py"
    subprocess.run([sys.executable, script, _RECORDED, "400"], check=True, env=_ENVIRONMENT, capture_output=True)


@pytest.mark.parametrize(
    ("output_type", "dtype", "expected"),
    [
        (DALIImageType.RGB, np.float32, [0.25, 1.5, -0.5]),
        (DALIImageType.ANY_DATA, np.float32, [0.25, 1.5, -0.5]),
        (DALIImageType.BGR, np.float32, [-0.5, 1.5, 0.25]),
        (DALIImageType.GRAY, np.float32, [0.299 * 0.25 + 0.587 * 1.5 - 0.114 * 0.5]),
        (DALIImageType.RGB, np.uint8, [64, 255, 0]),
        (DALIImageType.RGB, np.int16, [8192, 32767, -16383]),
    ],
)
def test_tiff_of_real_colours(output_type: DALIImageType, dtype: type, expected: list[float]) -> None:
    cv2 = opencv()
    pixels = np.broadcast_to(np.float32([-0.5, 1.5, 0.25]), (3, 5, 3))
    encoded = cv2.imencode(".tiff", pixels, [cv2.IMWRITE_TIFF_COMPRESSION, 1])[1].reshape(-1)
    header = read_header(encoded)
    output = np.empty(header.shape(output_type), dtype)
    decode(encoded, header, output, output_type)
    np.testing.assert_allclose(output, np.broadcast_to(np.array(expected), output.shape), rtol=1e-6)


def test_damaged_tiff_of_real_colours() -> None:
    cv2 = opencv()
    encoded = cv2.imencode(".tiff", np.ones((9, 9, 3), np.float32), [cv2.IMWRITE_TIFF_COMPRESSION, 8])[1].reshape(-1)
    header = read_header(encoded)
    with pytest.raises(CorruptImageError):
        decode(
            np.concatenate([encoded[:8], np.full(20, 255, np.uint8), encoded[28:]]),
            header,
            np.empty((9, 9, 3), np.float32),
        )
