"""The GPU reads the codes of JPEGs like the CPU: it gets the same coefficients, and finds the same files damaged."""

from __future__ import annotations

import ctypes
import io
import mmap
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import pytest
from jpeg_coefficients import read_coefficients
from jpeg_kernels import read_codes
from jpeg_reading import Damaged, read_jpeg
from PIL import Image, ImageFile

from penstock.kernels.cpu.jpeg.batches import OWN_SUBSEQUENCES, JpegScans, ScansBeingRead, gather_share, gathering
from penstock.kernels.cuda import jpeg_codes, sources
from penstock.kernels.cuda.jpeg_codes import DAMAGED, LATE, NOT_TAKEN, UNSAFE
from penstock.kernels.cuda.launch import scratch
from penstock.kernels.cuda.structs import layout_of

RNG = np.random.default_rng(7)
FULL, HALVED = {"subsampling": 0}, {"subsampling": 2}
SAMPLINGS = {
    "4:4:4": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    "4:2:2": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "4:2:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "4:4:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "4:1:1": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
}


def noise(height: int, width: int) -> np.ndarray:
    return RNG.integers(0, 256, (height, width, 3), np.uint8)


def picture(height: int, width: int) -> np.ndarray:
    """Return a picture with smooth colours and a little noise."""
    coarse = RNG.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(smooth + RNG.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)


def encoded(pixels: np.ndarray, **settings: Any) -> np.ndarray:
    held = io.BytesIO()
    largest, ImageFile.MAXBLOCK = ImageFile.MAXBLOCK, 1 << 22  # Pillow's default is too small for noisy small images
    try:
        Image.fromarray(pixels).save(held, "JPEG", **settings)
    finally:
        ImageFile.MAXBLOCK = largest
    return np.frombuffer(held.getvalue(), np.uint8)


def gathered(
    scans: JpegScans, places: np.ndarray, sizes: np.ndarray, order: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Gather files in pinned memory in the given order, some of them after others; return this memory, and the numbers of restart
    intervals.
    """
    pinned, states = np.full(scans.size + 64, 0xAB, np.uint8), np.full(len(places), NOT_TAKEN, np.int32)
    pinned = pinned[-pinned.ctypes.data % 64 :][: scans.size]
    rows = np.flatnonzero(scans.taken)
    expected, turns = numbers = np.full((2, len(rows)), -1, np.int32)
    given = scans.take(rows), places[rows], sizes[rows], pinned.ctypes.data, numbers
    place, kept = gathering(*given, NOT_TAKEN, len(rows))
    assert (expected == NOT_TAKEN).all()
    assert not turns.any()
    gather = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64)(gather_share.address)
    for index in order:
        if index < len(rows):
            gather(place, index)
    assert kept
    states[rows] = expected
    return pinned, states


def prepared(files: Sequence[np.ndarray]) -> tuple[JpegScans, np.ndarray, np.ndarray]:
    places = np.array([file.ctypes.data for file in files], np.int64)
    sizes = np.array([file.size for file in files], np.int64)
    scans = ScansBeingRead(places, sizes).wait()
    pinned, states = gathered(scans, places, sizes, range(len(files)))
    return scans, pinned, states


def read(files: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Read files on the GPU; return the states (0: no error) and the coefficients of the files."""
    scans, pinned, expected = prepared(files)
    (data,) = scratch([(pinned.size,)], np.uint8)
    data.array()[:] = pinned
    targets = scratch([(blocks, 64) for blocks in (scans.columns.blocks * scans.taken).tolist()], np.int16)
    status = read_codes(scans, data, np.array([target.address for target in targets], np.uint64), expected)
    return status.array().get(), [target.array().get() for target in targets]


def check(files: Sequence[np.ndarray]) -> None:
    """Assert that all files are read without errors, and have the same coefficients as from `read_jpeg`."""
    status, found = read(files)
    np.testing.assert_array_equal(status, 0)
    for file, coefficients in zip(files, found, strict=True):
        np.testing.assert_array_equal(coefficients, read_jpeg(file)[0])


def test_files_whose_bits_are_too_many_for_32_bits_are_not_taken() -> None:
    file = encoded(picture(40, 50))
    memory = mmap.mmap(-1, 1 << 27)  # most pages are never touched, so they take no memory
    memory[: file.size] = file.tobytes()
    places = np.full(2, np.frombuffer(memory, np.uint8).ctypes.data, np.int64)
    scans = ScansBeingRead(places, np.array([(1 << 27) - 1, 1 << 27], np.int64), keep=memory).wait()
    assert scans.taken.tolist() == [True, False]


# -- undamaged files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quality", [1, 20, 50, 75, 90, 97, 100])
def test_qualities(quality: int) -> None:
    images = picture(83, 121), noise(40, 50)
    check([encoded(image, quality=quality, optimize=k) for image in images for k in (False, True)])


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_samplings(sampling: str) -> None:
    settings = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLINGS[sampling]]
    files = []
    for more in ([], [cv2.IMWRITE_JPEG_OPTIMIZE, 1], [cv2.IMWRITE_JPEG_RST_INTERVAL, 3]):
        files.append(cv2.imencode(".jpg", picture(75, 101), settings + more)[1].reshape(-1))
    check(files)


