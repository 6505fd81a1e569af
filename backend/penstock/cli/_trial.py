"""Runs a pipeline on the user's files, recording each operator's outputs and how fused operators ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.cli._inputs import read_inputs
from penstock.errors import PenstockError
from penstock.graph import OpNode
from penstock.pipeline import Pipeline
from penstock.runtime import Result
from penstock.runtime.sources import Source
from penstock.schema.fused import AT_ONCE, FusedOperator
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.serving.probing import source_steps, streams
from penstock.tensors import TensorList, TensorListCPU

if TYPE_CHECKING:
    from penstock.runtime.plan import Step


@dataclass
class Trial:
    """The results of a run.

    Attributes:
        outputs: the outputs of each operator of the graph as written, by the operator's name.
        seconds: the seconds that each operator took, by name.
        failures: the error of each failed sample, by the sample's index.
        counts: for each fused operator, by name: how many samples it computed at once, and how many step by step, by
            reason.
    """

    outputs: dict[str, list[TensorList]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[int, PenstockError] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def how_computed(self, name: str) -> str:
        """Return a sentence on how the fused operator with this name ran."""
        in_turn = {reason: count for reason, count in self.counts[name].items() if reason != AT_ONCE}
        if not in_turn:
            return "all samples at once"
        reasons = ", ".join(f"{count} for {reason}" for reason, count in in_turn.items())
        return f"{self.counts[name][AT_ONCE]} samples at once, step by step: {reasons}"


# -- running -----------------------------------------------------------------------------------------------------------


class _Watch:
    """Observes a run: calls ``ran`` after each operator."""

    def __init__(self, ran: Callable[[str, float], None]) -> None:
        self._ran = ran

    def operator_ran(self, step: Step, seconds: float) -> None:
        self._ran(step.node.name, seconds)

    def cancelled(self) -> Collection[int]:
        return ()


def try_out(
    load: Callable[[], Pipeline], paths: Sequence[str], each_step: bool, ran: Callable[[str], None] = lambda name: None
) -> Trial:
    """Run a pipeline on files, or on the data that it reads itself.

    Args:
        load: makes the pipeline; called once for each run.
        paths: the files for the inputs; see :class:`~penstock.cli._inputs.InputFiles`.
        each_step: whether to run once more without the passes, to get the outputs of every operator.
        ran: called with the name of each operator that has run.

    Raises:
        InputError: see :class:`~penstock.cli._inputs.InputFiles`.
        OperatorError: the pipeline cannot run, or the batch fails as a whole.
    """
    trial = Trial()
    _with(load, lambda pipeline: _run_improved(pipeline, paths, trial, ran))
    if each_step:
        _with(load, lambda pipeline: _run_each_step(pipeline, paths, trial, ran))
    return trial


def _with(load: Callable[[], Pipeline], use: Callable[[Pipeline], None]) -> None:
    pipeline = load()
    try:
        pipeline.set_missing(batch_size=8, num_threads=1)
        use(pipeline)
    finally:
        pipeline.close()


def _run_improved(pipeline: Pipeline, paths: Sequence[str], trial: Trial, ran: Callable[[str], None]) -> None:
    result = _run(pipeline, paths, lambda name, _: ran(name))
    trial.failures = result.failures
    for step in pipeline.executor.plan.operators:
        if isinstance(step.operator, FusedOperator):
            trial.counts[step.node.name] = step.operator.take_counts()


def _run_each_step(pipeline: Pipeline, paths: Sequence[str], trial: Trial, ran: Callable[[str], None]) -> None:
    operators: Sequence[OpNode] = pipeline.graph.operators
    pipeline.set_outputs(*(output for op in operators for output in op.outputs))
    settings = pipeline.settings
    settings.passes = ()
    settings.output_dtype = settings.output_ndim = settings.output_layout = None

    def note(name: str, seconds: float) -> None:
        trial.seconds[name] = seconds
        ran(name)

    result = _run(pipeline, paths, note)
    if paths and not _has_callbacks(pipeline):
        # A second run gives the times to report, as kernels are compiled during the first.
        result = _run(pipeline, paths, note)
    trial.failures = result.failures
    batches = iter(result.outputs)
    trial.outputs = {op.name: [next(batches) for _ in op.outputs] for op in operators}


def _run(pipeline: Pipeline, paths: Sequence[str], ran: Callable[[str, float], None]) -> Result:
    batches = read_inputs(pipeline, paths)
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
    """Return the result of one batch, some of whose inputs come from callbacks; the callbacks are called for one batch only."""
    settings = pipeline.settings
    settings.exec_pipelined = settings.exec_async = False
    for name, batch in batches.items():
        pipeline.feed_input(name, batch)
    return Result(outputs=list(pipeline.run()))
