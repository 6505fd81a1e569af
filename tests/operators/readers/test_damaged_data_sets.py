"""Readers on damaged data sets: clear errors, of types that can be caught."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import struct
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
import soundfile
from astropy.io import fits

from penstock import Pipeline, fn, pipeline_def, tfrecord
from penstock.errors import OperatorError


def _refused(define: Callable[[], Any], message: str, kind: type[Exception] = ValueError) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    with pytest.raises(OperatorError) as caught:
        pipeline().run()
    assert isinstance(caught.value, kind)
    # Not the whole text: it quotes the line that called the operator, which contains the expected message.
    assert message in caught.value.reason


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"", "no whole record"),
        (b"\x0a", "no whole record"),
        (struct.pack("<II", 0xCED7230A, 4) + b"abcd", "no whole labels"),
        (struct.pack("<II", 0xCED7230A, 27) + struct.pack("<IfQQ", 5, 0, 0, 0) + b"abc", "no whole labels"),
    ],
)
def test_mxnet(tmp_path: Path, record: bytes, message: str) -> None:
    (tmp_path / "a.rec").write_bytes(record)
    (tmp_path / "a.idx").write_text("0\t0\n")
    _refused(lambda: fn.readers.mxnet(path=str(tmp_path / "a.rec"), index_path=str(tmp_path / "a.idx")), message)


def test_caffe(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "db"), map_size=1 << 20) as database, database.begin(write=True) as transaction:
        transaction.put(b"0", b"\x08\xff")
    _refused(lambda: fn.readers.caffe(path=str(tmp_path / "db")), "not a Datum in protobuf's encoding")


def _tensor(extents: bytes, field: int, content: bytes) -> bytes:
    """Return a TensorProtos message with one TensorProto; lengths must be below 128."""
    body = b"".join(bytes([1 << 3, extent]) for extent in extents) + bytes([field << 3 | 2, len(content)]) + content
    return bytes([1 << 3 | 2, len(body)]) + body


_WEIGHT = _tensor(b"\1", 3, struct.pack("<f", 1))


@pytest.mark.parametrize(
    ("record", "arguments", "message"),
    [
        (_tensor(b"\1", 4, b"\x63"), {"label_type": 1}, "Label index out of bounds: 99 (num_labels: 10)"),
        (_tensor(b"\1", 4, b"\x63") + _WEIGHT, {"label_type": 3}, "Label index out of bounds: 99 (num_labels: 10)"),
        (
            _tensor(b"\2\2\1", 5, b"abc") + _tensor(b"\1", 4, b"\0"),
            {"image_available": True},
            "Image data size mismatch: 3 (expected: 4, of the shape [2, 2, 1])",
        ),
        (_WEIGHT, {}, "Unsupported label data type: float32"),
    ],
)
def test_caffe2(tmp_path: Path, record: bytes, arguments: dict[str, Any], message: str) -> None:
    with lmdb.open(str(tmp_path), map_size=1 << 20) as database, database.begin(write=True) as transaction:
        transaction.put(b"0", record)
    settings = {"image_available": False, "num_labels": 10, **arguments}
    _refused(lambda: fn.readers.caffe2(path=str(tmp_path), **settings), message)


@pytest.mark.parametrize(("label_type", "labels"), [(1, [0, 1, 0, 1]), (3, [0, 0.5, 0, 2])])
def test_caffe2_lists_of_labels(tmp_path: Path, label_type: int, labels: list[float]) -> None:
    weights = _tensor(b"\2", 3, struct.pack("<2f", 0.5, 2)) if label_type == 3 else b""
    box = _tensor(b"\4", 4, bytes([5, 6, 7, 8]))
    with lmdb.open(str(tmp_path), map_size=1 << 20) as database, database.begin(write=True) as transaction:
        transaction.put(b"0", _tensor(b"", 6, b"image") + _tensor(b"\2", 4, bytes([1, 3])) + weights + box)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        # There are as many outputs as in DALI, although DALI cannot read records of these kinds.
        image, labels, box, listed = fn.readers.caffe2(
            path=str(tmp_path), label_type=label_type, num_labels=4, bbox=True
        )
        return image, labels, box, listed

    values = [np.array(batch[0]).tolist() for batch in pipeline().run()]
    assert values == [list(b"image"), labels, [5, 6, 7, 8], [1, 3]]


@pytest.mark.parametrize("line", ["a.bin 99999999999", "a\0b 3"])
def test_file_list(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.bin").write_bytes(b"a")
    (tmp_path / "list.txt").write_text(f"{line}\n")
    _refused(lambda: fn.readers.file(file_list=str(tmp_path / "list.txt")), "Incorrect format of the list file")


@pytest.mark.parametrize("entry", [{"offset": None}, {"duration": None}, {"offset": float("nan")}, {"text": 5}])
def test_manifest(tmp_path: Path, entry: dict[str, Any]) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"audio_filepath": str(tmp_path / "a.wav"), **entry}))
    _refused(lambda: fn.readers.nemo_asr(manifest_filepaths=str(manifest)), "No files found")


def test_recording(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF no sound at all")
    (tmp_path / "manifest.json").write_text(json.dumps({"audio_filepath": str(tmp_path / "a.wav")}))
    _refused(lambda: fn.readers.nemo_asr(manifest_filepaths=str(tmp_path / "manifest.json")), "a.wav")


def test_sky(tmp_path: Path) -> None:
    path = tmp_path / "a.fits"
    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(np.zeros((20, 20), np.int16))]).writeto(path)
    path.write_bytes(path.read_bytes().replace(b"ZBITPIX", b"XBITPIX"))
    _refused(lambda: fn.experimental.readers.fits(files=[str(path)]), "a.fits' cannot be read")


def _annotations(folder: Path, **changes: Any) -> dict[str, str]:
    """Write a COCO data set of one image with one object, and return the reader's arguments for it.

    ``changes`` replace fields of the image or the object.
    """
    (folder / "a.jpg").write_bytes(b"a")
    image = {"id": 1, "file_name": "a.jpg", "height": 20, "width": 30}
    thing = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "segmentation": [[1, 1, 5, 1, 5, 5]]}
    content = {
        "images": [{key: changes.get(key, value) for key, value in image.items()}],
        "annotations": [{key: changes.get(key, value) for key, value in thing.items()}],
        "categories": [{"id": 1}],
    }
    (folder / "a.json").write_text(json.dumps(content))
    return {"file_root": str(folder), "annotations_file": str(folder / "a.json")}


@pytest.mark.parametrize(
    "changes",
    [
        {"id": 2**31},
        {"id": -(2**31) - 1},
        {"height": 2**40},
        {"width": "a"},
        {"file_name": 3},
        {"bbox": ["a", 0, 1, 1]},
        {"segmentation": [[1, 2, 3]]},
    ],
)
def test_annotations(tmp_path: Path, changes: dict[str, Any]) -> None:
    arguments = _annotations(tmp_path, **changes)
    _refused(lambda: fn.readers.coco(polygon_masks=True, **arguments), "is not a COCO annotations file")


@pytest.mark.parametrize(
    "segmentation",
    [
        [[0, 0, 1e12, 0, 1e12, 1e12]],
        {"size": [20, 30], "counts": [10, -5]},
        {"size": [20, 30], "counts": [10, 10**9]},
        {"size": [20, 30], "counts": "oooooo"},
        {"counts": None},
    ],
)
def test_masks(tmp_path: Path, segmentation: Any) -> None:
    arguments = _annotations(tmp_path, segmentation=segmentation)
    _refused(lambda: fn.readers.coco(pixelwise_masks=True, **arguments), "mask of an object of 'a.jpg' cannot be read")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("99999999999", "ends before byte"),
        ("-4", "from byte -4 on is not a valid range"),
        (str(2**64), "beyond 2^63 bytes"),
    ],
)
def test_tfrecord_indices_beyond_the_file(tmp_path: Path, start: str, message: str) -> None:
    (tmp_path / "a.tfrecord").write_bytes(bytes(100))
    (tmp_path / "a.idx").write_text(f"{start} 90\n")
    feature = {"a": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    arguments = {"path": str(tmp_path / "a.tfrecord"), "index_path": str(tmp_path / "a.idx"), "features": feature}
    with pytest.raises(OperatorError, match=re.escape(message)):
        _run_once(lambda: fn.readers.tfrecord(**arguments)["a"])


@pytest.mark.parametrize("size", ["99999999999", str(2**62)])
def test_tfrecord_indices_of_records_larger_than_memory(tmp_path: Path, size: str) -> None:
    (tmp_path / "a.tfrecord").write_bytes(bytes(100))
    (tmp_path / "a.idx").write_text(f"0 {size}\n")
    feature = {"a": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    arguments = {"path": str(tmp_path / "a.tfrecord"), "index_path": str(tmp_path / "a.idx"), "features": feature}
    with pytest.raises(OperatorError, match="ends before byte"):
        _run_once(lambda: fn.readers.tfrecord(**arguments)["a"])


def test_mxnet_indices_beyond_any_file(tmp_path: Path) -> None:
    (tmp_path / "a.rec").write_bytes(bytes(100))
    (tmp_path / "a.idx").write_text(f"0\t{2**64}\n")
    paths = {"path": str(tmp_path / "a.rec"), "index_path": str(tmp_path / "a.idx")}
    _refused(lambda: fn.readers.mxnet(**paths), "beyond 2^63 bytes")


@pytest.mark.parametrize("line", ["bin -512 4 a.bin cls 512 3 a.cls", "bin 512 -4 a.bin cls 512 3 a.cls"])
def test_archive_indices_before_the_archive(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.tar").write_bytes(bytes(2048))
    (tmp_path / "a.idx").write_text(f"v1.2 1\n{line}\n")
    paths = {"paths": [str(tmp_path / "a.tar")], "index_paths": [str(tmp_path / "a.idx")]}
    _refused(lambda: fn.readers.webdataset(**paths, ext=["bin", "cls"]), "offset is outside of the archive file")


def _run_once(define: Callable[[], Any]) -> None:
    pipeline_def(define, batch_size=1, num_threads=1, device_id=None)().run()


@pytest.mark.parametrize("reader", ["tfrecord", "mxnet", "webdataset"])
def test_indices_that_are_folders_are_named(tmp_path: Path, reader: str) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(2048))
    _refused(_indexed(reader, tmp_path / "a.bin", tmp_path), f"Is a directory: '{tmp_path}'", OSError)


@pytest.mark.parametrize("shift", [0, 512, -512])
def test_the_index_of_another_archive(tmp_path: Path, shift: int) -> None:
    for name, size in (("own", 700), ("other", 700 if shift else 600)):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            for number in range(4):
                member = tarfile.TarInfo(f"{number}.bin")
                member.size = size
                archive.addfile(member, io.BytesIO(bytes([number]) * size))
    lines = "".join(f"bin {512 + 1536 * number + shift} 700 {number}.bin\n" for number in range(4))
    (tmp_path / "a.idx").write_text(f"v1.2 4\n{lines}")
    data = tmp_path / ("own.tar" if shift else "other.tar")
    _refused(_indexed("webdataset", data, tmp_path / "a.idx"), f"'{data}' has no file of 700 bytes there")


@pytest.mark.parametrize(
    ("reader", "message"),
    [("tfrecord", "Damaged TFRecord"), ("mxnet", "Invalid RecordIO: wrong magic number, or no whole record")],
)
def test_the_index_of_other_records(tmp_path: Path, reader: str, message: str) -> None:
    write_records(reader, tmp_path / "a.bin", tmp_path / "a.idx", 1000)
    write_records(reader, tmp_path / "b.bin", tmp_path / "b.idx", 500)
    _refused(_indexed(reader, tmp_path / "a.bin", tmp_path / "b.idx"), message)


def _indexed(reader: str, data: Path, index: Path) -> Callable[[], Any]:
    if reader == "webdataset":
        return lambda: fn.readers.webdataset(paths=[str(data)], index_paths=[str(index)], ext=["bin"])
    if reader == "mxnet":
        return lambda: fn.readers.mxnet(path=str(data), index_path=str(index))
    features = {"image": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    return lambda: list(fn.readers.tfrecord(path=str(data), index_path=str(index), features=features).values())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.mp4", "Incorrect format of the list file"),
        ("a.mp4 0 1", "Incorrect format of the list file"),
        ("a.mp4 zero", "has no path, label, start and end"),
        ("a.mp4 1.5", "has no path, label, start and end"),
        ("a.mp4 0 begin end", "has no path, label, start and end"),
        ("a.mp4 0 0 inf", "has no path, label, start and end"),
        ("a\0.mp4 0", "has no path, label, start and end"),
        ("a.mp4 -1", "Label value should be >= 0"),
        ("", "The number of input samples: 0"),
    ],
)
def test_lists_of_videos(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(f"{line}\n")
    _refused(lambda: fn.experimental.readers.video(file_list=str(tmp_path / "list.txt"), sequence_length=2), message)


@pytest.mark.parametrize("content", [None, b"no video"])
def test_listed_videos_that_are_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.mp4"
    if content is not None:
        path.write_bytes(content)
    (tmp_path / "list.txt").write_text(f"{path} 0\n")
    kind, message = (ValueError, "Failed to open the video") if content else (FileNotFoundError, f"'{path}'")
    _refused(
        lambda: fn.experimental.readers.video(file_list=str(tmp_path / "list.txt"), sequence_length=2), message, kind
    )


def write_records(reader: str, data: Path, index: Path, size: int) -> None:
    """Write eight records of ``size`` bytes, and their index."""
    if reader == "webdataset":
        with tarfile.open(data, "w") as archive:
            lines = ["v1.2 8"]
            for number in range(8):
                member = tarfile.TarInfo(f"{number}.bin")
                member.size = size
                lines.append(f"bin {archive.offset + tarfile.BLOCKSIZE} {size} {member.name}")
                archive.addfile(member, io.BytesIO(bytes(size)))
    elif reader == "mxnet":
        record = struct.pack("<IIIfQQ", 0xCED7230A, 24 + size, 0, 0, 0, 0) + bytes(size)
        data.write_bytes(record * 8)
        lines = [f"{number}\t{number * len(record)}" for number in range(8)]
    else:
        # The message has one protobuf field, which readers do not know and therefore skip.
        message = b"\x7a" + bytes([size & 127 | 128, size >> 7]) + bytes(size)
        record = struct.pack("<QI", len(message), 0) + message + bytes(4)
        data.write_bytes(record * 8)
        lines = [f"{number * len(record)} {len(record)}" for number in range(8)]
    index.write_text("\n".join([*lines, ""]))


def _reading(define: Callable[[], Any]) -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipeline()


@pytest.mark.parametrize("reader", ["tfrecord", "mxnet", "webdataset"])
def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, reader: str) -> None:
    data, index = tmp_path / "a.bin", tmp_path / "a.idx"
    write_records(reader, data, index, 1000)
    pipe = _reading(_indexed(reader, data, index))
    assert len(pipe.run()[0]) == 2
    os.truncate(data, 0)
    with pytest.raises(OSError, match=re.escape(f"'{data}' ends before byte")):
        pipe.run()


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """Yield a folder that other users can access, unlike `tmp_path`, whose parent folders only their owner can access."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Make sure that files without permissions cannot be read, even if root runs the tests."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def _reading_from(folder: Path, reader: str) -> Pipeline:
    """Write the file `classes/a.bin`; return a pipeline that reads it."""
    data, index = folder / "classes" / "a.bin", folder / "a.idx"
    data.parent.mkdir(parents=True)
    write_records(reader, data, index, 1000)
    readers = {
        "file": lambda: fn.readers.file(files=[str(data)])[0],
        "file_root": lambda: fn.readers.file(file_root=str(folder), file_filters=["*.bin"])[0],
        "numpy": lambda: fn.readers.numpy(files=[str(data)]),
        "video": lambda: fn.experimental.readers.video(filenames=[str(data)], sequence_length=2),
    }
    return _reading(readers.get(reader) or _indexed(reader, data, index))


