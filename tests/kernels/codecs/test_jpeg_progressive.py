"""Progressive JPEGs decoded by Penstock's kernels equal the libraries' results bit for bit, or are left to the libraries."""

from __future__ import annotations

import io
import itertools
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFile
from progressive_writing import Plane, ScanOf, write

from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import ImageError, read_header
from penstock.kernels.codecs.jpeg_baseline import decode_region
from penstock.kernels.windows import Region
from penstock.types import DALIImageType

CHANNELS = {DALIImageType.RGB: 3, DALIImageType.BGR: 3, DALIImageType.GRAY: 1}
WINDOW = Region((10, 20), (30, 40))


def jpeg(
    seed: int, height: int = 75, width: int = 101, noise: float = 10, mode: str = "RGB", **options: Any
) -> np.ndarray:
    """Return a progressive JPEG of smooth colours with noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    pixels = np.clip(smooth + rng.normal(0, noise, smooth.shape), 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    largest, ImageFile.MAXBLOCK = ImageFile.MAXBLOCK, 1 << 20  # Pillow's default is too small for noisy small images
    try:
        Image.fromarray(pixels).convert(mode).save(buffer, "JPEG", progressive=True, **options)
    finally:
        ImageFile.MAXBLOCK = largest
    return np.frombuffer(buffer.getvalue(), np.uint8)


def region_of(encoded: np.ndarray, region: Region, kind: DALIImageType = DALIImageType.RGB) -> np.ndarray | None:
    output = np.full((*region.extents, CHANNELS[kind]), 77, np.uint8)
    encoded = np.frombuffer(encoded.tobytes(), np.uint8)
    taken = decode_region(encoded, read_header(encoded), region, output, kind == DALIImageType.BGR)
    return output if taken else None


def by_pillow(encoded: np.ndarray, kind: DALIImageType = DALIImageType.RGB) -> np.ndarray:
    with Image.open(io.BytesIO(encoded.tobytes())) as image:
        if kind == DALIImageType.GRAY:
            image.draft("L", None)  # type: ignore[arg-type]
        pixels = np.asarray(image)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    return pixels[..., ::-1] if kind == DALIImageType.BGR else pixels


def regions(rng: np.random.Generator, height: int, width: int) -> list[Region]:
    """Return the whole image, and regions of it."""
    some = [Region((0, 0), (height, width))]
    for _ in range(4):
        rows, columns = int(rng.integers(1, height + 1)), int(rng.integers(32, width + 1))
        top, left = int(rng.integers(0, height - rows + 1)), int(rng.integers(0, width - columns + 1))
        some.append(Region((top, left), (rows, columns)))
    return some


def check(encoded: np.ndarray, kind: DALIImageType = DALIImageType.RGB, seed: int = 0) -> None:
    """Compare regions with the same regions of Pillow's result."""
    expected = by_pillow(encoded, kind)
    for region in regions(np.random.default_rng(seed), *expected.shape[:2]):
        np.testing.assert_array_equal(region_of(encoded, region, kind), expected[region.overlap(expected.shape)[0]])


@pytest.mark.parametrize("kind", CHANNELS)
@pytest.mark.parametrize(("subsampling", "quality"), [*itertools.product(range(3), (1, 30, 75, 95, 100))])
def test_colours(kind: DALIImageType, subsampling: int, quality: int) -> None:
    rng = np.random.default_rng(quality)
    height, width = int(rng.integers(35, 90)), int(rng.integers(60, 130))
    check(jpeg(quality, height, width, quality / 3, subsampling=subsampling, quality=quality), kind, quality)


@pytest.mark.parametrize(
    "options",
    [
        {"restart_marker_blocks": 1},
        {"restart_marker_blocks": 9, "subsampling": 0},
        {"restart_marker_rows": 1},
        {"quality": 100, "noise": 80},
        {"noise": 0, "quality": 5},
        {"comment": b"\xff\xda" * 10},
    ],
)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_ways_of_coding(options: dict[str, Any], mode: str) -> None:
    check(jpeg(3, mode=mode, **options), DALIImageType.RGB if mode == "RGB" else DALIImageType.GRAY)


def test_grey_as_colours() -> None:
    encoded = jpeg(6, mode="L")
    expected = np.repeat(by_pillow(encoded), 3, axis=2)
    for kind in (DALIImageType.RGB, DALIImageType.BGR):
        np.testing.assert_array_equal(region_of(encoded, WINDOW, kind), expected[WINDOW.overlap(expected.shape)[0]])


