"""The readers in pipelines, on small generated data sets."""

import io
import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, tfrecord, types


def _pipeline(define: Callable[[], Any], batch_size: int, **options: Any) -> Any:
    settings = {"num_threads": 2, "device_id": None, "seed": 11, "exec_async": False, "exec_pipelined": False}

    def definition() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipeline = pipeline_def(definition, batch_size=batch_size, **(settings | options))()
    pipeline.build()
    return pipeline


def _run(define: Callable[[], Any], batch_size: int, **options: Any) -> list[list[np.ndarray]]:
    return [list(map(np.array, batch)) for batch in _pipeline(define, batch_size, **options).run()]


def _texts(batch: list[np.ndarray]) -> list[str]:
    return [sample.tobytes().decode() for sample in batch]


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b_cats/0.jpg", "b_cats/1.JPG", "a_dogs/0.jpg", "a_dogs/note.txt", "c_birds/deep/0.jpg", "top.jpg"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_folders_are_classes(tree: Path) -> None:
    files, labels = _run(lambda: fn.readers.file(file_root=str(tree)), 3)
    assert _texts(files) == ["a_dogs/0.jpg", "b_cats/0.jpg", "b_cats/1.JPG"]
    assert [label.tolist() for label in labels] == [[0], [1], [1]]
    assert labels[0].dtype == np.int32


def test_filters(tree: Path) -> None:
    files, labels = _run(lambda: fn.readers.file(file_root=str(tree), dir_filters=["B_*"], file_filters=["*.jpg"]), 2)
    assert _texts(files) == ["b_cats/0.jpg", "b_cats/1.JPG"]
    assert labels[0].tolist() == [0]
    (files, _) = _run(
        lambda: fn.readers.file(file_root=str(tree), file_filters=["*.JPG"], case_sensitive_filter=True), 1
    )
    assert _texts(files) == ["b_cats/1.JPG"]


def test_lists_of_files(tree: Path) -> None:
    listing = tree / "list.txt"
    listing.write_text("b_cats/0.jpg 5\n\na_dogs/0.jpg\t7\n")
    files, labels = _run(lambda: fn.readers.file(file_list=str(listing)), 2)
    assert _texts(files) == ["b_cats/0.jpg", "a_dogs/0.jpg"]
    assert np.concatenate(labels).tolist() == [5, 7]
    files, labels = _run(lambda: fn.readers.file(files=["top.jpg"], file_root=str(tree), labels=[3]), 1)
    assert _texts(files) == ["top.jpg"]
    assert labels[0].tolist() == [3]


def test_source_infos(tree: Path) -> None:
    files, labels = _pipeline(lambda: fn.readers.file(file_root=str(tree)), 1).run()
    assert files[0].source_info() == "a_dogs/0.jpg"
    assert labels[0].source_info() == ""


def test_source_infos_of_all_that_is_pasted(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.png") for name in "abc"]
    for path in paths:
        Image.new("RGB", (4, 3)).save(path)

    def define() -> Any:
        images = fn.decoders.image(fn.readers.file(files=paths)[0])
        ids = fn.external_source(lambda: [np.int32([0, 1]), np.int32([2]), np.zeros(0, np.int32)])
        return fn.multi_paste(images, in_ids=ids), fn.multi_paste(images, images)

    by_ids, by_inputs = _pipeline(define, 3).run()
    a, b, c = paths
    assert [tensor.source_info() for tensor in by_ids] == [f"{a};{b}", c, ""]
    assert [tensor.source_info() for tensor in by_inputs] == [f"{a};{a}", f"{b};{b}", f"{c};{c}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "file_root"),
        ({"file_root": "."}, "No files found"),
        ({"files": ["a"], "file_list": "b"}, "but not both"),
        ({"files": ["a", "b"], "labels": [1]}, "Provided 1 labels for 2 files"),
        ({"file_root": ".", "labels": [1]}, "`labels` is valid only"),
        ({"files": []}, "empty"),
        ({"files": ["a"], "num_shards": 2}, "at least equal to the requested number of shards: 2"),
        ({"files": ["a"], "shard_id": 1}, "shard_id"),
        ({"files": ["a"], "shuffle_after_epoch": True, "random_shuffle": True}, "cannot be both true"),
        ({"files": ["a"], "shuffle_after_epoch": True, "stick_to_shard": True}, "cannot be both true"),
        ({"files": ["no such file"]}, "No such file"),
        ({"files": ["a"], "prefetch_queue_depth": 0}, "greater than 0"),
    ],
)
def test_wrong_requests(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=message):
        _run(lambda: fn.readers.file(**arguments), 1)


