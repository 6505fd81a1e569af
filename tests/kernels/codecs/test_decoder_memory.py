"""Decoding takes at most the memory estimated from the header, and not much less than that."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.decoder_memory import TIFF, image_memory, memory_of_jpegs
from penstock.kernels.codecs.headers.declared import Declared
from penstock.kernels.codecs.headers.jpeg import has_several_scans
from penstock.kernels.codecs.image_description import EncodedFiles, JpegHeaders
from penstock.kernels.codecs.image_header import read_header, read_jpeg_headers

HEIGHT, WIDTH = 1600, 2500
# Memory of libraries, of numba's compiled functions, and of pages that the allocator retains.
NOISE = 24 << 20


def picture(channels: int, dtype: Any = np.uint8, size: tuple[int, int] = (HEIGHT, WIDTH)) -> np.ndarray:
    y, x = np.mgrid[: size[0], : size[1]]
    # With some noise, as files with very few data for their size go to other decoders.
    pixels = ((x // 7 + y // 5 + x * y % 5) % 250).astype(dtype) * (257 if dtype == np.uint16 else 1)
    return np.repeat(pixels[..., np.newaxis], channels, 2) if channels > 1 else pixels


def saved(kind: str, size: tuple[int, int], channels: int = 3, mode: str | None = None, **options: Any) -> bytes:
    image, file = Image.fromarray(picture(channels, size=size)), io.BytesIO()
    (image.convert(mode) if mode else image).save(file, kind, **options)
    return file.getvalue()


def written(extension: str, size: tuple[int, int], channels: int, dtype: Any = np.uint16) -> bytes:
    return bytes(cv2.imencode(extension, picture(channels, dtype, size))[1].tobytes())


Make = Callable[[tuple[int, int]], bytes]
FILES: dict[str, Make] = {
    "JPEG": lambda size: saved("JPEG", size, subsampling=0),
    "turned JPEG": lambda size: saved("JPEG", size, exif=turned()),
    "progressive JPEG": lambda size: saved("JPEG", size, subsampling=0, progressive=True),
    "progressive CMYK JPEG": lambda size: saved("JPEG", size, mode="CMYK", progressive=True),
    "PNG": lambda size: saved("PNG", size, 4, compress_level=1),
    "PNG with a palette": lambda size: saved("PNG", size, mode="P", compress_level=1),
    "PNG of 16 bits": lambda size: written(".png", size, 4),
    "WebP": lambda size: saved("WEBP", size, method=0),
    "lossless WebP": lambda size: saved("WEBP", size, 4, lossless=True, method=0),
    "BMP": lambda size: saved("BMP", size),
    "PPM of 16 bits": lambda size: written(".ppm", size, 3),
    "GIF": lambda size: saved("GIF", size, mode="P"),
    "TIFF": lambda size: saved("TIFF", size, 4),
    "deflated TIFF": lambda size: saved("TIFF", size, compression="tiff_adobe_deflate"),
    "TIFF of 16 bits": lambda size: written(".tiff", size, 4),
    "TIFF of floats": lambda size: written(".tiff", size, 3, np.float32),
    "JPEG 2000": lambda size: saved("JPEG2000", size),
    "JPEG 2000 of 16 bits": lambda size: written(".jp2", size, 3),
    "AVIF": lambda size: saved("AVIF", size, speed=10),
}


def turned() -> Any:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


# A fresh process, in which no freed memory is reused: it loads the decoders' libraries, and measures each decoding in a
# fork.
MEASURE = """
import os, re, sys
import numpy as np
from pathlib import Path
from penstock.data_types import DALIImageType
from penstock.kernels.codecs.decoder_memory import image_memory
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import read_header

KINDS = [
    (DALIImageType.RGB, np.uint8),
    (DALIImageType.ANY_DATA, np.uint8),
    (DALIImageType.GRAY, np.uint8),
    (DALIImageType.YCbCr, np.uint8),
    (DALIImageType.RGB, np.float32),
]

def resident(name):
    return int(re.search(rf"{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10

small, large = (np.fromfile(path, np.uint8) for path in sys.argv[1:])
for kind, dtype in KINDS:
    header = read_header(small)
    decode(small, header, np.empty(header.shape(kind), dtype), kind)
for kind, dtype in KINDS:
    if os.fork() == 0:
        header = read_header(large)
        output = np.ones(header.shape(kind), dtype)
        Path("/proc/self/clear_refs").write_text("5")  # The high-water mark begins anew.
        before = resident("VmRSS")
        decode(large, header, output, kind)
        grown = resident("VmHWM") - before
        print(grown, image_memory(header, large, kind, np.dtype(dtype), True), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FILES)
def test_no_decoder_takes_more_than_estimated(name: str, tmp_path: Path) -> None:
    paths = [tmp_path / "small", tmp_path / "large"]
    for path, size in zip(paths, ((800, 1000), (HEIGHT, WIDTH))):
        path.write_bytes(FILES[name](size))
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURE, *map(str, paths)], capture_output=True, text=True, check=True
    )
    peaks, estimates = zip(*(map(int, line.split()) for line in run.stdout.splitlines()))
    for peak, estimate in zip(peaks, estimates):
        assert peak <= estimate + NOISE
    # The estimate must not refuse files needlessly: it is at most three times what is taken.
    assert max(estimates) <= 3 * (max(peaks) + NOISE)


@pytest.mark.parametrize(
    ("options", "several"), [({}, False), ({"progressive": True}, True), ({"restart_marker_blocks": 2}, False)]
)
def test_files_of_several_scans_are_told(options: dict[str, Any], several: bool) -> None:
    data = saved("JPEG", (40, 60), **options)
    assert has_several_scans(memoryview(data), 3) == several


def test_a_first_scan_of_one_component_has_others_after_it() -> None:
    assert has_several_scans(memoryview(_scans_apart(saved("JPEG", (40, 60)))), 3)


def test_a_tile_may_be_larger_than_its_image() -> None:
    small, large = (Declared(16, 16, 3, tile=size) for size in (0, 1 << 30))
    assert TIFF.of(large) == TIFF.of(small) + (2 << 30)


def _scans_apart(data: bytes) -> bytes:
    """Return the JPEG with a scan header that announces luma alone."""
    start = data.index(b"\xff\xda")
    return data[:start] + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + data[start + 14 :]


@pytest.mark.parametrize(
    "output_type", [DALIImageType.RGB, DALIImageType.GRAY, DALIImageType.ANY_DATA, DALIImageType.YCbCr]
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("upright", [True, False])
def test_estimates_of_a_batch_are_those_one_by_one(output_type: DALIImageType, dtype: Any, upright: bool) -> None:
    exif = turned()
    encoded = [
        saved("JPEG", (40, 60)),
        saved("JPEG", (30, 20), exif=exif),
        saved("JPEG", (50, 10), progressive=True, exif=exif),
        saved("JPEG", (16, 16), mode="L"),
        _scans_apart(saved("JPEG", (24, 33))),
    ]
    files = [np.frombuffer(file, np.uint8) for file in encoded]
    headers = read_jpeg_headers(EncodedFiles(files))
    assert isinstance(headers, JpegHeaders)
    sizes = np.array([file.size for file in files])
    found = memory_of_jpegs(headers, sizes, output_type, np.dtype(dtype), upright)
    one_by_one = [image_memory(read_header(file), file, output_type, np.dtype(dtype), upright) for file in files]
    assert found.tolist() == one_by_one
