"""JPEG headers read in batches equal those read one by one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from penstock.errors import PenstockError
from penstock.kernels.codecs.decoding import Decoding
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_header import read_header, read_jpeg_headers
from penstock.kernels.codecs.limits import Limits


def jpeg(height: int, width: int, mode: str = "RGB", orientation: int = 0, **options: object) -> np.ndarray:
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    buffer = io.BytesIO()
    Image.new(mode, (width, height), 90).save(buffer, "JPEG", exif=exif, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def kinds() -> list[np.ndarray]:
    turned = [jpeg(20 + k, 30, orientation=k) for k in range(1, 9)]
    options: list[dict[str, object]] = [
        {"progressive": True},
        {"subsampling": 0},
        {"optimize": True},
        {"comment": b"x" * 99},
    ]
    return [*turned, *(jpeg(17, 40 + k, **option) for k, option in enumerate(options)), jpeg(5, 7, "L")]


def test_what_is_found_is_what_is_found_one_by_one() -> None:
    files = kinds()
    assert list(read_jpeg_headers(EncodedFiles(files))) == [read_header(file) for file in files]


def test_other_files_are_left_to_the_other_way(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    png = np.frombuffer(buffer.getvalue(), np.uint8)
    files = [png, jpeg(8, 8, "CMYK"), np.zeros(0, np.uint8), jpeg(8, 8)[:60], jpeg(8, 8)]
    assert [header is None for header in read_jpeg_headers(EncodedFiles(files))] == [True, True, True, True, False]


def test_limits_are_left_to_the_other_way() -> None:
    decoding = Decoding(Limits(pixels=100))
    headers = read_jpeg_headers(EncodedFiles([jpeg(10, 10), jpeg(10, 11)]), decoding)
    assert [header is None for header in headers] == [False, True]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_headers_are_never_taken_for_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    taken = 0
    for file in kinds():
        for _ in range(150):
            damaged = file.copy()
            for place in rng.integers(2, len(file), rng.integers(1, 4)):
                damaged[place] = rng.integers(0, 256)
            damaged = damaged[: rng.integers(4, len(damaged) + 1)] if rng.random() < 0.2 else damaged
            (header,) = read_jpeg_headers(EncodedFiles([damaged]))
            if header is None:
                continue
            taken += 1
            try:
                expected = read_header(damaged)
            except PenstockError as error:
                raise AssertionError(f"taken though it is refused: {error}") from None
            assert header == expected
    assert taken