def test_where_files_are_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for read in (fn.readers.file, fn.readers.numpy):
        with pytest.raises(RuntimeError, match="`file_root` argument is required"):
            _run(lambda read=read: read(), 1)
        with pytest.raises(RuntimeError, match="but not both"):
            _run(lambda read=read: read(files=["a"], file_list="b"), 1)


@pytest.mark.parametrize("line", ["b.jpg", "b.jpg -1", "b.jpg 1.5", "b.jpg cat"])
def test_line_without_a_label(line: str, tree: Path) -> None:
    (tree / "list.txt").write_text(f"a.jpg 1\n{line}\n")
    with pytest.raises(ValueError, match=r"Incorrect format of the list file.*:2"):
        _run(lambda: fn.readers.file(file_list=str(tree / "list.txt")), 1)


@pytest.mark.parametrize(("pad", "padded"), [(True, 4), (False, 3)])
def test_meta_and_lazy_listing(tree: Path, pad: bool, padded: int) -> None:
    pipeline = _pipeline(
        lambda: fn.readers.file(name="r", file_root=str(tree), num_shards=2, pad_last_batch=pad, lazy_init=True), 2
    )
    assert pipeline.epoch_size("r") == padded
    assert pipeline.reader_meta("r") == {
        "epoch_size": 3,
        "epoch_size_padded": padded,
        "number_of_shards": 2,
        "shard_id": 0,
        "pad_last_batch": int(pad),
        "stick_to_shard": 0,
    }


def test_one_unreadable_file_fails_alone(tree: Path) -> None:
    paths = [str(tree / "top.jpg"), "no such file", str(tree / "b_cats/0.jpg")]
    pipeline = _pipeline(lambda: fn.readers.file(files=paths), 3)
    result = pipeline.executor.run_once(isolate=True)
    assert list(result.failures) == [1]
    assert _texts([np.array(result.outputs[0].samples[i]) for i in (0, 2)]) == ["top.jpg", "b_cats/0.jpg"]


# -- numpy ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def arrays(tmp_path: Path) -> list[str]:
    paths = [str(tmp_path / f"{i}.npy") for i in range(2)]
    for i, path in enumerate(paths):
        array = np.arange(24, dtype=np.float32).reshape(4, 6) + 100 * i
        np.save(path, np.asfortranarray(array) if i else array)
    return paths


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, np.s_[:]),
        ({"roi_start": [1, 2], "roi_end": [3, 5]}, np.s_[1:3, 2:5]),
        ({"rel_roi_start": [0.25, 0.5], "roi_shape": [2, 3]}, np.s_[1:3, 3:6]),
        ({"roi_start": [1], "roi_shape": [2], "roi_axes": [1]}, np.s_[:, 1:3]),
        ({"roi_start": [1], "roi_shape": [2]}, np.s_[1:3, 1:3]),
        ({"roi_start": [3, 2], "roi_end": [9, 5], "out_of_bounds_policy": "trim_to_shape"}, np.s_[3:, 2:5]),
    ],
)
def test_arrays_and_regions(arrays: list[str], arguments: dict[str, Any], part: Any) -> None:
    (result,) = _run(lambda: fn.readers.numpy(files=arrays, **arguments), 2)
    for i, sample in enumerate(result):
        np.testing.assert_array_equal(sample, (np.arange(24, dtype=np.float32).reshape(4, 6) + 100 * i)[part])