@pytest.mark.parametrize("reader", ["file", "file_root", "tfrecord", "mxnet", "webdataset", "numpy", "video"])
def test_files_without_permission(shared_folder: Path, reader: str, request: pytest.FixtureRequest) -> None:
    # Run a reader before changing users: another user may be unable to access the modules and kernels that its first run loads.
    with contextlib.suppress(RuntimeError):  # the file is not an array or a video
        _reading_from(shared_folder / "other", reader).run()
    pipe = _reading_from(shared_folder / "own", reader)
    classes = shared_folder / "own" / "classes"
    refused = classes if reader == "file_root" else classes / "a.bin"
    refused.chmod(0)
    request.getfixturevalue("unprivileged")
    with pytest.raises(PermissionError, match=re.escape(f"Permission denied: '{refused}'")):
        pipe.run()


def test_folders_of_many_files_are_listed_quickly(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    folder = os.open(tmp_path / "class", os.O_RDONLY)
    for number in range(20_000):
        os.close(os.open(f"{number:05}.jpg", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    pipe = _reading(lambda: fn.readers.file(file_root=str(tmp_path), random_shuffle=True, name="files")[0])
    begin = time.process_time()
    pipe.build()
    assert pipe.reader_meta("files")["epoch_size"] == 20_000
    # At most 5 µs for each file, and 0.3 s for one-time work of the process.
    assert time.process_time() - begin < 20_000 * 5e-6 + 0.3
