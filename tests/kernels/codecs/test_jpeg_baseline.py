"""Regions decoded by Penstock's JPEG kernels equal the libraries' results bit for bit."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import simplejpeg
from PIL import Image, ImageFile

from penstock.kernels.codecs import image_codec
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import ImageError, read_header
from penstock.kernels.codecs.jpeg_baseline import decode_region
from penstock.kernels.cpu.jpeg.files import decode_files
from penstock.kernels.windows import Region
from penstock.serving.probing import made_up_image
from penstock.types import DALIImageType

RNG = np.random.default_rng(0)
CHANNELS = {DALIImageType.RGB: 3, DALIImageType.BGR: 3, DALIImageType.GRAY: 1}


def picture(height: int, width: int, noise: float) -> np.ndarray:
    """Return smooth colours with noise, uint8 (H, W, 3)."""
    coarse = RNG.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(smooth + RNG.normal(0, noise, smooth.shape), 0, 255).astype(np.uint8)


def jpeg(height: int = 75, width: int = 101, noise: float = 10, mode: str = "RGB", **options: Any) -> np.ndarray:
    buffer = io.BytesIO()
    image = Image.fromarray(picture(height, width, noise)).convert(mode)
    largest, ImageFile.MAXBLOCK = ImageFile.MAXBLOCK, 1 << 20  # Pillow's default is too small for noisy small images
    try:
        image.save(buffer, "JPEG", **options)
    finally:
        ImageFile.MAXBLOCK = largest
    return np.frombuffer(buffer.getvalue(), np.uint8)


def jpeg_sampled(factors: int, height: int, width: int) -> np.ndarray:
    return cv2.imencode(".jpg", picture(height, width, 10), [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factors])[1].reshape(-1)


def region_of(encoded: np.ndarray, region: Region, kind: DALIImageType = DALIImageType.RGB) -> np.ndarray | None:
    output = np.full((*region.extents, CHANNELS[kind]), 77, np.uint8)
    encoded = np.frombuffer(encoded.tobytes(), np.uint8)
    taken = decode_region(encoded, read_header(encoded), region, output, kind == DALIImageType.BGR)
    return output if taken else None


def region_of_whole(encoded: np.ndarray, region: Region, kind: DALIImageType = DALIImageType.RGB) -> np.ndarray:
    header = read_header(encoded)
    output = np.empty(header.shape(kind, False), np.uint8)
    decode(encoded, header, output, kind, adjust_orientation=False)
    return output[region.overlap(output.shape)[0]]


def regions(height: int, width: int) -> list[Region]:
    """Return the whole image, regions that end at edges of the image or of units, and other regions."""
    some = [Region((0, 0), (height, width)), Region((16, 16), (16, 32)), Region((15, 17), (1, 33))]
    for _ in range(5):
        rows, columns = int(RNG.integers(1, height + 1)), int(RNG.integers(32, width + 1))
        top, left = int(RNG.integers(0, height - rows + 1)), int(RNG.integers(0, width - columns + 1))
        some.append(Region((top, left), (rows, columns)))
    return some


SUBSAMPLINGS = range(3)
QUALITIES = (1, 30, 75, 95, 100)


@pytest.mark.parametrize("kind", CHANNELS)
@pytest.mark.parametrize(("subsampling", "quality"), [*itertools.product(SUBSAMPLINGS, QUALITIES)])
def test_colours(kind: DALIImageType, subsampling: int, quality: int) -> None:
    height, width = int(RNG.integers(35, 90)), int(RNG.integers(60, 130))
    encoded = jpeg(height, width, noise=quality / 3, subsampling=subsampling, quality=quality)
    for region in regions(height, width):
        np.testing.assert_array_equal(region_of(encoded, region, kind), region_of_whole(encoded, region, kind))


@pytest.mark.parametrize(
    "options",
    [
        {"restart_marker_blocks": 1},
        {"restart_marker_blocks": 9, "subsampling": 0},
        {"restart_marker_rows": 1},
        {"optimize": True},
        {"optimize": True, "quality": 100, "noise": 80},
        {"noise": 0, "quality": 5},
        {"comment": b"\xff\xda" * 10},
    ],
)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_ways_of_coding(options: dict[str, Any], mode: str) -> None:
    encoded = jpeg(mode=mode, **options)
    kind = DALIImageType.RGB if mode == "RGB" else DALIImageType.GRAY
    for region in regions(75, 101):
        np.testing.assert_array_equal(region_of(encoded, region, kind), region_of_whole(encoded, region, kind))


@pytest.mark.parametrize("size", [(1, 32), (8, 33), (9, 47), (16, 48), (17, 49), (33, 64)])
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_sizes_at_the_edges_of_units(size: tuple[int, int], subsampling: int) -> None:
    encoded, region = jpeg(*size, subsampling=subsampling), Region((0, 0), size)
    np.testing.assert_array_equal(region_of(encoded, region), region_of_whole(encoded, region))


def test_images_one_after_the_other_share_memory_and_nothing_else() -> None:
    images = [jpeg(200, 300), jpeg(40, 50, mode="L"), jpeg(60, 400, subsampling=0), jpeg(210, 310)]
    for encoded in images * 2:
        header = read_header(encoded)
        kind = DALIImageType.GRAY if header.channels == 1 else DALIImageType.RGB
        region = Region((3, 5), (header.height - 3, header.width - 5))
        np.testing.assert_array_equal(region_of(encoded, region, kind), region_of_whole(encoded, region, kind))


WINDOW = Region((10, 20), (30, 40))


def test_kernels_are_compiled_once_whether_files_can_be_written_or_not() -> None:
    encoded = jpeg()
    output = np.empty((*WINDOW.extents, 3), np.uint8)
    decode(encoded, read_header(encoded), output, region=WINDOW)
    known = list(decode_files.signatures)
    writable = encoded.copy()
    decode(writable, read_header(writable), output, region=WINDOW)
    assert decode_files.signatures == known


def test_what_a_served_pipeline_is_tried_with_is_decoded_by_kernels() -> None:
    for scale in (1, 2):
        encoded = np.frombuffer(made_up_image("JPEG", scale), np.uint8)
        np.testing.assert_array_equal(region_of(encoded, WINDOW), np.full((30, 40, 3), 128))


@pytest.mark.parametrize(
    "options",
    [{"mode": "CMYK"}, {"keep_rgb": True, "subsampling": 0}],
    ids=["inks", "stored as RGB"],
)
def test_other_colours_are_left(options: dict[str, Any]) -> None:
    assert region_of(jpeg(**options), WINDOW) is None


@pytest.mark.parametrize("factors", [cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440])
@pytest.mark.parametrize("kind", CHANNELS)
def test_other_samplings(kind: DALIImageType, factors: int) -> None:
    for height, width in ((75, 101), (33, 64), (34, 65), (47, 50)):
        encoded = jpeg_sampled(factors, height, width)
        for region in regions(height, width):
            np.testing.assert_array_equal(region_of(encoded, region, kind), region_of_whole(encoded, region, kind))


@pytest.mark.parametrize("kind", [DALIImageType.RGB, DALIImageType.BGR])
@pytest.mark.parametrize("quality", [30, 95])
def test_grey_as_colours(kind: DALIImageType, quality: int) -> None:
    encoded = jpeg(mode="L", quality=quality)
    for region in regions(75, 101):
        np.testing.assert_array_equal(region_of(encoded, region, kind), region_of_whole(encoded, region, kind))


def test_narrow_regions_and_images_are_left() -> None:
    assert region_of(jpeg(), Region((10, 20), (30, 31))) is None
    assert region_of(jpeg(20, 5), Region((0, 0), (20, 5))) is None


def test_what_is_cut_short_is_left() -> None:
    encoded = jpeg()
    assert region_of(encoded, WINDOW) is not None
    for end in (-1, -2, -100):
        assert region_of(encoded[:end], WINDOW) is None


def changed(encoded: np.ndarray, place: int, value: int) -> np.ndarray:
    data = encoded.copy()
    data[place] = value
    return data


def segment(encoded: np.ndarray, marker: int) -> int:
    """Return the offset of the body of the first segment with a marker."""
    return encoded.tobytes().index(bytes((0xFF, marker))) + 4


def test_headers_that_no_baseline_image_has_are_left() -> None:
    encoded = jpeg(restart_marker_blocks=5)
    frame, tables, quantizers, scan = (segment(encoded, marker) for marker in (0xC0, 0xC4, 0xDB, 0xDA))
    broken = {
        "12 bits": (frame, 12),
        "factors": (frame + 7, 0x44),
        "a quantizer of 16 bits": (quantizers, 0x10),
        "number of a table": (tables, 7),
        "more codes than there are": (tables + 1, 3),
        "no code of all ones": (tables + 1, 2),
        "more symbols than the segment has": (tables + 16, 250),
        "a DC value of 12 bits": (tables + 17, 12),
        "another component": (scan + 1, 9),
        "a table that is not there": (scan + 2, 0x33),
        "a part of the spectrum": (scan + 8, 5),
        "another interval": (segment(encoded, 0xDD) + 1, 6),
        "a marker that nobody knows": (segment(encoded, 0xDD) - 3, 0x67),
    }
    assert region_of(encoded, WINDOW) is not None
    for name, (place, value) in broken.items():
        assert region_of(changed(encoded, place, value), WINDOW) is None, name


def test_restarts_out_of_order_are_left() -> None:
    encoded = jpeg(restart_marker_blocks=5)
    assert region_of(changed(encoded, segment(encoded, 0xD1) - 3, 0xD2), WINDOW) is None


def test_a_table_of_more_codes_than_an_image_may_have_is_left() -> None:
    encoded = jpeg().tobytes()
    tables = encoded.index(b"\xff\xc4")
    lengths = bytes((0,) * 8 + (255,) * 2 + (0,) * 6)
    body = b"\x00" + lengths + bytes(510)
    added = b"\xff\xc4" + (len(body) + 2).to_bytes(2, "big") + body
    assert region_of(np.frombuffer(encoded[:tables] + added + encoded[tables:], np.uint8), WINDOW) is None


def test_numbers_that_overflow_are_left() -> None:
    """For such files, decoders that add in 16 bits differ from those that do not."""
    encoded = jpeg(noise=100, quality=100, subsampling=0)
    quantizers = segment(encoded, 0xDB) + 1
    loud = encoded.copy()
    loud[quantizers : quantizers + 64] = 255
    assert region_of(loud, WINDOW) is None


@pytest.mark.parametrize("seed", range(8))
def test_damage_shows_as_in_the_whole_or_is_left(seed: int) -> None:
    rng = np.random.default_rng(seed)
    taken = 0
    for trial in range(60):
        intact = jpeg(48, 80, subsampling=trial % 3, quality=80, restart_marker_blocks=4 * (trial % 2))
        encoded = intact.copy()
        places = rng.integers(0 if trial % 4 == 0 else segment(intact, 0xDA), encoded.size, rng.integers(1, 4))
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
            np.testing.assert_array_equal(pixels, region_of_whole(encoded, WINDOW))
    assert taken


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_large_files_are_decoded_whole(subsampling: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = jpeg(411, 630, noise=40, mode=mode, subsampling=subsampling, quality=95)
    assert encoded.size > 1 << 15
    with Image.open(io.BytesIO(encoded.tobytes())) as image:
        expected = np.asarray(image).reshape(411, 630, -1)
    output = np.empty_like(expected)
    kind = DALIImageType.RGB if mode == "RGB" else DALIImageType.GRAY
    # With simplejpeg disabled, only the kernels can have decoded the file.
    monkeypatch.setattr(image_codec, "_decode_with_simplejpeg", None)
    decode(encoded, read_header(encoded), output, kind)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("sampling", ["411", "420", "422", "440", "444"])
def test_chroma_may_be_repeated(sampling: str, progressive: bool) -> None:
    factors = getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{sampling}")
    for height, width in ((75, 101), (64, 96), (33, 127)):
        options = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factors, cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)]
        encoded = cv2.imencode(".jpg", picture(height, width, 10), options)[1].reshape(-1)
        expected = simplejpeg.decode_jpeg(encoded.tobytes(), "RGB", fastdct=False, fastupsample=True)
        for region in regions(height, width):
            output = np.empty((*region.extents, 3), np.uint8)
            assert decode_region(encoded, read_header(encoded), region, output, False, smooth=False)
            np.testing.assert_array_equal(output, expected[region.overlap(expected.shape)[0]])


def test_damaged_files_are_left_to_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = jpeg(411, 630, noise=40, quality=95)
    damaged = encoded.copy()
    damaged[len(damaged) // 2 :] = 0
    outputs = []
    for tries in (image_codec.decode_region, lambda *_, **_named: False):
        monkeypatch.setattr(image_codec, "decode_region", tries)
        output = np.empty((411, 630, 3), np.uint8)
        try:
            decode(damaged, read_header(encoded), output)
        except ImageError as error:
            outputs.append(str(error).encode())
        else:
            outputs.append(output.tobytes())
    assert outputs[0] == outputs[1]


# This processor, one with AVX2, and one with neither that nor AVX-512.
MACHINES = {
    "this": {},
    "avx2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"},
    "generic": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}
DECODE_AND_RESIZE = """
import io, sys
import numpy as np
from PIL import Image
from penstock import fn, pipeline_def, types

