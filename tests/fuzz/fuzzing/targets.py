"""The fuzzed pipelines, which run as in serving, on batches of mutated and valid files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fuzzing.fences import fenced_copy
from fuzzing.image_seeds import Seed
from fuzzing.other_seeds import INFLATED
from fuzzing.outcomes import NEIGHBOUR, OK, UNTYPED, Outcome, of_error
from fuzzing.readers import READER_TARGETS, InputTarget, ReaderTarget, RunningInput, RunningReader
from fuzzing.seeds import Seeds
from fuzzing.settings import Settings, pipeline_with
from penstock import fn, types
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU

_NEIGHBOURS = 2
"""The number of good files in each batch."""

IMAGES = ("jpeg", "png", "webp", "bmp", "pnm", "tiff", "jpeg2k", "gif", "avif", "ico", "foreign")
SOUNDS = ("wav", "flac", "ogg", "mp3", "sound")


@dataclass(frozen=True)
class Target:
    """A pipeline with one input of encoded files.

    Attributes:
        name: the target's name.
        formats: the formats of the files that the pipeline is fed.
        define: a function from the input to the outputs.
        files_per_run: the number of mutated files in a batch.
        outputs_vary: whether the outputs of good files vary from run to run; then it is only checked that there are outputs.
    """

    name: str
    formats: tuple[str, ...]
    define: Callable[[Any], Any]
    files_per_run: int = 64
    outputs_vary: bool = False


def _image(**arguments: Any) -> Callable[[Any], Any]:
    return lambda encoded: fn.decoders.image(encoded, **arguments)


def _normalized(encoded: Any) -> Any:
    resized = fn.resize(fn.decoders.image(encoded), resize_x=24, resize_y=24)
    return fn.crop_mirror_normalize(resized, crop=(20, 20), mean=[1.0] * 3, std=[2.0] * 3, dtype=types.FLOAT)


def _in_chunks(encoded: Any) -> Any:
    """Return a sample's chunks, whose offsets are in the first bytes of the sample."""
    numbers = fn.reinterpret(fn.slice(encoded, 0, 8, axes=[0], out_of_bounds_policy="pad"), dtype=types.INT32)
    return fn.decoders.inflate(encoded, shape=[INFLATED], chunk_offsets=numbers, check_output_size=True)


TARGETS = (
    Target("image", IMAGES, _image()),
    Target("image BGR fast", IMAGES, _image(output_type=types.BGR, use_fast_idct=True)),
    Target("image GRAY as stored", IMAGES, _image(output_type=types.GRAY, adjust_orientation=False)),
    Target("image YCbCr", IMAGES, _image(output_type=types.YCbCr)),
    Target("image ANY_DATA", IMAGES, _image(output_type=types.ANY_DATA)),
    Target("image ANY_DATA uint16", IMAGES, _image(output_type=types.ANY_DATA, dtype=types.UINT16)),
    Target("image float", IMAGES, _image(dtype=types.FLOAT)),
    Target("image at 1/2", IMAGES, _image(scale="1/2")),
    Target(
        "image fast, resize",
        IMAGES,
        lambda encoded: fn.resize(fn.decoders.image(encoded, scale="fast"), size=(6, 24)),
    ),
    Target("image_crop", IMAGES, lambda encoded: fn.decoders.image_crop(encoded, crop=(30, 40), crop_pos_x=0.8)),
    Target(
        "image_slice",
        IMAGES,
        lambda encoded: fn.decoders.image_slice(encoded, rel_start=[0.1, 0.3], rel_shape=[0.85, 0.6]),
    ),
    Target("image_random_crop", IMAGES, lambda encoded: fn.decoders.image_random_crop(encoded), outputs_vary=True),
    Target("image, crop", IMAGES, lambda encoded: fn.crop(fn.decoders.image(encoded), crop=(24, 36))),
    Target("image, resize, normalize", IMAGES, _normalized),
    Target("peek_image_shape", IMAGES, lambda encoded: fn.peek_image_shape(encoded)),
    Target("audio", SOUNDS, lambda encoded: fn.decoders.audio(encoded)),
    Target("audio int16 downmix", SOUNDS, lambda encoded: fn.decoders.audio(encoded, dtype=types.INT16, downmix=True)),
    Target("audio resampled", SOUNDS, lambda encoded: fn.decoders.audio(encoded, sample_rate=8000.0)),
    Target("numpy", ("npy",), lambda encoded: fn.decoders.numpy(encoded)),
    Target("numpy float", ("npy",), lambda encoded: fn.decoders.numpy(encoded, dtype=types.FLOAT)),
    Target("inflate", ("lz4",), lambda encoded: fn.decoders.inflate(encoded, shape=[INFLATED])),
    Target("inflate chunks", ("chunks",), _in_chunks),
    Target("video", ("video",), lambda encoded: fn.decoders.video(encoded), 16),
    Target(
        "video frames", ("video",), lambda encoded: fn.decoders.video(encoded, frames=[5, 0, 2], pad_mode="edge"), 16
    ),
)


_Good = tuple[bytes, list[np.ndarray]]
"""A good file, and its outputs."""


ALL_TARGETS: tuple[Target | ReaderTarget | InputTarget, ...] = (*TARGETS, InputTarget(), *READER_TARGETS)


