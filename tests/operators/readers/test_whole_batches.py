"""Batches that are read at once have the same data as samples read one by one; files that cannot be read at once are read
one by one.
"""

from __future__ import annotations

import os
import struct
import tarfile
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest

from penstock import fn, pipeline_def, tfrecord, types
from penstock.operators.readers._block_reading import PathTable, read_ranges
from penstock.operators.readers._mapped_files import WINDOW, MappedFile, PieceCopier
from penstock.operators.readers._reader import Reader
from penstock.storage import ANYWHERE, Files
from penstock.tensors import HostPool

COUNT, BATCH = 23, 5


def batches_of(define: Callable[[], Any], runs: int = 6) -> list[list[Any]]:
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=3, exec_async=False, exec_pipelined=False)
    def definition() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipeline = definition()
    pipeline.build()
    return [
        [
            (np.array(sample), sample.dtype, sample.layout(), sample.source_info())
            for outputs in pipeline.run()
            for sample in outputs
        ]
        for _ in range(runs)
    ]


def assert_equal_both_ways(define: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, at_once: bool = True) -> None:
    read_one_by_one, kept = Reader._read_one_by_one, []
    monkeypatch.setattr(Reader, "_read_one_by_one", lambda self, *args: kept.append(1) or read_one_by_one(self, *args))
    whole = batches_of(define)
    assert bool(kept) != at_once
    for kind in (
        *Reader.__subclasses__(),
        *(kind for base in Reader.__subclasses__() for kind in base.__subclasses__()),
    ):
        if "read_batch" in vars(kind):
            monkeypatch.setattr(kind, "read_batch", Reader.read_batch)
    for first, second in zip(whole, batches_of(define), strict=True):
        for (array, *facts), (other, *others) in zip(first, second, strict=True):
            assert facts == others
            assert array.dtype == other.dtype
            np.testing.assert_array_equal(array, other)


def contents(number: int) -> bytes:
    return np.random.default_rng(number).integers(0, 256, number * 37 % 500, np.uint8).tobytes()


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{number} é.bin" for number in range(COUNT)]
    for number, path in enumerate(paths):
        path.write_bytes(contents(number))
    return list(map(str, paths))


@pytest.mark.parametrize("shuffle", [False, True])
def test_files(files: list[str], shuffle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equal_both_ways(lambda: fn.readers.file(files=files, random_shuffle=shuffle), monkeypatch)


def test_files_lie_in_one_piece(files: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def definition() -> Any:
        return tuple(fn.readers.file(files=files))

    read, labels = definition().run()
    assert read.elements.tobytes() == b"".join(map(contents, range(4)))
    assert labels.as_array().tolist() == [[0], [1], [2], [3]]


def test_files_that_change(files: list[str]) -> None:
    table, pool, indices = PathTable(files), HostPool(), np.arange(3)

    def read() -> list[bytes]:
        found = table.read(indices, pool)
        assert found is not None
        spans = zip(found.places.tolist(), found.sizes.tolist())
        return [found.block[start : start + size].tobytes() for start, size in spans]

    assert read() == read() == [contents(0), contents(1), contents(2)]
    for size in (100_000, 100, 0, 300):
        Path(files[1]).write_bytes(b"x" * size)
        assert read() == [contents(0), b"x" * size, contents(2)]


def test_alignment_of_files(files: list[str]) -> None:
    found = PathTable(files).read(np.array([3, 1, 7]), HostPool(), 64)
    assert found is not None
    assert not (found.places % 64).any()
    spans = zip(found.places.tolist(), found.sizes.tolist())
    assert [found.block[start : start + size].tobytes() for start, size in spans] == [
        contents(3),
        contents(1),
        contents(7),
    ]


def test_what_is_no_file(files: list[str], tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "missing")):
        assert PathTable([files[5], path]).read(np.arange(2), HostPool()) is None
    assert PathTable.of(ANYWHERE, ["s3://bucket/a", *files]) is None
    assert PathTable.of(ANYWHERE, ["a\0b"]) is None
    assert PathTable.of(Files([str(tmp_path)]), files) is None


def test_a_pipe_is_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    opened: list[int] = []
    writer = threading.Thread(target=lambda: opened.append(os.open(path, os.O_WRONLY)))
    writer.start()
    assert PathTable([str(path)]).read(np.arange(1), HostPool()) is None
    writer.join(5)
    os.close(opened[0])


# -- ranges --------------------------------------------------------------------------------------------------------


def test_ranges_of_files(tmp_path: Path) -> None:
    data = [np.random.default_rng(seed).integers(0, 256, 100_000, np.uint8).tobytes() for seed in range(3)]
    paths = [str(tmp_path / str(number)) for number in range(3)]
    for path, content in zip(paths, data):
        Path(path).write_bytes(content)
    rng = np.random.default_rng(0)
    for _ in range(50):
        numbers, starts = rng.integers(0, 3, 20), rng.integers(0, 90_000, 20)
        sizes = rng.choice([0, 1, 100, 10_000], 20)
        # Every third range is in the same file as the range before and follows it, some after a gap.
        for i in range(1, 20, 3):
            numbers[i], starts[i] = numbers[i - 1], min(starts[i - 1] + sizes[i - 1] + rng.choice([0, 7, 5000]), 90_000)
        found = read_ranges(ANYWHERE, paths, numbers, starts, sizes, HostPool())
        assert found is not None
        for number, start, place, size in zip(numbers, starts, found.places, sizes):
            assert found.block[place : place + size].tobytes() == data[number][start : start + size]


@pytest.mark.parametrize(
    ("start", "size"), [(0, 101), (101, 0), (-1, 5), (5, -1), (0, 1 << 50), (1 << 62, 1 << 62), (100, 1)]
)
def test_ranges_that_do_not_exist(start: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(100))
    spans = np.array([[0, start], [10, size]])
    assert read_ranges(ANYWHERE, [str(path)], np.zeros(2, np.int64), spans[0], spans[1], HostPool()) is None


# -- records -------------------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    low = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([part | 128 for part in low[:-1]] + low[-1:])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def strings(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def floats(*values: float) -> bytes:
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)) if values else b"")


