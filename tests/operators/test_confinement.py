"""Operators of a confined pipeline access no file outside of its folders, wherever the path comes from."""

import io
import json
import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import ConfinedPathError
from penstock.schema import find_schema, operator_class
from penstock.schema.registry import all_schemas, load_package
from penstock.storage import Files

load_package("penstock.operators")

_PATH_ARGUMENTS = [(schema.name, argument) for schema in all_schemas() for argument in schema.path_arguments]


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (tmp_path / "inside").mkdir()
    return tmp_path / "inside"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Write files that readers would accept, outside of the pipeline's folders; return their folder."""
    folder = tmp_path / "secret"
    (folder / "class").mkdir(parents=True)
    (folder / "class" / "secret.txt").write_text("secret")
    np.save(folder / "secret.npy", np.arange(3))
    Image.new("RGB", (4, 4)).save(folder / "secret.png")
    return folder


def _run(define: Callable[[], Any], inside: Path, *more: str, **settings: Any) -> list[Any]:
    pipeline = pipeline_def(define)(
        batch_size=1, num_threads=1, device_id=None, confined_to=[str(inside), *more], **settings
    )
    try:
        return [np.array(output[0]) for output in pipeline.run()]
    finally:
        pipeline.close()


def _refuses(define: Callable[[], Any], inside: Path) -> None:
    with pytest.raises(RuntimeError, match="outside of what the pipeline is confined to"):
        _run(define, inside)


# -- declared paths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "argument"), _PATH_ARGUMENTS)
def test_arguments_that_name_paths_are_held_against_the_folders(name: str, argument: str, inside: Path) -> None:
    value: Any = "/etc/passwd"
    if find_schema(name).all_arguments[argument].is_list:
        value = [str(inside / "a"), value]
    with pytest.raises(ConfinedPathError, match="'/etc/passwd' is outside"):
        operator_class(name)({argument: value}, schema=find_schema(name), files=Files([str(inside)]))


@pytest.mark.parametrize("schema", list(all_schemas()), ids=lambda schema: schema.name)
def test_what_sounds_like_a_path_is_declared_as_one(schema: Any) -> None:
    for argument in schema.arguments:
        sounds = re.search(r"(^|_)(path|paths|filepaths|root|files|filenames|file|file_list|dir)$", argument.name)
        if sounds and argument.type in ("string", "string[]") and argument.deprecated is None:
            assert argument.path, f"{schema.name}: `{argument.name}`"


# -- locations of files ------------------------------------------------------------------------------------------------


def test_relative_paths_start_from_the_first_folder(inside: Path) -> None:
    assert Files([str(inside), "/"]).path("a/b.txt") == str(inside.resolve() / "a/b.txt")


@pytest.mark.parametrize("path", ["../secret/class/secret.txt", "a/../../secret", "/etc/passwd", "file:///etc/passwd"])
def test_paths_that_lead_outside(path: str, inside: Path) -> None:
    with pytest.raises(ConfinedPathError):
        Files([str(inside)]).path(path)


def test_a_folder_whose_name_begins_alike_is_another(inside: Path) -> None:
    with pytest.raises(ConfinedPathError):
        Files([str(inside)]).path(f"{inside}-not/a")


def test_links_are_followed(inside: Path, secret: Path) -> None:
    (inside / "out").symlink_to(secret)
    (inside / "real").mkdir()
    (inside / "in").symlink_to(inside / "real")
    with pytest.raises(ConfinedPathError):
        Files([str(inside)]).path("out/secret.npy")
    assert Files([str(inside)]).path("in/a") == str(inside.resolve() / "real/a")