def test_units_of_four_rows() -> None:
    """No encoder makes such units, but files with halved chroma have the same number of blocks in a unit."""
    file = encoded(picture(64, 96), **HALVED).copy()
    frame = file.tobytes().index(b"\xff\xc0")
    file[frame + 5 : frame + 9] = 0, 128, 0, 48
    file[frame + 11] = 0x14
    check([file])


def test_grey() -> None:
    images = picture(75, 101)[..., 0], noise(48, 64)[..., 0]
    check([encoded(image, restart_marker_blocks=k) for image in images for k in (0, 5)])


@pytest.mark.parametrize("blocks", [1, 2, 7, 8, 1000])
def test_restarts(blocks: int) -> None:
    files = [encoded(picture(60, 90), restart_marker_blocks=blocks, **own) for own in (FULL, HALVED)]
    check([*files, encoded(picture(60, 90), restart_marker_rows=1)])


def test_sizes() -> None:
    sizes = (1, 1), (1, 9), (8, 8), (9, 1), (15, 17), (16, 16), (17, 33), (3, 200), (200, 3)
    check([encoded(noise(*size), **own) for size in sizes for own in (FULL, HALVED)])


def test_images_of_one_colour() -> None:
    """All blocks are equal, so that only few codes reveal where a block begins."""
    colours = np.array([[0, 0, 0], [255, 255, 255], [130, 10, 77]], np.uint8)
    files = []
    for colour in colours:
        pixels = np.broadcast_to(colour, (256, 384, 3))
        files += [encoded(pixels, **FULL), encoded(pixels, **HALVED), encoded(np.ascontiguousarray(pixels[..., 0]))]
    check(files)


def test_files_of_many_blocks_of_threads() -> None:
    whole = picture(900, 700)
    whole[200:500] = 255
    files = [
        encoded(whole, quality=93),
        encoded(whole, quality=93, restart_marker_rows=3),
        encoded(whole[..., 0], quality=99),
    ]
    assert min(file.size for file in files) > 60_000
    status, found = read(files)
    np.testing.assert_array_equal(status, 0)
    for file, coefficients in zip(files[:2], found):
        np.testing.assert_array_equal(coefficients, read_coefficients(file))
    np.testing.assert_array_equal(found[2], read_jpeg(files[2])[0])


def test_noise_whose_units_are_long() -> None:
    """With such units, a thread takes a long time to find where a code begins."""
    file = encoded(noise(400, 400), quality=100)
    assert prepared([file])[0].columns.subsequences[0] > 10 * OWN_SUBSEQUENCES
    status, found = read([file])
    np.testing.assert_array_equal(status, 0)
    np.testing.assert_array_equal(found[0], read_coefficients(file))