def integers(*values: int) -> bytes:
    return field(3, field(1, b"".join(map(varint, values))) if values else b"")


def example(features: dict[bytes, bytes], extra: bytes = b"") -> bytes:
    entries = [field(1, field(1, name) + field(2, value)) for name, value in features.items()]
    message = field(1, b"".join(entries)) + extra
    return struct.pack("<QI", len(message), 0) + message + bytes(4)


WANTED = {
    "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
    "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    "pair": tfrecord.FixedLenFeature([1, 2], tfrecord.float32, 0.0),
    "any": tfrecord.VarLenFeature(tfrecord.int64, 0),
    "box": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
}


def usual(number: int) -> dict[bytes, bytes]:
    return {
        b"other": integers(5, 6),
        b"image": strings(contents(number), b"second"),
        b"label": integers(number - 3),
        b"text": strings(b"a", b"b"),
        b"pair": floats(number, -0.5),
        b"any": integers(*range(-1, number % 4)),
        b"box": floats(*range(number % 3)),
    }


def write_records(folder: Path, records: list[bytes]) -> tuple[str, str]:
    start, lines = 0, []
    for record in records:
        lines.append(f"{start} {len(record)}\n")
        start += len(record)
    path = folder / "a.tfrecord"
    path.write_bytes(b"".join(records))
    Path(f"{path}.idx").write_text("".join(lines))
    return str(path), f"{path}.idx"


def read_records(path: str, index: str, features: dict[str, Any] = WANTED) -> Any:
    return list(
        fn.readers.tfrecord(
            path=path, index_path=index, features=features, random_shuffle=True, initial_fill=4
        ).values()
    )


def test_tfrecords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, index = write_records(tmp_path, [example(usual(number)) for number in range(COUNT)])
    assert_equal_both_ways(lambda: read_records(path, index), monkeypatch)


