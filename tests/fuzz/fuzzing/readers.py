"""Fuzzing of readers, with data sets in which one file is mutated, and of the video input, which is fed one clip after the other."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing.other_seeds import Files
from fuzzing.outcomes import NEIGHBOUR, OK, Outcome, of_error
from fuzzing.settings import Settings, pipeline_with
from penstock import fn, tfrecord
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU


@dataclass(frozen=True)
class ReaderTarget:
    """A reader to fuzz.

    Attributes:
        name: the target's name.
        formats: the kind of data set that the reader reads.
        define: a function from the folders of data sets to the outputs.
        takes_several: whether the reader takes several data sets; then a good one precedes the mutated one.
    """

    name: str
    formats: tuple[str, ...]
    define: Callable[[Sequence[str]], Any]
    takes_several: bool = True
    files_per_run: int = 16


_FEATURES = {
    "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
    "label": tfrecord.VarLenFeature(tfrecord.int64, 0),
    "box": tfrecord.FixedLenFeature([4], tfrecord.float32, 0.0),
}


def _tfrecord(folders: Sequence[str]) -> Any:
    found = fn.readers.tfrecord(
        path=[f"{folder}/a.tfrecord" for folder in folders],
        index_path=[f"{folder}/a.idx" for folder in folders],
        features=_FEATURES,
    )
    return tuple(found.values())


def _mxnet(folders: Sequence[str]) -> Any:
    return fn.readers.mxnet(path=[f"{folders[-1]}/a.rec"], index_path=[f"{folders[-1]}/a.idx"])


def _webdataset(folders: Sequence[str]) -> Any:
    return fn.readers.webdataset(paths=[f"{folder}/a.tar" for folder in folders], ext=["jpg", "cls"])


def _indexed_webdataset(folders: Sequence[str]) -> Any:
    indices = [f"{folder}/a.idx" for folder in folders]
    return fn.readers.webdataset(
        paths=[f"{folder}/a.tar" for folder in folders], index_paths=indices, ext=["jpg", "cls"]
    )


def _coco(folders: Sequence[str], **arguments: Any) -> Any:
    return fn.readers.coco(file_root=folders[-1], annotations_file=f"{folders[-1]}/a.json", **arguments)


def _nemo_asr(folders: Sequence[str]) -> Any:
    return fn.readers.nemo_asr(manifest_filepaths=[f"{folder}/manifest.json" for folder in folders], sample_rate=8000)


def _sequence(folders: Sequence[str]) -> Any:
    return fn.readers.sequence(file_root=folders[-1], sequence_length=2)


READER_TARGETS = (
    ReaderTarget("readers.tfrecord", ("tfrecord",), _tfrecord),
    ReaderTarget("readers.mxnet", ("mxnet",), _mxnet, False),
    ReaderTarget("readers.webdataset", ("webdataset",), _webdataset),
    ReaderTarget("readers.webdataset, indexed", ("webdataset",), _indexed_webdataset),
    ReaderTarget("readers.coco, polygons", ("coco",), lambda f: _coco(f, polygon_masks=True, ratio=True), False),
    ReaderTarget("readers.coco, pixels", ("coco",), lambda f: _coco(f, pixelwise_masks=True, image_ids=True), False),
    ReaderTarget(
        "readers.file", ("file_list",), lambda f: fn.readers.file(file_list=f"{f[-1]}/list.txt"), takes_several=False
    ),
    ReaderTarget("readers.numpy", ("numpy",), lambda f: fn.readers.numpy(files=[f"{folder}/a.npy" for folder in f])),
    ReaderTarget(
        "readers.fits",
        ("fits",),
        lambda f: fn.experimental.readers.fits(files=[f"{folder}/a.fits" for folder in f]),
    ),
    ReaderTarget("readers.caffe", ("caffe",), lambda f: fn.readers.caffe(path=list(f))),
    ReaderTarget("readers.caffe2", ("caffe2",), lambda f: fn.readers.caffe2(path=list(f))),
    ReaderTarget("readers.nemo_asr", ("nemo_asr",), _nemo_asr),
    ReaderTarget("readers.sequence", ("sequence",), _sequence, False),
    ReaderTarget(
        "readers.video",
        ("clips",),
        lambda f: fn.experimental.readers.video(filenames=[f"{folder}/a.mp4" for folder in f], sequence_length=3),
    ),
)

_BATCH, _BATCHES = 2, 3


class RunningReader:
    """Builds a pipeline for each data set, and runs a few batches."""

    def __init__(self, target: ReaderTarget, sets: Sequence[Files], settings: Settings) -> None:
        self.target = target
        self._settings = settings
        self._root = Path(
            tempfile.mkdtemp(prefix="penstock-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        )
        # Paths in manifests are relative to the working directory.
        os.chdir(self._root)
        self._number = 0
        self._good = self._written(sets[0])
        shutil.copytree(self._good, self._root, dirs_exist_ok=True)
        self._expected = self._first_sample([str(self._good)])

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._root, ignore_errors=True)

    def _written(self, files: Files) -> Path:
        # Each data set gets a new folder, because some libraries cache files by path.
        self._number += 1
        folder = self._root / str(self._number)
        folder.mkdir()
        if self.target.name.startswith("readers.caffe"):
            _write_lmdb(folder, files)
        else:
            for name, data in files.items():
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
        return folder

    def _first_sample(self, folders: Sequence[str]) -> list[np.ndarray]:
        first: list[np.ndarray] = []
        with pipeline_with(self._settings, _BATCH, lambda: self.target.define(folders)) as pipeline:
            for number in range(_BATCHES):
                result = pipeline.executor.run_once(isolate=True)
                for batch in result.outputs:
                    for sample in batch.samples:
                        np.asarray(sample).tobytes()
                if number == 0 and 0 not in result.failures:
                    first = [np.array(batch.samples[0]) for batch in result.outputs]
                for failure in result.failures.values():
                    raise failure
        return first

    def run(self, rng: Random, sets: Sequence[Files]) -> list[Outcome]:
        """Read mutated data sets, one after the other; return the outcome of each."""
        return [self._outcome(files) for files in sets]

    def _outcome(self, files: Files) -> Outcome:
        folder = self._written(files)
        folders = [str(self._good), str(folder)] if self.target.takes_several else [str(folder)]
        try:
            first = self._first_sample(folders)
        except Exception as error:
            return of_error(error, os_errors=True)
        finally:
            shutil.rmtree(folder)
        if self.target.takes_several and not _equal(first, self._expected):
            return Outcome(NEIGHBOUR, "the good data set came out as other values", "values")
        return Outcome(OK)


def _write_lmdb(folder: Path, records: Mapping[str, bytes]) -> None:
    import lmdb

    with (
        lmdb.open(str(folder), map_size=1 << 20, sync=False, lock=False) as database,
        database.begin(write=True) as transaction,
    ):
        for name, record in records.items():
            transaction.put(name.encode(), record)


def _equal(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    return len(found) == len(expected) and all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(found, expected)
    )


@dataclass(frozen=True)
class InputTarget:
    """`inputs.video`, which takes one clip at a time."""

    name: str = "inputs.video"
    formats: tuple[str, ...] = ("video",)
    files_per_run: int = 8


class RunningInput:
    """A pipeline that is fed one clip after the other; every second clip is good."""

    def __init__(self, target: InputTarget, clips: Sequence[bytes], settings: Settings) -> None:
        self.target = target
        self._pipeline = pipeline_with(
            settings, 8, lambda: fn.experimental.inputs.video(name="encoded", sequence_length=2)
        )
        self._good = [(clip, self._frames(clip)) for clip in clips[::3]]

    def close(self) -> None:
        self._pipeline.close()

    def _frames(self, clip: bytes) -> list[np.ndarray]:
        sources = PipelineRunner(self._pipeline).sources
        batch = TensorListCPU.of_samples([np.frombuffer(bytearray(clip), np.uint8)], "")
        sources["encoded"].feed(batch)
        frames: list[np.ndarray] = []
        try:
            while sources["encoded"].has_data():
                result = self._pipeline.executor.run_once(isolate=True)
                for failure in result.failures.values():
                    raise failure
                frames += [np.array(sample) for sample in result.outputs[0].samples]
        finally:
            sources["encoded"].drop()
        return frames

    def run(self, rng: Random, clips: Sequence[bytes]) -> list[Outcome]:
        """Feed mutated clips, each followed by a good one; return the outcome of each mutated clip."""
        outcomes = []
        for clip in clips:
            try:
                self._frames(clip)
                outcome = Outcome(OK)
            except Exception as error:
                outcome = of_error(error)
            good, expected = rng.choice(self._good)
            if not _equal(self._frames(good), expected):
                outcome = Outcome(NEIGHBOUR, "the clip behind came out as other frames", "values")
            outcomes.append(outcome)
        return outcomes
