"""Every reader gives the same results for objects in S3 (moto's server) as for local files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from moto.server import ThreadedMotoServer
from PIL import Image

from penstock import DataNode, fn, pipeline_def, tfrecord
from penstock.storage import ANYWHERE, Cache, Retries, configure, use_cache

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

from fuzzing.other_seeds import data_sets

_FEATURES = {
    "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
    "label": tfrecord.VarLenFeature(tfrecord.int64, 0),
}
_PIECE = 8 << 20


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a subfolder for each data set."""
    root = tmp_path_factory.mktemp("data")
    for name, files in data_sets():
        # A data set may consist of several files.
        for path, content in files.items() if not (root / name).exists() else ():
            (root / name / path).parent.mkdir(parents=True, exist_ok=True)
            (root / name / path).write_bytes(content)
    for i in range(3):
        for folder in ("classes/a", "classes/b"):
            (root / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((4, 6, 3), 10 * i, np.uint8)).save(root / folder / f"{i}.png")
    (root / "classes" / "list.txt").write_text("a/2.png 5\nb/0.png 7\n")
    np.save(root / "classes" / "array.npy", np.arange(2_000_000, dtype=np.float32).reshape(2000, 1000))
    return root


@pytest.fixture(scope="module")
def bucket(local: Path) -> Iterator[str]:
    """Yield the URL of a bucket with the same data sets."""
    import fsspec

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as environment:
        server.start()
        host, port = server.get_host_and_port()
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        configure(Retries(attempts=2, timeout=10, first_pause=0.01))
        store = fsspec.filesystem("s3")
        store.mkdir("penstock")
        store.put(f"{local}/", "penstock/data/", recursive=True)
        yield "s3://penstock/data"
        configure(Retries())
        server.stop()


_READERS: dict[str, Callable[[str], Any]] = {
    "file, a folder": lambda root: fn.readers.file(file_root=f"{root}/classes", random_shuffle=True, seed=1),
    "file, a list": lambda root: fn.readers.file(file_list=f"{root}/classes/list.txt"),
    "numpy, a folder": lambda root: fn.readers.numpy(file_root=f"{root}/classes"),
    "numpy, a region": lambda root: fn.readers.numpy(
        files=[f"{root}/classes/array.npy"], roi_start=[100, 10], roi_shape=[20, 30]
    ),
    "webdataset": lambda root: fn.readers.webdataset(paths=[f"{root}/webdataset/a.tar"], ext=["jpg", "cls"]),
    "webdataset, indexed": lambda root: fn.readers.webdataset(
        paths=[f"{root}/webdataset/a.tar"], index_paths=[f"{root}/webdataset/a.idx"], ext=["jpg", "cls"]
    ),
    "tfrecord": lambda root: fn.readers.tfrecord(
        path=f"{root}/tfrecord/a.tfrecord", index_path=f"{root}/tfrecord/a.idx", features=_FEATURES
    ),
    "mxnet": lambda root: fn.readers.mxnet(path=f"{root}/mxnet/a.rec", index_path=f"{root}/mxnet/a.idx"),
    "coco": lambda root: fn.readers.coco(
        file_root=f"{root}/coco", annotations_file=f"{root}/coco/a.json", polygon_masks=True
    ),
    "nemo_asr": lambda root: fn.readers.nemo_asr(manifest_filepaths=[f"{root}/nemo_asr/manifest.json"]),
    "sequence": lambda root: fn.readers.sequence(file_root=f"{root}/classes", sequence_length=2),
    "fits": lambda root: fn.experimental.readers.fits(files=[f"{root}/fits/a.fits"]),
    "video": lambda root: fn.experimental.readers.video(filenames=[f"{root}/clips/a.mp4"], sequence_length=3),
    "io.file.read": lambda root: fn.io.file.read(np.frombuffer(f"{root}/classes/list.txt".encode(), np.uint8)),
}


def _batches(define: Callable[[str], Any], root: str) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=2, num_threads=2, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        outputs = define(root)
        outputs = outputs.values() if isinstance(outputs, dict) else outputs
        return outputs if isinstance(outputs, DataNode) else tuple(outputs)

    with pipeline() as running:
        return [[np.array(sample) for sample in batch] for _ in range(2) for batch in running.run()]


@pytest.mark.every_case
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("reader", _READERS)
def test_every_reader(bucket: str, local: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The manifests contain paths relative to the working directory.
    monkeypatch.chdir(local / "nemo_asr")
    define = _READERS[reader]
    for received, expected in zip(_batches(define, bucket), _batches(define, str(local)), strict=True):
        for one, other in zip(received, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.every_case
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("reader", _READERS)
def test_every_reader_reads_what_was_kept(
    bucket: str, local: Path, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(local / "nemo_asr")
    define = _READERS[reader]
    expected = _batches(define, str(local))
    cache = Cache(tmp_path / "cache", check_after=0)
    use_cache(cache)
    try:
        for time in range(3):
            fetched = cache.misses
            for one, other in zip(_batches(define, bucket), expected, strict=True):
                for received, wanted in zip(one, other, strict=True):
                    np.testing.assert_array_equal(received, wanted)
            # In the first runs, the amount of data read ahead varies.
            assert time < 2 or cache.misses == fetched
    finally:
        use_cache(None)
    assert cache.hits


def test_a_changed_object_in_a_listed_folder_is_noticed(bucket: str, tmp_path: Path) -> None:
    import fsspec

    use_cache(Cache(tmp_path / "cache", check_after=0))
    try:
        for content in (b"first", b"other"):
            fsspec.filesystem("s3").pipe("penstock/changing/a.bin", content)
            assert ANYWHERE.list_folder("s3://penstock/changing") == (["a.bin"], [])
            for _ in range(2):
                assert ANYWHERE.read("s3://penstock/changing/a.bin").tobytes() == content
    finally:
        use_cache(None)


def test_databases_must_be_local(bucket: str) -> None:
    with pytest.raises(ValueError, match="must be a local folder: copy 's3://penstock/data/caffe' first"):
        _batches(lambda root: fn.readers.caffe(path=f"{root}/caffe"), bucket)


@pytest.mark.parametrize("size", [0, 1, _PIECE - 1, _PIECE, _PIECE + 1])
def test_objects_of_any_size(bucket: str, size: int) -> None:
    import fsspec

    content = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    fsspec.filesystem("s3").pipe(f"penstock/{size}.bin", content.tobytes())
    np.testing.assert_array_equal(ANYWHERE.read(f"s3://penstock/{size}.bin"), content)


@pytest.mark.parametrize("path", ["s3://penstock/none.bin", "s3://no-bucket/a.bin"])
def test_what_is_missing_is_named(bucket: str, path: str) -> None:
    with pytest.raises(FileNotFoundError, match=path):
        ANYWHERE.read(path)
    with pytest.raises(OSError, match="ends before byte 4000012"):
        ANYWHERE.read_range("s3://penstock/data/classes/list.txt", 12, 4_000_000)