def test_blocks_of_threads_that_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all units are equal, threads cannot find by themselves where a unit begins."""
    file, other = encoded(np.full((2000, 2400, 3), (10, 100, 250), np.uint8), **HALVED), encoded(noise(8, 8))
    assert prepared([file])[0].columns.subsequences[0] > 2 * OWN_SUBSEQUENCES
    status, found = read([file, other])
    np.testing.assert_array_equal(status, 0)
    np.testing.assert_array_equal(found[0], read_coefficients(file))
    # Check that threads depend on each other in this file: if they must not wait, the kernel reports the file as late.
    monkeypatch.setitem(jpeg_codes.SOURCE._constants, "MOST_LATE", 0)
    sources._kernel_on.cache_clear()
    status, _ = read([file, other])
    assert status[0] & LATE
    assert not status[1]


def test_batches_of_mixed_files() -> None:
    files = [encoded(noise(24, 24)), encoded(picture(90, 40), progressive=True), encoded(picture(60, 61), **FULL)]
    files += [
        encoded(picture(33, 34)[..., 0]),
        np.zeros(100, np.uint8),
        encoded(picture(300, 200), restart_marker_blocks=9),
    ]
    status, found = read(files)
    assert (status == [0, NOT_TAKEN, 0, 0, NOT_TAKEN, 0]).all()
    for index in np.flatnonzero(status == 0):
        np.testing.assert_array_equal(found[index], read_jpeg(files[index])[0])


def test_no_file_that_is_taken() -> None:
    assert read([np.zeros(0, np.uint8), np.zeros(3, np.uint8)])[0].tolist() == [NOT_TAKEN, NOT_TAKEN]


def test_what_follows_the_image_does_not_matter() -> None:
    file = encoded(noise(40, 40))
    check([np.concatenate([file, RNG.integers(0, 256, 5000, np.uint8)])])


def test_bytes_that_fill_up_before_markers() -> None:
    data = encoded(noise(40, 40), restart_marker_blocks=2).tobytes()
    start = data.index(b"\xff\xda")
    filled = data[start:].replace(b"\xff\xd0", b"\xff\xff\xff\xd0").replace(b"\xff\xd9", b"\xff\xff\xd9")
    check([np.frombuffer(data[:start] + filled, np.uint8)])


def test_stuffing_anywhere() -> None:
    """Byte stuffing occurs also at the beginnings and ends of words and subsequences."""
    white, black = np.uint8(255), np.uint8(0)
    images = [np.where(noise(40, 40) > 127, white, black) for _ in range(6)]
    files = [encoded(image, quality=100) for image in images]
    assert all(file.tobytes().count(b"\xff\0") > 20 for file in files)
    check(files)


def test_images_are_gathered_one_by_one() -> None:
    files = [encoded(picture(50 + k, 60), restart_marker_blocks=k) for k in range(4)]
    places, sizes = (np.array(column, np.int64) for column in zip(*((f.ctypes.data, f.size) for f in files)))
    scans, pinned, expected = prepared(files)
    again, counts = gathered(scans, places, sizes, (2, 0, 3, 1))
    np.testing.assert_array_equal(pinned, again)
    np.testing.assert_array_equal(expected, counts)
    np.testing.assert_array_equal(counts, scans.columns.intervals)


def test_shared_memory_is_no_more_than_small_gpus_have() -> None:
    assert layout_of(jpeg_codes._Shared).dtype.itemsize <= 65536 - 256


# -- other files -------------------------------------------------------------------------------------------------------


def test_components_with_the_same_codes_are_left() -> None:
    file = encoded(noise(40, 40), **FULL).copy()
    scan = file.tobytes().index(b"\xff\xda")
    file[[scan + 8, scan + 10]] = 0
    assert read([file])[0].tolist() == [NOT_TAKEN]


def test_pixels_that_decoders_differ_about_are_left() -> None:
    black_and_white = np.where(RNG.integers(0, 2, (48, 64, 1)) > 0, np.uint8(255), np.uint8(0)).repeat(3, 2)
    file = encoded(black_and_white, quality=100).copy()
    tables = [k for k in range(file.size - 1) if file[k] == 0xFF and file[k + 1] == 0xDB]
    assert read_coefficients(file) is not None
    assert read([file])[0].tolist() == [0]
    for place in tables:
        length = int(file[place + 2]) << 8 | int(file[place + 3])
        for start in range(place + 4, place + 2 + length, 65):
            file[start + 1 : start + 65] = 40
    status, _ = read([file])
    assert read_coefficients(file) is None
    assert status[0] & UNSAFE
    assert not status[0] & DAMAGED


@pytest.mark.parametrize("settings", [FULL, HALVED, {"restart_marker_blocks": 3}])
def test_files_that_end_early(settings: dict[str, Any]) -> None:
    file = encoded(picture(64, 64), **settings)
    start = file.tobytes().index(b"\xff\xda") + 14
    shorter = [file[:size] for size in range(start, file.size - 2, 37)]
    with_end = [np.concatenate([part, np.array([0xFF, 0xD9], np.uint8)]) for part in shorter]
    status, _ = read([*shorter, *with_end])
    assert status.all()
    assert (status[: len(shorter)] == NOT_TAKEN).all()


def test_files_with_other_restarts() -> None:
    file = encoded(picture(64, 64), restart_marker_blocks=3)
    data = file.tobytes()
    fewer = data.replace(b"\xff\xd2", b"")
    swapped = data.replace(b"\xff\xd1", b"\xff\xd7")
    another = bytearray(data)
    another[data.index(b"\xff\xdd") + 5] = 4
    assert read([np.frombuffer(bytes(other), np.uint8) for other in (fewer, swapped, another)])[0].all()


def mutated(file: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the file with a few bits flipped, or with bytes replaced, removed or inserted, in the scan."""
    data = bytearray(file.tobytes())
    start = data.index(b"\xff\xda") + 14
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(start, len(data)))
        kind = rng.integers(4)
        if kind == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[place] = int(rng.integers(256))
        elif kind == 2:
            del data[place : place + int(rng.integers(1, 9))]
        else:
            data[place:place] = rng.bytes(int(rng.integers(1, 9)))
    return np.frombuffer(bytes(data), np.uint8)