@pytest.mark.parametrize("size", [(1, 32), (8, 33), (9, 47), (16, 48), (17, 49), (33, 64)])
@pytest.mark.parametrize("subsampling", range(3))
def test_sizes_at_the_edges_of_units(size: tuple[int, int], subsampling: int) -> None:
    check(jpeg(5, *size, subsampling=subsampling))


def test_files_one_after_the_other_share_memory_and_nothing_else() -> None:
    baseline = io.BytesIO()
    Image.fromarray(by_pillow(jpeg(1, 90, 120))).save(baseline, "JPEG", quality=91)
    files = [jpeg(1, 200, 300), np.frombuffer(baseline.getvalue(), np.uint8), jpeg(2, 60, 400, subsampling=0)]
    for encoded in files * 2:
        check(encoded)


# -- any scan script -------------------------------------------------------------------------------------------------

Y, B, R, ALL = (0,), (1,), (2,), (0, 1, 2)
SCRIPTS = {
    "one after the other": [
        *(ScanOf((c,), 0, 0, 0, 0) for c in range(3)),
        *(ScanOf((c,), 1, 63, 0, 0) for c in range(3)),
    ],
    "components apart": [
        ScanOf(Y, 0, 0, 0, 2),
        ScanOf((1, 2), 0, 0, 0, 0),
        ScanOf(Y, 0, 0, 2, 1),
        ScanOf(Y, 0, 0, 1, 0),
    ]
    + [ScanOf((c,), 1, 63, 0, 0) for c in range(3)],
    "bands, the last one first": [ScanOf(ALL, 0, 0, 0, 0)]
    + [ScanOf((c,), *band, 0, 0) for band in ((41, 63), (6, 40), (5, 5), (1, 4)) for c in range(3)],
    "three levels": [ScanOf(ALL, 0, 0, 0, 3)]
    + [ScanOf((c,), *band, 0, 3) for c in range(3) for band in ((1, 9), (10, 63))]
    + [ScanOf((c,), 1, 63, level + 1, level) for level in (2, 1, 0) for c in range(3)]
    + [ScanOf(ALL, 0, 0, level + 1, level) for level in (2, 1, 0)],
    "levels of bands": [ScanOf(ALL, 0, 0, 0, 0)]
    + [scan for c in range(3) for scan in (ScanOf((c,), 1, 5, 0, 1), ScanOf((c,), 1, 5, 1, 0))]
    + [scan for c in range(3) for scan in (ScanOf((c,), 6, 63, 0, 2), ScanOf((c,), 6, 63, 2, 1))]
    + [ScanOf((c,), 6, 63, 1, 0) for c in range(3)],
}