file = np.fromfile(sys.argv[1], np.uint8)

@pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
def define():
    files = fn.external_source(name="files")
    images = fn.decoders.image(files, device="cpu")
    reduced = [fn.decoders.image(files, device="cpu", scale=scale) for scale in ("1/2", "1/4", "1/8")]
    return images, fn.resize(images, size=[97, 131], reference="torchvision"), *reduced

np.savez(sys.argv[2], *(np.array(output[0]) for output in define().run(files=[file])))
"""


@pytest.mark.every_case
@pytest.mark.timeout(900)
def test_machines_with_fewer_instructions_give_the_same(tmp_path: Path) -> None:
    jpeg(411, 630, noise=40, quality=95).tofile(tmp_path / "file")
    results = []
    for name, machine in MACHINES.items():
        kept = tmp_path / f"{name}.npz"
        environment = os.environ | machine | {"NUMBA_CACHE_DIR": str(tmp_path / name)} if machine else os.environ
        command = [sys.executable, "-c", DECODE_AND_RESIZE, str(tmp_path / "file"), str(kept)]
        subprocess.run(command, env=environment, check=True)
        with np.load(kept) as held:
            results.append([held[key] for key in held])
    for same in zip(*results):
        for other in same[1:]:
            np.testing.assert_array_equal(same[0], other)
