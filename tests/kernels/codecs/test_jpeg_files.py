"""JPEG files decoded by a thread one after the other, with tables reused between files; and batches that threads share."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import OperatorError
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.jpeg_baseline import decode_region, decode_together
from penstock.kernels.cpu.jpeg.batches import ScansBeingRead
from penstock.kernels.cpu.jpeg.segments import ACROSS, HEIGHT
from penstock.kernels.windows import Region

RNG = np.random.default_rng(4)
TABLES = 0xC4


def whole_scale(files: Sequence[np.ndarray]) -> np.ndarray:
    """Return scales, all 1: the files are decoded with all their rows and columns."""
    return np.ones(len(files), np.int64)


def jpeg(height: int = 48, width: int = 64, mode: str = "RGB", kind: str = "JPEG", **options: Any) -> np.ndarray:
    coarse = RNG.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
    pixels = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def pixels_of(encoded: np.ndarray) -> np.ndarray | None:
    header = read_header(encoded)
    output = np.zeros((header.height, header.width, 3), np.uint8)
    whole = Region.whole((header.height, header.width))
    return output if decode_region(encoded, header, whole, output, False) else None


def on_a_new_thread(encoded: np.ndarray) -> np.ndarray | None:
    """Return the result for a file on a thread that has decoded no other."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(pixels_of, encoded).result()


def tables_of(encoded: np.ndarray) -> list[tuple[int, int]]:
    """Return, for each table, the offset of its code lengths and the end of its symbols."""
    found, data, place = [], encoded.tobytes(), 2
    while data[place + 1] != 0xDA:
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        start = place + 5
        while data[place + 1] == TABLES and start < end:
            behind = start + 16 + sum(data[start : start + 16])
            found.append((start, behind))
            start = behind + 1
        place = end
    return found


def altered(encoded: np.ndarray, alter: Callable[[np.ndarray, np.ndarray], None], table: int) -> np.ndarray:
    """Return the file with one of its tables altered; ``alter`` gets the lengths of the codes, and their symbols."""
    file = encoded.copy()
    start, end = tables_of(file)[table]
    alter(file[start : start + 16], file[start + 16 : end])
    return file


def swap_last_symbols(lengths: np.ndarray, symbols: np.ndarray) -> None:
    symbols[-2:] = symbols[:-3:-1].copy()


def swap_first_symbols(lengths: np.ndarray, symbols: np.ndarray) -> None:
    symbols[:2] = symbols[1::-1].copy()


def shorten_a_code(lengths: np.ndarray, symbols: np.ndarray) -> None:
    last = np.flatnonzero(lengths)[-1]
    lengths[last] -= 1
    lengths[last - 1] += 1


def overfill(lengths: np.ndarray, symbols: np.ndarray) -> None:
    lengths[lengths.argmax()] -= 2
    lengths[0] += 2


ALTERATIONS = [swap_last_symbols, swap_first_symbols, shorten_a_code]


def same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return (one is None) == (other is None) and (one is None or np.array_equal(one, other))


@pytest.mark.parametrize("alter", ALTERATIONS)
@pytest.mark.parametrize("table", range(4))
def test_files_whose_tables_differ_in_one_code(alter: Callable[..., None], table: int) -> None:
    file = jpeg()
    other = altered(file, alter, table)
    expected = [on_a_new_thread(each) for each in (file, other)]
    assert expected[0] is not None
    for number in (0, 1, 0, 0, 1):
        assert same(pixels_of((file, other)[number]), expected[number])


def test_some_of_the_altered_tables_make_other_pixels() -> None:
    """Otherwise, the tests above would pass even if the wrong table were used."""
    file = jpeg()
    others = [pixels_of(altered(file, alter, table)) for alter in ALTERATIONS for table in range(4)]
    assert sum(not same(other, pixels_of(file)) for other in others) > 4


@pytest.mark.parametrize("table", range(4))
def test_a_file_with_an_impossible_table_spoils_nothing(table: int) -> None:
    file = jpeg(optimize=True)
    bad = altered(jpeg(), overfill, table)
    expected = on_a_new_thread(file)
    for each in (bad, file, bad, bad, file):
        assert same(pixels_of(each), None if each is bad else expected)


def test_tables_of_their_own_in_turns_with_common_ones() -> None:
    files = [jpeg(optimize=True, quality=quality) for quality in (30, 95)] + [jpeg(), jpeg(subsampling=0)]
    for _ in range(2):
        for file in files:
            np.testing.assert_array_equal(pixels_of(file), cv2.imdecode(file, cv2.IMREAD_COLOR_RGB))


# -- batches -----------------------------------------------------------------------------------------------------------


def pipeline_of(work: Callable[[Any], Any], files: list[np.ndarray], threads: int = 2, **settings: Any) -> Pipeline:
    @pipeline_def(batch_size=len(files), num_threads=threads, prefetch_queue_depth=1, passes=[], **settings)
    def define() -> Any:
        return work(fn.external_source(lambda: files))

    pipeline = define()
    pipeline.build()
    return pipeline