def test_region_from_the_graph_and_padding(arrays: list[str]) -> None:
    starts = [np.array([i, 2], np.int32) for i in range(2)]
    (result,) = _run(
        lambda: fn.readers.numpy(
            files=arrays,
            roi_start=fn.external_source(source=lambda: starts),
            roi_shape=[4, 1],
            out_of_bounds_policy="pad",
            fill_value=-1,
        ),
        2,
    )
    assert result[0].ravel().tolist() == [2, 8, 14, 20]
    assert result[1].ravel().tolist() == [108, 114, 120, -1]


@pytest.mark.parametrize(("value", "held"), [(2.5, 3), (-2.5, -3), (1e6, 32767)])
def test_integers_are_filled_with_rounded_values(tmp_path: Path, value: float, held: int) -> None:
    file = tmp_path / "0.npy"
    np.save(file, np.arange(4, dtype=np.int16))
    region = {"roi_start": [2], "roi_end": [5], "out_of_bounds_policy": "pad", "fill_value": value}
    (result,) = _run(lambda: fn.readers.numpy(files=[str(file)], **region), 1)
    assert result[0].tolist() == [2, 3, held]


# -- records -------------------------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes(parts + bytes([number]))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _feature(values: Any) -> bytes:
    if isinstance(values, bytes):
        return _field(1, _field(1, values))
    if isinstance(values[0], float):
        return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
    return _field(3, _field(1, b"".join(map(_varint, values))))


def _write_records(path: Path, examples: list[dict[str, Any]]) -> None:
    data, index = b"", ""
    for example in examples:
        entries = [_field(1, _field(1, key.encode()) + _field(2, _feature(value))) for key, value in example.items()]
        message = _field(1, b"".join(entries))
        record = struct.pack("<QI", len(message), 0) + message + b"\0" * 4
        index += f"{len(data)} {len(record)}\n"
        data += record
    path.write_bytes(data)
    path.with_suffix(".idx").write_text(index)


@pytest.fixture
def records(tmp_path: Path) -> dict[str, str]:
    examples: list[dict[str, Any]] = [
        {"image": b"image%d" % i, "label": [i], "box": [i + 0.5, 2.0, 3.0, 4.0], "ids": [i, -(10**6) * i]}
        for i in range(3)
    ]
    del examples[2]["box"], examples[2]["image"]
    _write_records(tmp_path / "a.tfrecord", examples)
    return {"path": str(tmp_path / "a.tfrecord"), "index_path": str(tmp_path / "a.idx")}