def test_a_root_may_be_a_link(inside: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(inside)
    assert Files([str(tmp_path / "link")]).path("a") == str(inside.resolve() / "a")


def test_remote_paths_begin_with_an_allowed_one(inside: Path) -> None:
    files = Files([str(inside), "s3://bucket/photos/"])
    assert files.path("s3://bucket/photos/a.jpg") == "s3://bucket/photos/a.jpg"
    for path in (
        "s3://bucket/other",
        "s3://bucket/photos-of-others/a.jpg",
        "s3://bucket/photos/../other",
        "s3://bucket/photos/%2e%2e/other",
        "s3://bucket/photos/a::file:///etc/passwd",
        "simplecache::s3://bucket/photos/a.jpg",
        "https://example.org/",
    ):
        with pytest.raises(ConfinedPathError):
            files.path(path)


def test_without_folders_all_is_allowed() -> None:
    assert Files().path("../a") == "../a"


# -- paths that readers find in files ----------------------------------------------------------------------------------


def test_lists_of_files(inside: Path, secret: Path) -> None:
    (inside / "list.txt").write_text(f"{secret}/class/secret.txt 0\n")
    _refuses(lambda: tuple(fn.readers.file(file_list="list.txt")), inside)
    (inside / "names.txt").write_text("../secret/secret.npy\n")
    _refuses(lambda: fn.readers.numpy(file_list="names.txt"), inside)
    (inside / "clips.txt").write_text(f"{secret}/clip.mp4 0\n")
    _refuses(lambda: tuple(fn.experimental.readers.video(file_list="clips.txt", sequence_length=1)), inside)


def test_roots_and_what_is_joined_with_them(inside: Path, secret: Path) -> None:
    _refuses(lambda: tuple(fn.readers.file(file_root="../secret")), inside)
    _refuses(lambda: tuple(fn.readers.file(files=["../secret/class/secret.txt"])), inside)
    _refuses(lambda: tuple(fn.readers.file(file_root="..", files=["secret/class/secret.txt"])), inside)
    _refuses(lambda: fn.readers.numpy(files=["../secret/secret.npy"]), inside)
    _refuses(lambda: fn.readers.numpy(files=["../secret/secret.npy"], roi_start=[1], roi_end=[2]), inside)
    _refuses(lambda: fn.experimental.readers.video(filenames=["../secret/clip.mp4"], sequence_length=1), inside)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_links_in_folders(inside: Path, secret: Path) -> None:
    (inside / "class").symlink_to(secret / "class")
    _refuses(lambda: tuple(fn.readers.file(file_root=".")), inside)
    (inside / "stream").mkdir()
    (inside / "stream" / "frame.png").symlink_to(secret / "secret.png")
    _refuses(lambda: fn.readers.sequence(file_root=".", sequence_length=1), inside)


def test_annotations(inside: Path, secret: Path) -> None:
    image = {"id": 1, "file_name": "../secret/secret.png", "width": 4, "height": 4}
    box = {"image_id": 1, "bbox": [0, 0, 1, 1], "category_id": 1}
    (inside / "boxes.json").write_text(json.dumps({"images": [image], "annotations": [box], "categories": [{"id": 1}]}))
    define = lambda **more: fn.readers.coco(file_root=".", annotations_file="boxes.json", **more)  # noqa: E731
    _refuses(lambda: tuple(define()), inside)
    into_secret = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": "../secret"}
    _refuses(lambda: tuple(define(**into_secret)), inside)
    assert not list(secret.glob("*.dat"))
    (inside / "tables").mkdir()
    (inside / "tables" / "filenames.dat").symlink_to(secret / "class" / "secret.txt")
    _refuses(lambda: tuple(fn.readers.coco(file_root=".", preprocessed_annotations="tables")), inside)


def test_manifests(inside: Path, secret: Path) -> None:
    (inside / "manifest.json").write_text(json.dumps({"audio_filepath": f"{secret}/a.wav", "duration": 1, "text": ""}))
    _refuses(lambda: tuple(fn.readers.nemo_asr(manifest_filepaths=["manifest.json"])), inside)


def test_archives_and_records(inside: Path, secret: Path) -> None:
    with tarfile.open(secret / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    (inside / "a.tar").symlink_to(secret / "a.tar")
    _refuses(lambda: fn.readers.webdataset(paths=["a.tar"], ext=["txt"]), inside)
    (inside / "a.idx").write_text("0 20\n")
    (inside / "a.rec").symlink_to(secret / "secret.npy")
    _refuses(lambda: tuple(fn.readers.mxnet(path="a.rec", index_path="a.idx")), inside)
    features = {"label": types_feature()}
    _refuses(lambda: fn.readers.tfrecord(path="a.rec", index_path="a.idx", features=features)["label"], inside)


def types_feature() -> Any:
    from penstock import tfrecord

    return tfrecord.FixedLenFeature([1], tfrecord.int64, 0)


def test_playlists(inside: Path, secret: Path) -> None:
    import av

    with av.open(str(secret / "clip.ts"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for _ in range(10):
            pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.3,\nfile://{secret}/clip.ts\n#EXT-X-ENDLIST\n"
    (inside / "clip.m3u8").write_text(playlist)
    av.open(str(inside / "clip.m3u8")).close()
    define = lambda: fn.experimental.readers.video(filenames=["clip.m3u8"], sequence_length=1)  # noqa: E731
    with pytest.raises(ValueError, match="Failed to open the video"):
        _run(define, inside)


def test_databases(inside: Path, secret: Path) -> None:
    import lmdb

    with lmdb.open(str(secret / "db")) as database, database.begin(write=True) as transaction:
        transaction.put(b"0", b"")
    (inside / "db").mkdir()
    (inside / "db" / "data.mdb").symlink_to(secret / "db" / "data.mdb")
    _refuses(lambda: tuple(fn.readers.caffe(path="db")), inside)
    _refuses(lambda: tuple(fn.readers.caffe2(path="../secret/db")), inside)


# -- paths that come with the data -------------------------------------------------------------------------------------


def _named(path: str) -> Any:
    return fn.external_source(lambda: [np.frombuffer(path.encode(), np.uint8)])


def test_paths_that_are_data(inside: Path, secret: Path) -> None:
    (inside / "a.txt").write_text("mine")
    (inside / "link").symlink_to(secret / "class" / "secret.txt")
    assert _run(lambda: fn.io.file.read(_named("a.txt")), inside)[0].tobytes() == b"mine"
    for path in (f"{secret}/class/secret.txt", "../secret/class/secret.txt", "link", "file:///etc/passwd"):
        _refuses(lambda path=path: fn.io.file.read(_named(path)), inside)
    more = _run(lambda: fn.io.file.read(_named(f"{secret}/class/secret.txt")), inside, str(secret))
    assert more[0].tobytes() == b"secret"


def test_paths_that_are_constants_are_not_read_at_build(inside: Path, secret: Path) -> None:
    path = np.frombuffer(f"{secret}/class/secret.txt".encode(), np.uint8)
    _refuses(lambda: fn.io.file.read(types.Constant(path)), inside)


def test_images_are_dumped_into_the_folder(inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir(inside / "0-")
    image = types.Constant(np.zeros((2, 2, 3), np.uint8))
    _run(lambda: fn.dump_image(image, suffix="mine"), inside)
    assert [path.name for path in inside.glob("*.ppm")] == ["0-mine-0.ppm"]
    _refuses(lambda: fn.dump_image(image, suffix="/../../escaped"), inside)
    assert not list(tmp_path.glob("*.ppm"))


# -- saved pipelines ---------------------------------------------------------------------------------------------------


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def _reading(root: str) -> Any:
    return tuple(fn.readers.file(file_root=root, file_filters=["*.txt"], lazy_init=True))


def test_saved_pipelines_are_confined(inside: Path, secret: Path) -> None:
    settings: dict[str, Any] = {"confined_to": [str(inside)]}
    _reading(str(secret)).save(str(inside / "a.json"))
    serialized = _reading(str(secret)).serialize()
    for load in (
        lambda: Pipeline.load(str(inside / "a.json"), **settings).build(),
        lambda: Pipeline.deserialize(serialized, **settings),
    ):
        with pytest.raises(RuntimeError, match="`penstock serve --allow-path` grants more"):
            load()
    both = {"confined_to": [str(inside), str(secret)]}
    pipeline = Pipeline.load(str(inside / "a.json"), **both)
    assert np.array(pipeline.run()[0][0]).tobytes() == b"secret"
    pipeline.close()