@pytest.mark.parametrize(
    "special",
    [
        {b"label": b""},
        {b"label": field(3, b"")},
        {b"label": field(3, varint(1 << 3) + varint(300))},
        {b"pair": floats(1)},
        {b"pair": field(2, varint(1 << 3 | 5) + struct.pack("<f", 3) + varint(1 << 3 | 5) + struct.pack("<f", 4))},
        {b"image": strings()},
        {b"n\xc3\xa9": integers(1)},
    ],
)
def test_unusual_tfrecords(special: dict[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [example(usual(number) | (special if number == 7 else {})) for number in range(COUNT)]
    path, index = write_records(tmp_path, examples)
    assert_equal_both_ways(lambda: read_records(path, index), monkeypatch, at_once=False)


def test_fields_that_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [example(usual(number), field(9, b"extension")) for number in range(COUNT)]
    path, index = write_records(tmp_path, examples)
    assert_equal_both_ways(lambda: read_records(path, index), monkeypatch, at_once=False)


def test_kernels_take_no_damaged_record(tmp_path: Path) -> None:
    from penstock.operators.readers._records_cpu import find_features, find_images, take_datum

    names = np.frombuffer(b"imagelabel", np.uint8)
    whole, rng = np.frombuffer(example(usual(9)), np.uint8), np.random.default_rng(0)
    found, place, size = np.empty((1, 2, 4), np.int64), np.zeros(1, np.int64), np.empty(1, np.int64)
    accepted = 0
    for _ in range(5000):
        data = whole.copy()
        data[rng.integers(0, data.size, rng.integers(1, 4))] = rng.integers(0, 256, 1, np.uint8)
        size[0] = rng.integers(0, data.size + 1) if rng.random() < 0.3 else data.size
        # The bytes after the record must not be read.
        block = np.concatenate([data[: size[0]], np.full(16, 0x0A, np.uint8)])
        if find_features(block, place, size, names, np.array([5, 10]), found):
            accepted += 1
            for _, start, length, _ in found[0][found[0, :, 0] >= 0]:
                assert 0 <= start <= start + length <= size[0]
        images, labels = np.empty((2, 2, 1), np.int64)
        if find_images(block, place, size, images, labels):
            assert images.sum() <= size[0]
        target = np.empty(data.size, np.uint8)
        assert take_datum(data, target, 0)[0] <= data.size
    assert accepted


def recordio(number: int, labels: int) -> bytes:
    listed = np.arange(labels, dtype="<f4").tobytes()
    body = struct.pack("<IfQQ", labels, number, number, 0) + listed + contents(number)
    return struct.pack("<II", 0xCED7230A, len(body)) + body + bytes(-len(body) % 4)


@pytest.mark.parametrize("labels", [[0], [0, 1, 5]])
def test_recordio(labels: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, lines, records = 0, [], [recordio(number, labels[number % len(labels)]) for number in range(COUNT)]
    for number, record in enumerate(records):
        lines.append(f"{number}\t{start}\n")
        start += len(record)
    (tmp_path / "a.rec").write_bytes(b"".join(records))
    (tmp_path / "a.idx").write_text("".join(lines))
    paths = {"path": str(tmp_path / "a.rec"), "index_path": str(tmp_path / "a.idx")}
    assert_equal_both_ways(lambda: fn.readers.mxnet(**paths, random_shuffle=True), monkeypatch)


@pytest.mark.parametrize("labelled", [True, False])
def test_lmdb(labelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lmdb.open(str(tmp_path), map_size=1 << 26) as database, database.begin(write=True) as transaction:
        for number in range(COUNT):
            sides = varint(1 << 3) + varint(3) + varint(2 << 3) + varint(number)
            label = varint(5 << 3) + varint(number * 1000 - 5000) if labelled or number % 7 else b""
            transaction.put(f"{number:03}".encode(), sides + field(4, contents(number)) + label)
    assert_equal_both_ways(lambda: fn.readers.caffe(path=str(tmp_path), random_shuffle=True), monkeypatch, labelled)


# -- archives ------------------------------------------------------------------------------------------------------


def write_archive(path: Path, samples: range, between: int = 0) -> str:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in samples:
            parts = {"bin": contents(number), "num": np.arange(number, dtype=np.int32).tobytes()}
            if number % 6 == 5:
                del parts["bin"]
            for extension, data in {**parts, "txt": bytes(between), "cls": b"%d" % number}.items():
                member = tarfile.TarInfo(f"{number:03}.{extension}")
                member.size = len(data)
                archive.addfile(member, BytesIO(data))
    return str(path)


@pytest.mark.parametrize(("between", "at_once"), [(10, True), (3000, True), (100_000, False)])
def test_archives(between: int, at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [
        write_archive(tmp_path / "a.tar", range(9), between),
        write_archive(tmp_path / "b.tar", range(9, COUNT), between),
    ]
    assert_equal_both_ways(
        lambda: fn.readers.webdataset(
            paths=paths,
            ext=["cls", "bin;jpg", "num"],
            dtypes=[types.UINT8, types.UINT8, types.INT32],
            random_shuffle=True,
            initial_fill=6,
        ),
        monkeypatch,
        at_once,
    )


# -- arrays --------------------------------------------------------------------------------------------------------


def write_arrays(folder: Path, make: Callable[[int], np.ndarray]) -> list[str]:
    paths = [str(folder / f"{number}.npy") for number in range(COUNT)]
    for number, path in enumerate(paths):
        np.save(path, make(number))
    return paths


@pytest.mark.parametrize(
    ("make", "at_once"),
    [
        (lambda number: np.full((3, 5), number, np.float32), True),
        (lambda number: np.full((number % 3, 5), number, np.int16), True),
        (lambda number: np.array(number % 2 == 0), True),
        (lambda number: np.full((2, 3), number, ">f4"), False),
        (lambda number: np.asfortranarray(np.arange(6).reshape(2, 3) + number), False),
    ],
)
def test_arrays(
    make: Callable[[int], np.ndarray], at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write_arrays(tmp_path, make)
    assert_equal_both_ways(lambda: fn.readers.numpy(files=paths, random_shuffle=True), monkeypatch, at_once)


@pytest.mark.parametrize(
    ("region", "at_once"),
    [
        ({"roi_start": [2, 3, 1], "roi_shape": [3, 4, 2]}, True),
        ({"roi_start": [2], "roi_shape": [3], "roi_axes": [1]}, True),
        ({"roi_start": [2, 0, 0], "roi_end": [3, 7, 5]}, True),
        ({"rel_roi_start": [0.25], "rel_roi_shape": [0.5]}, True),
        ({"roi_start": [0, 0, 0], "roi_end": [0, 7, 5]}, True),
        ({"roi_start": [-1, 3, 1], "roi_shape": [3, 4, 2], "out_of_bounds_policy": "pad"}, False),
    ],
)
def test_regions(region: dict[str, Any], at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_arrays(tmp_path, lambda number: np.random.default_rng(number).random((6, 7, 5)))
    assert_equal_both_ways(
        lambda: fn.readers.numpy(files=[*paths, *paths[:5]], random_shuffle=True, **region), monkeypatch, at_once
    )


def test_regions_of_arrays_that_are_written_anew(tmp_path: Path) -> None:
    paths = write_arrays(tmp_path, lambda number: np.full((4, 4), number))

    @pipeline_def(batch_size=COUNT, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def definition() -> Any:
        return fn.readers.numpy(files=paths, roi_start=[1, 1], roi_shape=[2, 2])

    pipeline = definition()
    assert pipeline.run()[0].as_array()[:, 0, 0].tolist() == list(range(COUNT))
    np.save(paths[3], np.full((9, 9), 77))
    assert pipeline.run()[0].as_array()[:, 0, 0].tolist() == [77 if n == 3 else n for n in range(COUNT)]


def test_pieces_of_a_truncated_file(tmp_path: Path) -> None:
    path, copier = tmp_path / "a", PieceCopier()
    path.write_bytes(bytes(range(256)) * 4096)
    mapped = MappedFile(ANYWHERE.opened(str(path)))
    pieces = np.array([[mapped.address + start, 3] for start in range(0, 1 << 20, 500)])
    block = np.empty(3 * len(pieces), np.uint8)
    assert copier.copy(pieces, block)
    expected = np.add.outer(np.arange(0, 1 << 20, 500), np.arange(3)) % 256
    np.testing.assert_array_equal(block.reshape(-1, 3), expected)
    assert copier.copy(np.array([[mapped.address, WINDOW]]), np.empty(WINDOW, np.uint8))
    assert not copier.copy(np.array([[mapped.address, WINDOW + 1]]), np.empty(WINDOW + 1, np.uint8))
    # After this, reading the mapped memory directly would kill the process.
    os.truncate(path, 1000)
    assert not copier.copy(pieces, block)