def test_tfrecord(records: dict[str, str]) -> None:
    features = {
        "image": tfrecord.FixedLenFeature((), tfrecord.string, "none"),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "box": tfrecord.FixedLenFeature([2, 2], tfrecord.float32, 9.0),
        "ids": tfrecord.VarLenFeature(tfrecord.int64, 0),
    }

    def define() -> Any:
        outputs = fn.readers.tfrecord(features=features, **records)
        assert list(outputs) == list(features)
        return list(outputs.values())

    images, labels, boxes, ids = _run(define, 3)
    assert _texts(images) == ["image0", "image1", "none"]
    assert np.concatenate(labels).tolist() == [0, 1, 2]
    assert boxes[1].tolist() == [[1.5, 2.0], [3.0, 4.0]]
    assert boxes[2].tolist() == [[9.0, 9.0], [9.0, 9.0]]
    assert ids[1].tolist() == [1, -1000000]


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (("image", tfrecord.FixedLenFeature([1], tfrecord.int64, 0)), "holds string, not int64"),
        (("box", tfrecord.FixedLenFeature([3], tfrecord.float32, 0.0)), "Output tensor shape is too small"),
        (("image", tfrecord.VarLenFeature(tfrecord.string, "")), "Tensors of strings are not supported"),
        (("image", tfrecord.FixedLenFeature([2], tfrecord.string, "")), "Tensors of strings are not supported"),
        (("label", tfrecord.VarLenFeature([2], tfrecord.int64, 0)), "size not matching partial shape"),
    ],
)
def test_tfrecord_errors(records: dict[str, str], feature: tuple[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _run(lambda: list(fn.readers.tfrecord(features=dict([feature]), **records).values()), 1)


def test_records_are_shuffled_both_before_epochs_and_while_read(tmp_path: Path) -> None:
    _write_records(tmp_path / "a.tfrecord", [{"label": [i]} for i in range(9)])
    paths = {"path": str(tmp_path / "a.tfrecord"), "index_path": str(tmp_path / "a.idx")}
    features = {"label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1)}
    shuffled = {"random_shuffle": True, "initial_fill": 4, "shuffle_after_epoch": True, "seed": 5}
    pipeline = _pipeline(lambda: fn.readers.tfrecord(features=features, **paths, **shuffled)["label"], 9)
    epochs = [np.concatenate([np.array(sample) for sample in pipeline.run()[0]]).tolist() for _ in range(3)]
    # The orders are those of DALI.
    assert epochs == [[1, 3, 2, 5, 6, 8, 4, 0, 7], [1, 2, 5, 3, 6, 7, 8, 0, 4], [0, 4, 2, 3, 7, 5, 1, 8, 6]]


def test_tfrecord_pipelines_are_saved(records: dict[str, str]) -> None:
    from penstock import Pipeline

    features = {"label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1)}
    pipeline = _pipeline(lambda: fn.readers.tfrecord(features=features, **records)["label"], 3)
    loaded = Pipeline.deserialize(pipeline.serialize(), batch_size=3, num_threads=1, device_id=None)
    loaded.build()
    assert np.concatenate([np.array(sample) for sample in loaded.run()[0]]).tolist() == [0, 1, 2]


def test_mxnet(tmp_path: Path) -> None:
    data, index = b"", ""
    for i, labels in enumerate(([], [1.5, 2.5])):
        body = struct.pack("<IfQQ", len(labels), 7.0, i, 0) + struct.pack(f"<{len(labels)}f", *labels) + b"image%d" % i
        index += f"{i}\t{len(data)}\n"
        data += struct.pack("<II", 0xCED7230A, len(body)) + body + b"\0" * (-len(body) % 4)
    (tmp_path / "a.rec").write_bytes(data)
    (tmp_path / "a.idx").write_text(index)
    images, labels = _run(lambda: fn.readers.mxnet(path=str(tmp_path / "a.rec"), index_path=str(tmp_path / "a.idx")), 2)
    assert _texts(images) == ["image0", "image1"]
    assert [label.tolist() for label in labels] == [[7.0], [1.5, 2.5]]

    # The same data in two files, which the index treats as one; it lists a position twice, for which there is one record only.
    second = int(index.split()[-1])
    (tmp_path / "b.rec").write_bytes(data[:second])
    (tmp_path / "c.rec").write_bytes(data[second:])
    (tmp_path / "twice.idx").write_text(f"2\t{second}\n{index}")
    parts = {
        "path": [str(tmp_path / name) for name in ("b.rec", "c.rec")],
        "index_path": str(tmp_path / "twice.idx"),
    }
    images, labels = _run(lambda: fn.readers.mxnet(**parts), 2)
    assert _texts(images) == ["image0", "image1"]
    assert [label.tolist() for label in labels] == [[7.0], [1.5, 2.5]]
    parts["index_path"] = [parts["index_path"]] * 2
    with pytest.raises(ValueError, match="RecordIOReader supports only a single index file, got 2"):
        _run(lambda: fn.readers.mxnet(**parts), 2)


# -- archives ------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: Path) -> str:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        names = {"d/0.jpg": b"jpg0", "d/0.cls": struct.pack("<i", 5), "d/1.JPG": b"jpg1", f"d/{'x' * 120}.jpg": b"long"}
        for name, data in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


def test_webdataset(archive: str) -> None:
    images, labels = _run(
        lambda: fn.readers.webdataset(
            paths=archive, ext=["jpg;png", "cls"], dtypes=[types.UINT8, types.INT32], case_sensitive_extensions=False
        ),
        3,
    )
    assert _texts(images) == ["jpg0", "jpg1", "long"]
    assert [label.tolist() for label in labels] == [[5], [], []]


def test_incomplete_samples(archive: str) -> None:
    images, _ = _run(
        lambda: fn.readers.webdataset(paths=archive, ext=["jpg", "cls"], missing_component_behavior="skip"), 2
    )
    assert _texts(images) == ["jpg0", "jpg0"]
    with pytest.raises(ValueError, match="Underful sample detected"):
        _run(lambda: fn.readers.webdataset(paths=archive, ext=["cls"], missing_component_behavior="error"), 1)
    with pytest.raises(ValueError, match="component size and dtype incompatible"):
        _run(lambda: fn.readers.webdataset(paths=archive, ext=["cls"], dtypes=[types.INT64]), 1)


@pytest.mark.parametrize("lines", [["v1.2 2", "jpg 512 4 d/0.jpg cls 1536 4 d/0.cls", "JPG 2560 4 d/1.JPG"],
                                   ["v1.1 2", "jpg 512 4 cls 1536 4", "JPG 2560 4"]])  # fmt: skip
def test_index_of_an_archive(archive: str, lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.idx").write_text("\n".join(lines))
    images, labels = _run(
        lambda: fn.readers.webdataset(
            paths=archive,
            index_paths=str(tmp_path / "a.idx"),
            ext=["jpg;JPG", "cls"],
            dtypes=[types.UINT8, types.INT32],
        ),
        2,
    )
    assert _texts(images) == ["jpg0", "jpg1"]
    assert labels[0].tolist() == [5]


# -- COCO ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def coco(tmp_path: Path) -> dict[str, str]:
    images = [
        {"id": 30, "file_name": "b.jpg", "height": 40, "width": 50},
        {"id": 7, "file_name": "a.jpg", "height": 20, "width": 20},
    ]
    for image in images:
        (tmp_path / str(image["file_name"])).write_text(str(image["file_name"]))
    annotations = [
        {
            "image_id": 30,
            "category_id": 10,
            "bbox": [5, 10, 20, 10],
            "iscrowd": 0,
            "segmentation": [[0, 0, 5, 0, 5, 5], [1, 1, 2, 2, 3, 1]],
        },
        {"image_id": 30, "category_id": 3, "bbox": [0, 0, 0.05, 9], "iscrowd": 0, "segmentation": []},
        {
            "image_id": 30,
            "category_id": 3,
            "bbox": [0, 0, 25, 40],
            "iscrowd": 1,
            "segmentation": {"size": [40, 50], "counts": []},
        },
    ]
    content = {"images": images, "annotations": annotations, "categories": [{"id": 3}, {"id": 10}]}
    (tmp_path / "instances.json").write_text(json.dumps(content))
    return {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "instances.json")}


def test_coco(coco: dict[str, str]) -> None:
    images, boxes, labels, numbers = _run(lambda: fn.readers.coco(image_ids=True, ltrb=True, ratio=True, **coco), 2)
    assert _texts(images) == ["a.jpg", "b.jpg"]
    assert boxes[0].shape == (0, 4)
    np.testing.assert_allclose(boxes[1], [[0.1, 0.25, 0.5, 0.5], [0, 0, 0.5, 1]])
    assert labels[1].tolist() == [2, 1]
    assert [number.tolist() for number in numbers] == [[7], [30]]


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31)])
def test_coco_numbers_of_32_bits(coco: dict[str, str], number: int) -> None:
    path = Path(coco["annotations_file"])
    path.write_text(path.read_text().replace('"id": 7,', f'"id": {number},'))
    assert number in [int(found[0]) for found in _run(lambda: fn.readers.coco(image_ids=True, **coco), 2)[-1]]


def test_coco_polygons_and_choices(coco: dict[str, str]) -> None:
    _, boxes, labels, polygons, vertices = _run(
        lambda: fn.readers.coco(
            polygon_masks=True, skip_empty=True, include_iscrowd=False, avoid_class_remapping=True, **coco
        ),
        1,
    )
    assert boxes[0].tolist() == [[5, 10, 20, 10]]
    assert labels[0].tolist() == [10]
    assert polygons[0].tolist() == [[0, 0, 3], [0, 3, 6]]
    assert vertices[0].tolist() == [[0, 0], [5, 0], [5, 5], [1, 1], [2, 2], [3, 1]]


def test_coco_masks_in_compressed_runs_and_objects_without_a_box(coco: dict[str, str]) -> None:
    path = Path(coco["annotations_file"])
    content = json.loads(path.read_text())
    # Rows 3 to 8 of columns 4 to 7, as `pycocotools.mask.encode` writes them.
    inside = {"size": [16, 16], "counts": "S26:00000m3"}
    first, second = content["annotations"][0], {"image_id": 7, "category_id": 3, "segmentation": []}
    content["images"] = [dict(content["images"][0], height=16, width=16), content["images"][1]]
    content["annotations"] = [dict(first, segmentation=inside), second]
    path.write_text(json.dumps(content))
    _, boxes, _, masks = _run(lambda: fn.readers.coco(pixelwise_masks=True, **coco), 2)
    assert [len(of_image) for of_image in boxes] == [0, 1]
    expected = np.zeros((16, 16, 1), np.int32)
    expected[3:9, 4:8] = 2
    np.testing.assert_array_equal(masks[1], expected)


@pytest.mark.parametrize("outlines", [[[2, 3, 10, 8]], [[2, 3, 10, 8], [5, 5]], [[2, 3]]])
def test_coco_masks_of_two_vertices_are_empty(coco: dict[str, str], outlines: list[list[int]]) -> None:
    """As in DALI; pycocotools would interpret the four coordinates as a box."""
    path = Path(coco["annotations_file"])
    content = json.loads(path.read_text())
    triangle = [2, 2, 12, 2, 12, 12]
    content["annotations"] = [
        {"image_id": 30, "category_id": category, "bbox": [0, 0, 9, 9], "segmentation": segmentation}
        for category, segmentation in ((10, outlines), (3, [triangle, *outlines]))
    ]
    path.write_text(json.dumps(content))
    _, _, _, masks = _run(lambda: fn.readers.coco(pixelwise_masks=True, **coco), 2)
    content["annotations"][1]["segmentation"] = [triangle]
    path.write_text(json.dumps(content))
    _, _, _, expected = _run(lambda: fn.readers.coco(pixelwise_masks=True, **coco), 2)
    np.testing.assert_array_equal(masks[1], expected[1])
    assert np.unique(masks[1]).tolist() == [0, 1]


def test_coco_preprocessed(coco: dict[str, str], tmp_path: Path) -> None:
    folder = str(tmp_path / "tables")
    options = {"polygon_masks": True, "image_ids": True}
    first = _run(
        lambda: fn.readers.coco(
            save_preprocessed_annotations=True, save_preprocessed_annotations_dir=folder, **options, **coco
        ),
        2,
    )
    second = _run(lambda: fn.readers.coco(preprocessed_annotations=folder, file_root=coco["file_root"], **options), 2)
    for ours, theirs in zip(first, second):
        for a, b in zip(ours, theirs):
            np.testing.assert_array_equal(a, b)


# -- frames --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sequences(tmp_path: Path) -> None:
    for stream, count in (("a", 4), ("b", 2)):
        (tmp_path / stream).mkdir()
        for i in range(count):
            Image.fromarray(np.full((4, 6, 3), 10 * i, np.uint8)).save(tmp_path / stream / f"{i}.png")
    pipeline = _pipeline(lambda: fn.readers.sequence(file_root=str(tmp_path), sequence_length=2, stride=2), 3)
    (batch,) = pipeline.run()
    assert batch.layout() == "FHWC"
    assert [np.array(sample)[:, 0, 0, 0].tolist() for sample in batch] == [[0, 20], [10, 30], [0, 20]]
    with pytest.raises(RuntimeError, match="Only RGB, BGR, GRAY or ANY_DATA"):
        _pipeline(
            lambda: fn.readers.sequence(file_root=str(tmp_path), sequence_length=2, image_type=types.YCbCr), 1
        ).build()


def test_records_are_not_skipped(records: dict[str, str]) -> None:
    features = {"none": tfrecord.VarLenFeature(tfrecord.int64, -1)}
    with pytest.raises(RuntimeError, match="doesn't support `skip_cached_images`"):
        _run(lambda: list(fn.readers.tfrecord(features=features, skip_cached_images=True, **records).values()), 1)


def test_feature_that_no_record_has(records: dict[str, str]) -> None:
    features = {
        "none": tfrecord.VarLenFeature(tfrecord.int64, -1),
        "half": tfrecord.FixedLenFeature([2], tfrecord.float32, 0.5),
    }
    lacking, also = _run(lambda: list(fn.readers.tfrecord(features=features, **records).values()), 3)
    assert [sample.shape for sample in (*lacking, *also)] == [()] * 6
    assert lacking[0].dtype == np.int64


def test_strings_of_one_element(records: dict[str, str]) -> None:
    (images,) = _run(
        lambda: list(
            fn.readers.tfrecord(
                features={"image": tfrecord.FixedLenFeature([1], tfrecord.string, "")}, **records
            ).values()
        ),
        2,
    )
    assert _texts(images) == ["image0", "image1"]


def test_shapes_are_of_integers() -> None:
    with pytest.raises(TypeError, match="integer"):
        tfrecord.FixedLenFeature(["a"], tfrecord.int64, 0)  # type: ignore[list-item]


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(RuntimeError, match="Corrupted tar file"):
        _run(lambda: fn.readers.webdataset(paths=str(tmp_path / "a.tar"), ext="jpg"), 1)


@pytest.mark.parametrize("default", [1.5, "a", None])
def test_default_of_another_type(default: Any) -> None:
    with pytest.raises(RuntimeError, match="Invalid type for default value, expected int"):
        tfrecord.FixedLenFeature([1], tfrecord.int64, default)


def test_feature_of_another_type(records: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"Expected `penstock.tfrecord.Feature` for the"):
        _run(lambda: list(fn.readers.tfrecord(features={"image": 10}, **records).values()), 1)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("", "no version signature found"),
        ("v0.1", r"Unsupported version of the index file \(v0.1\)"),
        ("v1.1", "no sample count found"),
        ("v1.1 -1", "sample count must be positive"),
        ("v1.1 1\n", "no extensions provided for the sample"),
        ("v1.1 1\njpg", "Could not find all necessary component parameters"),
        ("v1.1 1\njpg 1 0", "tar offset is not a multiple of tar block size"),
        ("v1.1 1\njpg 51200 1", "offset is outside of the archive file"),
    ],
)
def test_malformed_index(tmp_path: Path, index: str, message: str) -> None:
    with tarfile.open(tmp_path / "a.tar", "w"):
        pass
    (tmp_path / "a.idx").write_text(index)
    paths = {"paths": str(tmp_path / "a.tar"), "index_paths": str(tmp_path / "a.idx")}
    with pytest.raises(RuntimeError, match=f"Malformed index file.*{message}"):
        _run(lambda: fn.readers.webdataset(ext="jpg", **paths), 1)