def planes_of(rng: np.random.Generator, height: int, width: int, across: int, down: int, density: float) -> list[Plane]:
    """Return coefficients, mostly small; ``density`` of them are not zero."""
    planes = []
    for h, v in ((across, down), (1, 1), (1, 1)):
        rows, columns = -(-height // (8 * down)) * v, -(-width // (8 * across)) * h
        sizes = rng.geometric(0.4, (rows, columns, 64)) * rng.choice([-1, 1], (rows, columns, 64))
        blocks = np.where(rng.random((rows, columns, 64)) < density, sizes, 0)
        blocks[rng.random((rows, columns)) < 0.4, 1:] = 0
        blocks[..., 0] = rng.integers(-200, 200, (rows, columns))
        planes.append(Plane(blocks, h, v))
    return planes


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(("across", "down"), [(1, 1), (2, 1), (2, 2), (1, 2), (4, 1)])
@pytest.mark.parametrize(("density", "interval"), [(0.02, 0), (0.3, 7), (1.0, 0)])
def test_scripts(script: str, across: int, down: int, density: float, interval: int) -> None:
    rng = np.random.default_rng([across, down, interval])
    height, width = int(rng.integers(20, 60)), int(rng.integers(40, 80))
    check(write(height, width, planes_of(rng, height, width, across, down, density), SCRIPTS[script], interval))


COMPLETE = SCRIPTS["levels of bands"]
INCOMPLETE = {
    "a bit is missing": COMPLETE[:-1],
    "a band is missing": [scan for scan in COMPLETE if scan.first != 6],
    "a scan comes again": [*COMPLETE, COMPLETE[-1]],
    "AC before DC": [*COMPLETE[1:], COMPLETE[0]],
    "a level is left out": [scan._replace(before=2) if scan.before == 1 else scan for scan in COMPLETE],
    "four levels": [ScanOf(ALL, 0, 0, 0, 0)]
    + [ScanOf((c,), 1, 63, 0, 4) for c in range(3)]
    + [ScanOf((c,), 1, 63, level + 1, level) for level in (3, 2, 1, 0) for c in range(3)],
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_what_libraries_may_warn_of_or_smooth_is_left(name: str) -> None:
    rng = np.random.default_rng(8)
    planes = planes_of(rng, 40, 60, 2, 2, 0.3)
    assert region_of(write(40, 60, planes, COMPLETE), Region((0, 0), (40, 60))) is not None
    assert region_of(write(40, 60, planes, INCOMPLETE[name]), Region((0, 0), (40, 60))) is None


def test_quantizers_between_scans_are_left() -> None:
    encoded = jpeg(1).tobytes()
    tables = [place for place in range(len(encoded)) if encoded[place : place + 2] == b"\xff\xc4"]
    added = b"\xff\xdb\0\x43\0" + bytes([9] * 64)
    for place, is_left in ((tables[0], False), (tables[-1], True)):
        changed = np.frombuffer(encoded[:place] + added + encoded[place:], np.uint8)
        assert (region_of(changed, WINDOW) is None) == is_left


# -- damage ----------------------------------------------------------------------------------------------------------


def outcome(encoded: np.ndarray) -> np.ndarray | str:
    """Return the whole image, or its error, from :func:`decode`."""
    header = read_header(encoded)
    output = np.empty(header.shape(DALIImageType.RGB, False), np.uint8)
    try:
        decode(encoded, header, output, adjust_orientation=False)
    except ImageError as error:
        return str(error)
    return output


def test_what_is_cut_short_is_left() -> None:
    encoded = jpeg(2)
    assert region_of(encoded, WINDOW) is not None
    for end in range(encoded.size - 600, encoded.size, 7):
        assert region_of(encoded[:end], WINDOW) is None


@pytest.mark.parametrize("seed", range(8))
def test_damage_shows_as_in_the_whole_or_is_left(seed: int) -> None:
    """The files are small, so whole images are left to the libraries."""
    rng = np.random.default_rng(seed)
    taken = 0
    for trial in range(60):
        intact = jpeg(trial, 48, 80, subsampling=trial % 3, quality=80, restart_marker_blocks=4 * (trial % 2))
        encoded = intact.copy()
        first = 0 if trial % 4 == 0 else intact.tobytes().index(b"\xff\xda")
        places = rng.integers(first, encoded.size, rng.integers(1, 4))
        encoded[places] ^= (1 << rng.integers(0, 8, places.size)).astype(np.uint8)
        try:
            header = read_header(encoded)
        except ImageError:
            continue
        if (header.height, header.width, header.channels) != (48, 80, 3):
            continue
        pixels = region_of(encoded, WINDOW)
        if pixels is not None:
            taken += 1
            expected = outcome(encoded)
            assert isinstance(expected, np.ndarray), expected
            np.testing.assert_array_equal(pixels, expected[10:40, 20:60])
    assert taken


def test_large_damaged_files_fail_as_the_libraries_say(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = jpeg(1, 411, 630, noise=40, quality=95)
    assert encoded.size > 1 << 15
    variants = [encoded[: encoded.size // 2], encoded[:-2], encoded[:-500], encoded]
    found = [outcome(variant) for variant in variants]
    monkeypatch.setattr("penstock.kernels.codecs.image_codec.decode_region", lambda *_, **_named: False)
    for variant, own in zip(variants, found, strict=True):
        np.testing.assert_array_equal(own, outcome(variant))


# -- other processes ---------------------------------------------------------------------------------------------------

FRAMES = {0xC3: "lossless", 0xC5: "differential", 0xC9: "arithmetic codes", 0xCA: "arithmetic codes, progressive"}


def with_frame(encoded: np.ndarray, marker: int, bits: int) -> np.ndarray:
    """Return the file with another kind of frame."""
    data = bytearray(encoded.tobytes())
    frame = data.index(b"\xff\xc2")
    data[frame + 1], data[frame + 4] = marker, bits
    return np.frombuffer(bytes(data), np.uint8)


@pytest.mark.parametrize("marker", FRAMES)
def test_other_processes_are_left(marker: int) -> None:
    assert region_of(with_frame(jpeg(1), marker, 8), WINDOW) is None


def test_more_bits_are_refused_by_name() -> None:
    deep = with_frame(jpeg(1), 0xC2, 12)
    assert region_of(deep, WINDOW) is None
    found = outcome(deep)
    assert isinstance(found, str)
    assert "precision 12" in found