class Running:
    """A target's pipeline, and the good files for its batches, whose outputs are known."""

    def __init__(self, target: Target, seeds: Sequence[Seed], settings: Settings, fences: bool) -> None:
        self.target = target
        self._pipeline = pipeline_with(settings, target.files_per_run + _NEIGHBOURS, self._defined)
        self._runner = PipelineRunner(self._pipeline)
        self._bytes: Callable[[np.ndarray], np.ndarray] = fenced_copy if fences else np.array
        self._good = self._decodable(seeds)
        if not self._good:
            raise RuntimeError(f"none of the seeds is decoded by '{target.name}'")

    def close(self) -> None:
        self._pipeline.close()

    def _defined(self) -> Any:
        return self.target.define(fn.external_source(name="encoded", device="cpu", ndim=1, dtype=types.UINT8))

    def _decodable(self, seeds: Sequence[Seed]) -> list[_Good]:
        """Return the seeds that can be decoded, with the outputs of each if it is decoded alone."""
        good = []
        for data in _spread([data for format, data in seeds if format in self.target.formats]):
            try:
                result = self._run([data])
            except Exception:
                continue
            if not result.failures:
                good.append((data, [np.array(batch.samples[0]) for batch in result.outputs]))
        ranks = [[array.ndim for array in outputs] + [array.dtype for array in outputs] for _, outputs in good]
        return [entry for entry, rank in zip(good, ranks) if rank == ranks[0]]

    def _run(self, files: Sequence[bytes]) -> Any:
        samples = [self._bytes(np.frombuffer(data, np.uint8)) for data in files]
        return self._runner.run({"encoded": TensorListCPU.of_samples(samples, "")}, len(files))

    def run(self, rng: Random, files: Sequence[bytes]) -> list[Outcome]:
        """Decode mutated files in one batch with good ones; return the outcome of each mutated file."""
        neighbours = [rng.choice(self._good) for _ in range(_NEIGHBOURS)]
        places = sorted(rng.sample(range(len(files) + _NEIGHBOURS), _NEIGHBOURS))
        batch = list(files)
        for place, (data, _) in zip(places, neighbours):
            batch.insert(place, data)
        try:
            result = self._run(batch)
        except Exception as error:
            return self._one_by_one(files, neighbours, error)
        wrong = [
            wrong
            for place, (_, expected) in zip(places, neighbours)
            if (wrong := self._difference(result, place, expected))
        ]
        outcomes = []
        for index in (i for i in range(len(batch)) if i not in places):
            outcome = of_error(result.failures[index]) if index in result.failures else _read(result, index)
            outcomes.append(Outcome(NEIGHBOUR, wrong[0], wrong[0]) if wrong else outcome)
        return outcomes

    def _one_by_one(self, files: Sequence[bytes], neighbours: Sequence[_Good], refusal: Exception) -> list[Outcome]:
        """Run files one by one, as a server does after a batch was refused as a whole; return the outcome of each."""
        refused = of_error(refusal)
        if refused.kind == UNTYPED:
            return [refused] * len(files)
        for data, expected in neighbours:
            wrong = self._difference(self._run([data]), 0, expected)
            if wrong:
                return [Outcome(NEIGHBOUR, wrong, "alone")] * len(files)
        outcomes = []
        for file in files:
            try:
                result = self._run([file])
                outcomes.append(of_error(result.failures[0]) if result.failures else _read(result, 0))
            except Exception as error:
                outcomes.append(of_error(error))
        return outcomes

    def _difference(self, result: Any, place: int, expected: Sequence[np.ndarray]) -> str:
        """Return how a good file's outputs differ from the expected ones; empty if they do not."""
        if place in result.failures:
            return f"a good file failed: {of_error(result.failures[place])}"
        for batch, wanted in zip(result.outputs, expected):
            found = np.asarray(batch.samples[place])
            if self.target.outputs_vary:
                if not found.size:
                    return "a good file's output is empty"
            elif found.shape != wanted.shape or found.dtype != wanted.dtype or found.tobytes() != wanted.tobytes():
                return f"a good file came out as other values, of shape {found.shape} instead of {wanted.shape}"
        return ""


def _spread(files: list[bytes], most: int = 40) -> list[bytes]:
    """Return at most ``most`` of the files, evenly spread."""
    return files[:: max(len(files) // most, 1)]


def _read(result: Any, index: int) -> Outcome:
    """Return the outcome of a file, after reading its outputs as a server would."""
    for batch in result.outputs:
        np.asarray(batch.samples[index]).tobytes()[-1:]
    return Outcome(OK)


def running(name: str, seeds: Seeds, settings: Settings, fences: bool) -> Running | RunningInput | RunningReader:
    """Return the target ``name``, ready to run.

    Args:
        fences: whether memory is allocated between inaccessible pages.
    """
    target = next(target for target in ALL_TARGETS if target.name == name)
    if isinstance(target, ReaderTarget):
        return RunningReader(target, [files for format in target.formats for files in seeds.sets[format]], settings)
    if isinstance(target, InputTarget):
        return RunningInput(target, [data for format in target.formats for data in seeds.files[format]], settings)
    return Running(
        target, [(format, data) for format, files in seeds.files.items() for data in files], settings, fences
    )
