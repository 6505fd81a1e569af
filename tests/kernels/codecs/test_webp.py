"""WebPs decoded straight into the output have the pixels and errors of the decoders that libwebp replaces."""

from __future__ import annotations

import importlib.util
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from test_png import TYPES, Outcome, outcome

from penstock.data_types import DALIImageType
from penstock.kernels.codecs import image_codec, libraries
from penstock.kernels.windows import Region


def picture(height: int = 31, width: int = 45, channels: int = 3) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    planes = [(x * 4 + y * (2 + c) + 90 * (x > width // 2)) % 251 for c in range(channels)]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


def saved(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "WEBP", **options)
    return file.getvalue()


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


FILES = {
    "lossy": saved(picture()),
    "lossy, with alpha": saved(picture(channels=4)),
    "lossless": saved(picture(), lossless=True),
    "lossless, with alpha": saved(picture(channels=4), lossless=True),
    "one pixel": saved(picture(1, 1)),
    "turned": saved(picture(), exif=turned(6)),
    "mirrored": saved(picture(), exif=turned(2), lossless=True),
    "with a profile": saved(picture(), icc_profile=b"i" * 300),
    "animated": saved(picture(), save_all=True, append_images=[picture(31, 45).rotate(180)]),
}


def former(file: bytes, *arguments: Any) -> Outcome:
    """Return the outcome without libwebp."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_codec, "libwebp", lambda: None)
        return outcome(file, *arguments)


def check_equal(file: bytes, *arguments: Any) -> Outcome:
    """Compare both; return the common result."""
    ours, theirs = outcome(file, *arguments), former(file, *arguments)
    assert type(ours) is type(theirs)
    if isinstance(ours, np.ndarray):
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs
    return ours


@pytest.mark.parametrize("name", FILES)
def test_all_kinds_have_the_same_pixels(name: str) -> None:
    for output_type in TYPES:
        for dtype in (np.uint8, np.float32):
            assert isinstance(check_equal(FILES[name], output_type, dtype), np.ndarray)
    if name != "one pixel":
        check_equal(FILES[name], DALIImageType.RGB, np.uint8, Region((3, 5), (20, 17)))


@pytest.mark.parametrize("name", ["lossy", "lossy, with alpha", "lossless", "lossless, with alpha", "with a profile"])
def test_libwebp_decodes_ordinary_files(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("libwebp left the file to another decoder")

    monkeypatch.setattr(image_codec, "_decode_stored", refuse)
    for output_type in (DALIImageType.RGB, DALIImageType.BGR):
        assert isinstance(outcome(FILES[name], output_type), np.ndarray)


@pytest.mark.parametrize("name", ["lossy", "lossy, with alpha", "lossless", "lossless, with alpha"])
def test_bad_files_have_the_same_outcome(name: str) -> None:
    rng, whole = np.random.default_rng(3), FILES[name]
    for size in range(12, len(whole), 11):
        check_equal(whole[:size])
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            changed[rng.integers(12, len(changed))] = rng.integers(256)
        check_equal(bytes(changed))
    check_equal(whole + bytes(9))
    # The image data have another size than the container declares.
    larger = saved(picture(60, 45, 4), lossless="less" in name)
    extended = bytearray(whole)
    if whole[12:16] == b"VP8X":
        extended[24:30] = larger[24:30]
        check_equal(bytes(extended))


def test_without_the_library_others_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    libraries.libwebp.cache_clear()
    try:
        assert libraries.libwebp() is None
        assert isinstance(outcome(FILES["lossy"]), np.ndarray)
    finally:
        libraries.libwebp.cache_clear()