def run(work: Callable[[Any], Any], files: list[np.ndarray], **settings: Any) -> list[np.ndarray]:
    pipeline = pipeline_of(work, files, **settings)
    images = [np.array(image) for image in pipeline.run()[0]]
    pipeline.close()
    return images


def turned(orientation: int) -> np.ndarray:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return jpeg(exif=exif.tobytes())


ORDINARY = [
    jpeg(),
    jpeg(200, 300, quality=95),
    jpeg(mode="L"),
    jpeg(optimize=True, subsampling=0),
    jpeg(progressive=True),
    jpeg(20, 31),
    jpeg(1, 1),
    turned(6),
    turned(3),
    np.concatenate([jpeg(), np.zeros(40, np.uint8)]),
]
OTHERS = [jpeg(mode="CMYK"), jpeg(kind="PNG")]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"output_type": types.GRAY},
        {"output_type": types.BGR},
        {"output_type": types.YCbCr},
        {"adjust_orientation": False},
        {"use_fast_idct": True},
    ],
)
@pytest.mark.parametrize("files", [ORDINARY, ORDINARY + OTHERS])
def test_batches_are_what_images_are_one_by_one(files: list[np.ndarray], arguments: dict[str, Any]) -> None:
    images = run(lambda data: fn.decoders.image(data, **arguments), files)
    for image, file in zip(images, files):
        np.testing.assert_array_equal(image, decoded(file, **arguments))


def decoded(file: np.ndarray, **arguments: Any) -> np.ndarray:
    """Decode a file by the libraries, to which small files are left."""
    kind, upright = arguments.get("output_type", types.RGB), arguments.get("adjust_orientation", True)
    header = read_header(file)
    output = np.empty(header.shape(kind, upright), np.uint8)
    decode(file, header, output, kind, upright, arguments.get("use_fast_idct", False))
    return output


@pytest.mark.parametrize("extents", [(40, 40), (7, 33), (7, 5)])
@pytest.mark.parametrize("kind", [types.RGB, types.GRAY])
def test_windows_of_batches(extents: tuple[int, int], kind: types.DALIImageType) -> None:
    files = [ORDINARY[number] for number in (0, 1, 2, 3, 4, 7, 8, 9)]
    window: dict[str, Any] = {"start": [5, 3], "shape": list(extents), "axis_names": "HW", "output_type": kind}
    parts = run(lambda data: fn.decoders.image_slice(data, **window), files)
    for part, file in zip(parts, files):
        whole = decoded(file, output_type=kind)
        np.testing.assert_array_equal(part, whole[5 : 5 + extents[0], 3 : 3 + extents[1]])


