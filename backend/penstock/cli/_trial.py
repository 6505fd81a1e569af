"""A pipeline tried on given files: what each operator makes of them, and how fused operators came by their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import UINT8, numpy_dtype
from penstock.errors import PenstockError, did_you_mean
from penstock.graph import OpNode
from penstock.pipeline import Pipeline
from penstock.runtime import Result
from penstock.runtime.sources import Source
from penstock.schema.fused import AT_ONCE, FusedOperator
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.serving.probing import TensorInfo, declared_inputs, source_steps, streams
from penstock.tensors import TensorList, TensorListCPU

if TYPE_CHECKING:
    from penstock.runtime.plan import Step


class InputError(PenstockError, ValueError):
    """The files do not suit the pipeline's inputs."""


@dataclass
class Trial:
    """What came of a run.

    Attributes:
        outputs: of each operator as it was written, by its name.
        seconds: that each operator took, by its name.
        failures: errors by sample.
        counts: of each fused operator, by its name: how many samples it computed at once, and how many step by step and why.
    """

    outputs: dict[str, list[TensorList]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[int, PenstockError] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def how_computed(self, name: str) -> str:
        """How the fused operator of that name came by its results."""
        in_turn = {reason: count for reason, count in self.counts[name].items() if reason != AT_ONCE}
        if not in_turn:
            return "all samples at once"
        reasons = ", ".join(f"{count} for {reason}" for reason, count in in_turn.items())
        return f"{self.counts[name][AT_ONCE]} samples at once, step by step: {reasons}"


# -- inputs ------------------------------------------------------------------------------------------------------------


def read_inputs(pipeline: Pipeline, given: Sequence[str]) -> dict[str, TensorListCPU]:
    """A batch for each input of a pipeline.

    Args:
        pipeline: not run yet.
        given: files and folders, each as ``PATH`` or ``NAME=PATH``.

    Raises:
        InputError: a file is not there, cannot be read as what the input takes, or is for an input that the pipeline has not.
    """
    declared = {info.name: info for info in declared_inputs(pipeline) if info.name in fed_by_hand(pipeline)}
    paths: dict[str, list[Path]] = {}
    for text in given:
        name, path = _named(text, declared)
        paths.setdefault(name, []).extend(_files(path))
    missing = [name for name in declared if name not in paths]
    if missing:
        raise InputError(f"No file is given for {', '.join(map(repr, missing))}: add --input {missing[0]}=FILE")
    most = min([pipeline.max_batch_size or 1, *map(len, paths.values())])
    return {
        name: TensorListCPU([_read(path, declared[name]) for path in found[:most]], declared[name].layout or None)
        for name, found in paths.items()
    }


def fed_by_hand(pipeline: Pipeline) -> list[str]:
    """The inputs of a pipeline that have no callback to ask."""
    return [op.name for op in source_steps(pipeline) if not isinstance(op.payload, Source)]


def _named(text: str, inputs: Collection[str]) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    # A path may hold the sign as well.
    if equals and not Path(text).exists():
        if name not in inputs:
            known = ", ".join(inputs) or "none"
            raise InputError(f"The pipeline has no input '{name}'.{did_you_mean(name, inputs)} Its inputs are: {known}")
        return name, Path(path)
    if len(inputs) != 1:
        if not inputs:
            raise InputError(f"'{text}' matches no input: the pipeline has none")
        raise InputError(
            f"The pipeline has the inputs {', '.join(inputs)}: say for which '{text}' is, as in --input {next(iter(inputs))}={text}"
        )
    return next(iter(inputs)), Path(text)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not found:
            raise InputError(f"There is no file in '{path}'")
        return found
    if not path.is_file():
        raise InputError(f"'{path}' is not a file or folder")
    return [path]


def _read(path: Path, info: TensorInfo) -> np.ndarray:
    """The sample in a file: an array (NPY); the file's bytes, for an input of encoded data; or the pixels of an image."""
    if path.suffix == ".npy":
        sample: np.ndarray = np.load(path, allow_pickle=False)
        return sample
    if info.dtype in (None, UINT8) and (info.dims is None or len(info.dims) == 1):
        return np.fromfile(path, np.uint8)
    if info.dims is not None and len(info.dims) == 3:
        return _pixels(path, info)
    raise InputError(
        f"'{path}' is not an .npy file, which the input '{info.name}' needs: it takes arrays, not encoded data"
    )


def _pixels(path: Path, info: TensorInfo) -> np.ndarray:
    from PIL import Image

    try:
        pixels = np.asarray(Image.open(path).convert("RGB"))
    except OSError as error:
        raise InputError(f"'{path}' is neither an .npy file nor an image: {error}") from error
    pixels = pixels.transpose(2, 0, 1) if info.layout == "CHW" else pixels
    return np.ascontiguousarray(pixels, None if info.dtype is None else numpy_dtype(info.dtype))


# -- running -----------------------------------------------------------------------------------------------------------


class _Watch:
    """Follows a run operator by operator."""

    def __init__(self, ran: Callable[[str, float], None]) -> None:
        self._ran = ran

    def operator_ran(self, step: Step, seconds: float) -> None:
        self._ran(step.node.name, seconds)

    def cancelled(self) -> Collection[int]:
        return ()


def try_out(
    load: Callable[[], Pipeline], given: Sequence[str], each_step: bool, ran: Callable[[str], None] = lambda name: None
) -> Trial:
    """Runs a pipeline on files, or on the data that it reads itself.

    Args:
        load: makes the pipeline, as often as it is run.
        given: see :func:`read_inputs`.
        each_step: runs it once more, without the passes, to have what each operator gives.
        ran: is told of each operator that has run.

    Raises:
        InputError: see :func:`read_inputs`.
        OperatorError: the pipeline cannot run, or refuses the batch as a whole.
    """
    trial = Trial()
    _with(load, lambda pipeline: _run_improved(pipeline, given, trial, ran))
    if each_step:
        _with(load, lambda pipeline: _run_each_step(pipeline, given, trial, ran))
    return trial


def _with(load: Callable[[], Pipeline], use: Callable[[Pipeline], None]) -> None:
    pipeline = load()
    try:
        pipeline.set_missing(batch_size=8, num_threads=1)
        use(pipeline)
    finally:
        pipeline.close()


def _run_improved(pipeline: Pipeline, given: Sequence[str], trial: Trial, ran: Callable[[str], None]) -> None:
    result = _run(pipeline, given, lambda name, _: ran(name))
    trial.failures = result.failures
    for step in pipeline.executor.plan.operators:
        if isinstance(step.operator, FusedOperator):
            trial.counts[step.node.name] = step.operator.take_counts()


def _run_each_step(pipeline: Pipeline, given: Sequence[str], trial: Trial, ran: Callable[[str], None]) -> None:
    operators: Sequence[OpNode] = pipeline.graph.operators
    pipeline.set_outputs(*(output for op in operators for output in op.outputs))
    settings = pipeline.settings
    settings.passes = ()
    settings.output_dtype = settings.output_ndim = settings.output_layout = None

    def note(name: str, seconds: float) -> None:
        trial.seconds[name] = seconds
        ran(name)

    result = _run(pipeline, given, note)
    if given and not _has_callbacks(pipeline):
        # Once more, now that what compiles itself is compiled: these times are to be told.
        result = _run(pipeline, given, note)
    trial.failures = result.failures
    batches = iter(result.outputs)
    trial.outputs = {op.name: [next(batches) for _ in op.outputs] for op in operators}


def _run(pipeline: Pipeline, given: Sequence[str], ran: Callable[[str, float], None]) -> Result:
    batches = read_inputs(pipeline, given)
    watch = _Watch(ran)
    if _has_callbacks(pipeline):
        return _run_with_callbacks(pipeline, batches)
    if not batches:
        return pipeline.executor.run_once(isolate=True, watch=watch)
    runner = PipelineRunner(pipeline)
    if streams(pipeline):
        return next(runner.stream(batches, lambda count: watch))
    return runner.run(batches, len(next(iter(batches.values()))), watch)


def _has_callbacks(pipeline: Pipeline) -> bool:
    return any(isinstance(op.payload, Source) for op in source_steps(pipeline))


def _run_with_callbacks(pipeline: Pipeline, batches: Mapping[str, TensorListCPU]) -> Result:
    """One batch, of which callbacks give a part: not one more is asked of them."""
    settings = pipeline.settings
    settings.exec_pipelined = settings.exec_async = False
    for name, batch in batches.items():
        pipeline.feed_input(name, batch)
    return Result(outputs=list(pipeline.run()))