def fuzz(rng: np.random.Generator, count: int) -> tuple[int, int]:
    """Damage files, and check that the GPU accepts the same files as the CPU; return the numbers of accepted and rejected
    files.
    """
    kinds = {"quality": 30}, {"quality": 95}, {"optimize": True}, {"restart_marker_blocks": 2}, {"quality": 2}
    whole = [encoded(make(33, 47), **HALVED, **kind) for make in (picture, noise) for kind in kinds]
    files = [mutated(whole[k % len(whole)], rng) for k in range(count)]
    status, found = read(files)
    taken = 0
    for file, own, coefficients in zip(files, status, found, strict=True):
        expected = read_coefficients(file)
        assert (expected is not None) == (own == 0)
        if expected is not None:
            np.testing.assert_array_equal(coefficients, expected)
            taken += 1
    return taken, count - taken


def test_damaged_files() -> None:
    taken, others = fuzz(np.random.default_rng(1), 300)
    assert taken > 10
    assert others > 100


def test_damaged_files_of_other_samplings() -> None:
    rng = np.random.default_rng(2)
    whole = [
        encoded(picture(20, 30), **FULL),
        encoded(picture(20, 30)[..., 0]),
        encoded(picture(20, 30), subsampling=1),
    ]
    files = [mutated(file, rng) for file in whole for _ in range(40)]
    status, found = read(files)
    for file, own, coefficients in zip(files, status, found, strict=True):
        try:
            expected = read_jpeg(file)[0]
        except Damaged:
            assert own
        else:
            assert own == 0 or own & UNSAFE
            np.testing.assert_array_equal(coefficients, expected)
    assert (status == 0).any()