def test_each_file_is_decoded_by_one_of_the_threads() -> None:
    files = [jpeg(64, 64 + number) for number in range(24)]
    headers = np.array([[64, 64 + number] for number in range(24)], np.int64)
    outputs = [np.zeros((*size, 3), np.uint8) for size in headers]
    everything = np.hstack((np.zeros_like(headers), headers))
    targets = np.array([output.ctypes.data for output in outputs], np.int64)
    names, begun = set(), threading.Barrier(3)

    def parallel(task: Callable[[int], None], count: int) -> None:
        def work(number: int) -> None:
            begun.wait()
            names.add(threading.current_thread().name)
            task(number)

        with ThreadPoolExecutor(count) as threads:
            list(threads.map(work, range(count)))

    # One file is left out of the order, and one is of a kind that the kernels do not support.
    order, files[5] = np.delete(np.arange(24), 11), jpeg(64, 69, keep_rgb=True, subsampling=0)
    decoded = decode_together(
        EncodedFiles(files), headers, whole_scale(files), everything, order, targets, 3, False, True, 256, parallel, 3
    )
    assert np.flatnonzero(~decoded).tolist() == [5, 11]
    assert len(names) == 3
    for number, (output, file) in enumerate(zip(outputs, files)):
        expected = cv2.imdecode(file, cv2.IMREAD_COLOR_RGB) if decoded[number] else np.zeros_like(output)
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("damaged", [{1: 2}, {1: 2, 3: 100}])
def test_damaged_files_fail_alone(damaged: dict[int, int]) -> None:
    """Files are cut short within the scan, which is not noticed in the header, and within the header."""
    files = [file[: file.size // damaged.get(number, 1)] for number, file in enumerate(ORDINARY)]
    with pytest.raises(OperatorError, match="sample #"):
        run(fn.decoders.image, files)
    pipeline = pipeline_of(fn.decoders.image, files, on_error="skip")
    images = [np.array(image) for image in pipeline.run()[0]]
    assert sorted(sample.sample for sample in pipeline.skipped) == list(damaged)
    for image, number in zip(images, (number for number in range(len(files)) if number not in damaged)):
        np.testing.assert_array_equal(image, decoded(files[number]))


def test_images_beyond_the_limits_are_refused_before_they_are_decoded() -> None:
    with pytest.raises(OperatorError, match="max_bytes"):
        run(fn.decoders.image, ORDINARY, max_bytes=200 * 300 * 3 - 1)
    with pytest.raises(OperatorError, match="max_pixels"):
        run(fn.decoders.image, ORDINARY, max_pixels=200 * 300 - 1)
    assert len(run(fn.decoders.image, ORDINARY, max_bytes=200 * 300 * 3, max_pixels=200 * 300)) == len(ORDINARY)


@pytest.mark.parametrize("most", [0, 1, 3, 4])
def test_markers_of_scans_are_counted_wherever_they_are(most: int) -> None:
    """Markers are in the image, which has one, in a comment before it, and after its end."""
    scan = np.array([0xFF, 0xDA], np.uint8)
    comment = np.array([0xFF, 0xFE, 0, 4], np.uint8)
    file = jpeg(restart_marker_blocks=1)
    files = [file, np.concatenate([file[:2], comment, scan, file[2:], scan, scan])]
    headers, order = np.array([(48, 64)] * 2), np.arange(2)
    outputs = np.zeros((2, 48, 64, 3), np.uint8)
    targets = np.array([output.ctypes.data for output in outputs])
    everything = np.array([(0, 0, 48, 64)] * 2)
    decoded = decode_together(
        EncodedFiles(files),
        headers,
        whole_scale(files),
        everything,
        order,
        targets,
        3,
        False,
        True,
        most,
        lambda task, _: task(0),
        1,
    )
    assert decoded.tolist() == [most >= 1, most >= 4]


def test_each_file_of_a_batch_for_the_gpu_has_memory_of_its_own() -> None:
    files = [jpeg(8 * number, 64, subsampling=number % 3) for number in range(1, 7)]
    places = np.array([file.ctypes.data for file in files], np.int64)
    scans = ScansBeingRead(places, np.array([file.size for file in files], np.int64), keep=files).wait()
    assert scans.taken.all()
    assert scans.columns.numbers[:, HEIGHT].tolist() == [8 * number for number in range(1, 7)]
    assert scans.columns.components[:, 0, ACROSS].tolist() == [2, 2, 1, 2, 2, 1]


# -- parts of one image ----------------------------------------------------------------------------------------------


def decoded_on_threads(files: list[np.ndarray], threads: int) -> tuple[np.ndarray, list[np.ndarray], int]:
    """Decode RGB files together; return which of them are decoded, their pixels, and the number of threads used."""
    outputs = [np.zeros((*Image.open(io.BytesIO(file.tobytes())).size[::-1], 3), np.uint8) for file in files]
    shapes = np.array([output.shape[:2] for output in outputs], np.int64)
    regions = np.hstack((np.zeros_like(shapes), shapes))
    targets = np.array([output.ctypes.data for output in outputs], np.int64)
    asked = []

    def parallel(work: Callable[[int], None], count: int) -> None:
        asked.append(count)
        for number in range(count):
            work(number)

    order = np.arange(len(files))
    decoded = decode_together(
        EncodedFiles(files),
        shapes,
        whole_scale(files),
        regions,
        order,
        targets,
        3,
        False,
        True,
        256,
        parallel,
        num_threads=threads,
    )
    return decoded, outputs, asked[0]


@pytest.mark.parametrize("options", [{"restart_marker_rows": 1}, {"restart_marker_blocks": 7, "subsampling": 1}])
def test_restarts_let_threads_share_an_image(options: dict[str, Any]) -> None:
    file = jpeg(1500, 1400, quality=90, **options)
    decoded, (pixels,), threads = decoded_on_threads([file], 4)
    assert threads == 4
    assert decoded.tolist() == [True]
    np.testing.assert_array_equal(pixels, np.asarray(Image.open(io.BytesIO(file.tobytes()))))


def test_images_without_restarts_or_of_few_pixels_are_not_cut() -> None:
    for file in (jpeg(1500, 1400), jpeg(300, 400, restart_marker_rows=1), jpeg(1500, 1400, progressive=True)):
        decoded, (pixels,), threads = decoded_on_threads([file], 4)
        assert threads == 1
        assert decoded.tolist() == [True]
        np.testing.assert_array_equal(pixels, np.asarray(Image.open(io.BytesIO(file.tobytes()))))


def test_large_and_small_images_together() -> None:
    files = [jpeg(60, 80), jpeg(1500, 1400, restart_marker_rows=2), jpeg(60, 80, mode="L", restart_marker_rows=1)]
    decoded, images, threads = decoded_on_threads(files, 8)
    assert threads == 4
    assert decoded.tolist() == [True] * 3
    for file, pixels in zip(files, images, strict=True):
        np.testing.assert_array_equal(pixels, np.asarray(Image.open(io.BytesIO(file.tobytes())).convert("RGB")))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_damage_anywhere_leaves_the_whole_image(share: float) -> None:
    """Bytes are inserted before a restart, which only lenient decoders accept."""
    file = jpeg(1500, 1400, restart_marker_rows=1).tobytes()
    places = [place for place in range(len(file)) if file[place] == 0xFF and 0xD0 <= file[place + 1] <= 0xD7]
    place = places[int(share * len(places))]
    damaged = np.frombuffer(file[:place] + bytes(3) + file[place:], np.uint8)
    assert decoded_on_threads([np.frombuffer(file, np.uint8)], 4)[0].tolist() == [True]
    assert decoded_on_threads([damaged], 4)[0].tolist() == [False]
