"""Readers return the same data in the same order as DALI's readers."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from side_by_side import difference


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("numbered")
    for i in range(11):
        (folder / str(i)).write_text(str(i))
    return [str(folder / str(i)) for i in range(11)]


@pytest.mark.parametrize("size", [1, 7, 10, 11])
@pytest.mark.parametrize("shards", [(1, 0), (3, 0), (3, 2)])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize(
    "shuffle", [{}, {"random_shuffle": True}, {"random_shuffle": True, "initial_fill": 4, "seed": 7}]
)
def test_order(
    numbered: list[str], size: int, shards: tuple[int, int], pad: bool, stick: bool, shuffle: dict[str, Any]
) -> None:
    arguments = {
        "num_shards": shards[0],
        "shard_id": shards[1],
        "pad_last_batch": pad,
        "stick_to_shard": stick,
    } | shuffle
    text = difference(lambda m: tuple(m.fn.readers.file(files=numbered[:size], **arguments)), iterations=9, exact=True)
    assert not text


@pytest.mark.parametrize("size", [2, 6, 11])
@pytest.mark.parametrize("seed", [{}, {"shuffle_after_epoch_seed": 3}, {"shuffle_after_epoch_seed": 2**33 + 5}])
@pytest.mark.parametrize("shards", [(1, 0), (2, 1)])
def test_order_shuffled_after_each_epoch(
    numbered: list[str], size: int, seed: dict[str, int], shards: tuple[int, int]
) -> None:
    arguments = {"shuffle_after_epoch": True, "num_shards": shards[0], "shard_id": shards[1]} | seed
    text = difference(lambda m: tuple(m.fn.readers.file(files=numbered[:size], **arguments)), iterations=12, exact=True)
    assert not text


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_root": "."},
        {"file_root": ".", "dir_filters": ["A*"]},
        {"file_root": ".", "file_filters": ["*.jpg"], "case_sensitive_filter": True},
        {"file_list": "list.txt"},
        {"files": ["b/0.jpg"], "labels": [-3]},
        {"file_root": "b"},
        {"file_root": "nowhere"},
        {"file_list": "wrong.txt"},
        {"files": ["b/0.jpg"], "labels": [1, 2]},
        {},
    ],
)
def test_files(arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b/0.jpg", "b/1.JPG", "a/0.jpg", "a/note.txt", "c/deep/0.jpg", "top.jpg", ".hidden/0.jpg"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("list.txt").write_text("b/0.jpg 5\n\na/0.jpg\t7\n")
    Path("wrong.txt").write_text("b/0.jpg\n")
    assert not difference(lambda m: tuple(m.fn.readers.file(**arguments)), 5, exact=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"roi_start": [1, 2], "roi_end": [3, 5]},
        {"rel_roi_start": [0.3, 0.3], "rel_roi_shape": [0.4, 0.5]},
        {"roi_start": [1], "roi_shape": [2]},
        {"roi_start": [1], "roi_shape": [2], "roi_axes": [1]},
        {"roi_start": [-1, 2], "roi_end": [6, 5], "out_of_bounds_policy": "pad", "fill_value": 2.5},
        {"roi_start": [-1, 2], "roi_end": [6, 5], "out_of_bounds_policy": "trim_to_shape"},
        {"roi_start": [-1, 2], "roi_end": [6, 5]},
        {"roi_start": [3, 2], "roi_end": [1, 5]},
        {"roi_end": [3, 2], "roi_shape": [1, 5]},
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_numpy(arguments: dict[str, Any], dtype: str, tmp_path: Path) -> None:
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", (np.arange(24).reshape(4, 6) + 100 * i).astype(dtype))
    assert not difference(lambda m: m.fn.readers.numpy(file_root=str(tmp_path), **arguments), exact=True)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes(parts + bytes([number]))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


@pytest.fixture
def records(tmp_path: Path) -> dict[str, list[str]]:
    for name, count in (("a", 5), ("b", 3)):
        data, index = b"", ""
        for i in range(count):
            values = {
                "image": _field(1, _field(1, f"{name}{i}".encode())),
                "label": _field(3, _field(1, _varint(i) + _varint((1 << 64) - i * 1000 if i else 0))),
                "box": _field(2, _field(1, struct.pack("<4f", i, 0.5, 2, 3))),
            }
            entries = [_field(1, _field(1, key.encode()) + _field(2, value)) for key, value in values.items()]
            message = _field(1, b"".join(entries))
            record = struct.pack("<QI", len(message), 0) + message + b"\0" * 4
            index += f"{len(data)} {len(record)}\n"
            data += record
        (tmp_path / f"{name}.tfrecord").write_bytes(data)
        (tmp_path / f"{name}.idx").write_text(index)
    return {
        "path": [str(tmp_path / f"{name}.tfrecord") for name in "ab"],
        "index_path": [str(tmp_path / f"{name}.idx") for name in "ab"],
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"random_shuffle": True, "initial_fill": 4},
        {"shuffle_after_epoch": True},
        {"shuffle_after_epoch": True, "random_shuffle": True, "initial_fill": 3},
        {"shuffle_after_epoch": True, "random_shuffle": True, "num_shards": 2, "shuffle_after_epoch_seed": 7},
        {"shuffle_after_epoch": True, "stick_to_shard": True},
        {"num_shards": 3, "shard_id": 1, "pad_last_batch": True},
    ],
)
def test_tfrecord(records: dict[str, list[str]], arguments: dict[str, Any]) -> None:
    def define(module: Any) -> Any:
        if module.__name__ == "penstock":
            from penstock import tfrecord
        else:
            from nvidia.dali import tfrecord
        features = {
            "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([2], tfrecord.int64, 0),
            "box": tfrecord.VarLenFeature([2], tfrecord.float32, 0.0),
        }
        outputs = module.fn.readers.tfrecord(features=features, **records, **arguments)
        return tuple(outputs[name] for name in features)

    assert not difference(define, 3, iterations=30, exact=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"ext": ["jpg", "cls"]},
        {"ext": ["jpg;png", "cls"], "missing_component_behavior": "skip"},
        {"ext": ["jpg"], "random_shuffle": True},
        {"ext": ["jpg"], "shuffle_after_epoch": True},
        {"ext": ["jpg"], "shuffle_after_epoch": True, "random_shuffle": True, "initial_fill": 3},
        {"ext": ["cls"], "missing_component_behavior": "error"},
        {"ext": ["jpg"], "num_shards": 2, "shard_id": 1},
    ],
)
def test_webdataset(arguments: dict[str, Any], tmp_path: Path) -> None:
    paths = []
    for name, count in (("a", 4), ("b", 2)):
        paths.append(str(tmp_path / f"{name}.tar"))
        with tarfile.open(paths[-1], "w", format=tarfile.USTAR_FORMAT) as archive:
            for i in range(count):
                for extension in ("jpg", "cls", "seg.png")[: 3 - 2 * (i == 1)]:
                    data = f"{name}{i}{extension}".encode()
                    member = tarfile.TarInfo(f"folder/{name}{i}.{extension}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
    outputs = len(arguments["ext"])

    def define(module: Any) -> Any:
        result = module.fn.readers.webdataset(paths=paths, **arguments)
        return tuple(result) if outputs > 1 else result

    assert not difference(define, 4, iterations=20, exact=True)


# pycocotools is not fully compatible with numpy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"ltrb": True, "ratio": True, "image_ids": True},
        {"skip_empty": True, "include_iscrowd": False},
        {"polygon_masks": True, "ratio": True},
        {"pixelwise_masks": True},
        {"avoid_class_remapping": True, "size_threshold": 11.0},
        {"images": ["2.jpg", "0.jpg"]},
        {"random_shuffle": True},
        {"pixelwise_masks": True, "polygon_masks": True},
    ],
)
def test_coco(arguments: dict[str, Any], tmp_path: Path) -> None:
    sizes = {30: (40, 50), 7: (20, 20), 12: (30, 60), 99: (30, 60)}
    images = [
        {"id": number, "file_name": f"{i}.jpg", "height": h, "width": w}
        for i, (number, (h, w)) in enumerate(sizes.items())
    ]
    for image in images:
        (tmp_path / str(image["file_name"])).write_text(str(image["id"]))

    def annotation(image: int, category: int, box: list[float], masks: Any, crowd: int = 0) -> dict[str, Any]:
        return {"image_id": image, "category_id": category, "bbox": box, "iscrowd": crowd, "segmentation": masks}

    annotations = [
        annotation(12, 10, [1.5, 2, 10, 12.25], [[1, 2, 11, 2, 11, 14, 1, 14], [20, 5, 25, 5, 25, 12]]),
        annotation(30, 3, [0, 0, 50, 40], [[0, 0, 49, 0, 49, 39]]),
        annotation(30, 1, [5, 5, 0.05, 10], [[0, 0, 1, 0, 1, 1]]),
        annotation(30, 1, [5, 6, 7, 8], {"size": [40, 50], "counts": [200, 30, 10, 30, 1730]}, 1),
        annotation(99, 3, [2, 3, 8, 5], [[2, 3, 10, 8], [20, 5, 25, 5, 25, 12]]),
        annotation(12, 1, [2, 2, 3, 3], {"size": [30, 60], "counts": [100, 50, 1650]}),
    ]
    content = {"images": images, "annotations": annotations, "categories": [{"id": 3}, {"id": 1}, {"id": 10}]}
    for category in content["categories"]:
        category["name"] = str(category["id"])  # type: ignore[index]
    (tmp_path / "instances.json").write_text(json.dumps(content))
    paths = {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "instances.json")}
    assert not difference(lambda m: tuple(m.fn.readers.coco(**paths, **arguments)), 4, iterations=2, exact=True)


def _mxnet_file(folder: Path) -> dict[str, str]:
    data, index = b"", ""
    for i, labels in enumerate(([], [1.5, 2.5], [], [4.0, 5.0, 6.0])):
        body = (
            struct.pack("<IfQQ", len(labels), float(i), i, 0)
            + struct.pack(f"<{len(labels)}f", *labels)
            + b"image%d" % i
        )
        index += f"{i}\t{len(data)}\n"
        data += struct.pack("<II", 0xCED7230A, len(body)) + body + b"\0" * (-len(body) % 4)
    (folder / "a.rec").write_bytes(data)
    (folder / "a.idx").write_text(index)
    return {"path": str(folder / "a.rec"), "index_path": str(folder / "a.idx")}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"random_shuffle": True},
        {"shuffle_after_epoch": True},
        {"shuffle_after_epoch": True, "random_shuffle": True, "initial_fill": 2, "num_shards": 2},
        {"shuffle_after_epoch": True, "stick_to_shard": True},
    ],
)
def test_mxnet(arguments: dict[str, Any], tmp_path: Path) -> None:
    paths = _mxnet_file(tmp_path)
    define: Callable[[Any], Any] = lambda m: tuple(m.fn.readers.mxnet(**paths, **arguments))  # noqa: E731
    assert not difference(define, 3, iterations=9, exact=True)
