"""Runs operators for images on sequences: the leading F dimension is unfolded, and folded back afterwards.

An argument that is computed in the graph applies to the whole sequence, unless the argument has a leading F dimension itself (from
``fn.per_frame``): then each frame has a value of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.schema.launching import GpuLaunches, Launched
from penstock.schema.outputs import OutputSpec, Shape
from penstock.schema.workspace import Workspace
from penstock.tensors import TensorList


class RunsOverFrames(Launched, Protocol):
    """The parts of an operator that running it frame by frame needs; see :class:`Operator`."""

    keeps_frame_shape: bool
    gpu_launches: GpuLaunches

    def describe(self, workspace: Workspace) -> Sequence[OutputSpec]: ...

    def infer_samples(self, workspace: Workspace, specs: Sequence[OutputSpec]) -> list[list[Shape]]: ...

    def align_frames(
        self, workspace: Workspace, shapes: list[list[Shape]], lengths: Sequence[int]
    ) -> list[list[Shape]]: ...

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None: ...

    def compute_batch(self, workspace: Workspace) -> None: ...


def run_over_frames(operator: RunsOverFrames, workspace: Workspace) -> None:
    """Run ``operator`` on the frames of a workspace's sequences."""
    if operator.gpu_launches.repeat(operator, workspace):
        return
    lengths = _sequence_lengths(workspace)
    if 0 in lengths and not operator.keeps_frame_shape:
        raise RuntimeError(f"Samples with no frames are not allowed. The sample {lengths.index(0)} has none.")
    owner = [sample for sample, length in enumerate(lengths) for _ in range(length)]
    frames = Workspace(
        inputs=[_unfold(batch, lengths) for batch in workspace.inputs],
        arguments={name: _unfold_values(batch, lengths) for name, batch in workspace.arguments.items()},
        batch_size=sum(lengths),
        device=workspace.device,
        isolate=workspace.isolate,
        parallel=workspace.parallel,
        pool=workspace.pool,
        max_batch_size=workspace.max_batch_size,
        iteration=workspace.iteration,
        num_threads=workspace.num_threads,
        owners=owner,
        decoding=workspace.decoding,
        allowance=workspace.allowance,
        sequences=workspace,
    )
    frames.failures = {i: workspace.failures[s] for i, s in enumerate(owner) if s in workspace.failures}
    specs = operator.describe(frames)
    frame_shapes = operator.infer_samples(frames, specs)
    workspace.is_allowed = frames.is_allowed
    frame_shapes = operator.align_frames(frames, frame_shapes, lengths)
    workspace.outputs = []
    for shapes, spec in zip(frame_shapes, specs):
        sequence_shapes = _fold_shapes(
            shapes, lengths, [shape[1:] for shape in workspace.inputs[0].shapes] if workspace.inputs else []
        )
        layout = "F" + spec.layout if spec.layout else ""
        outputs = workspace.allocate(sequence_shapes, OutputSpec(spec.dtype, layout, (spec.ndim or 0) + 1))
        workspace.outputs.append(outputs)

    def compute_batch(sequences: Workspace) -> None:
        frames.inputs = [_unfold(batch, lengths) for batch in sequences.inputs]
        frames.outputs = [_unfold(batch, lengths, always=True) for batch in sequences.outputs]
        operator.compute_batch(frames)

    frames.outputs = [_unfold(batch, lengths, always=True) for batch in workspace.outputs]
    if frames.device == "cpu":
        operator.compute_samples(frames, frame_shapes[0] if frame_shapes else [])
    elif frames.live:
        operator.gpu_launches.record(operator, workspace, compute_batch)
    frames.samples = []
    for index, error in frames.failures.items():
        if owner[index] not in workspace.failures:
            workspace.fail(owner[index], error)


def run_over_inner_frames(operator: RunsOverFrames, workspace: Workspace) -> None:
    """Run ``operator``, whose arguments have a value for each frame, on inputs whose frames are the second dimension, after channels
    (CF...).

    Raises:
        RuntimeError: the inputs have no frames.
    """
    for index, batch in enumerate(workspace.inputs):
        if not batch.layout().startswith("CF"):
            name = next(name for name, values in workspace.arguments.items() if values.layout().startswith("F"))
            raise RuntimeError(
                f"Tensor input for argument {name} is specified per frame (got {workspace.arguments[name].layout()} layout). "
                f"In that case, samples in the input {index} must contain frames too. Got layout `{batch.layout()}` that "
                "does not contain frames."
            )
    workspace.inputs = [_swapped(batch) for batch in workspace.inputs]
    run_over_frames(operator, workspace)
    workspace.outputs = [_swapped(batch) for batch in workspace.outputs]


def _swapped(batch: TensorList) -> object:
    """Return a batch with the first two dimensions swapped."""
    layout = batch.layout()
    samples = [sample.swapaxes(0, 1).copy() for sample in batch.samples]
    return type(batch).of_samples(samples, layout[1::-1] + layout[2:], batch.dtype, batch.ndim())


def _sequence_lengths(workspace: Workspace) -> list[int]:
    named = [(f"input {index}", batch) for index, batch in enumerate(workspace.inputs)]
    named += [(f"argument `{name}`", batch) for name, batch in workspace.arguments.items()]
    sequences = [(name, batch) for name, batch in named if batch.layout().startswith("F")]
    first, leading = sequences[0]
    lengths = [shape[0] for shape in leading.shapes]
    for name, batch in sequences[1:]:
        for index, shape in enumerate(batch.shapes):
            # A single per-frame value applies to all frames.
            repeated = shape[0] == 1 and name.startswith("argument") and first.startswith("input")
            if shape[0] == lengths[index] or repeated:
                continue
            if name.startswith("input"):
                raise ValueError(
                    f"The {first} and the {name} have different number of frames for sample {index}: "
                    f"{lengths[index]} and {shape[0]}"
                )
            raise ValueError(
                f"The sample {index} of tensor {name} contains {shape[0]} per-frame parameters, but there are "
                f"{lengths[index]} frames in the corresponding sample of {first}."
            )
    return lengths


def _unfold(batch: TensorList, lengths: list[int], always: bool = False) -> object:
    """Return the frames of all samples as one batch; a sample without a leading F dimension is repeated for each frame."""
    if not (always or batch.layout().startswith("F")):
        return batch.repeated(lengths)
    _check_lengths(batch, lengths)
    return batch.unfolded()


def _unfold_values(batch: TensorList, lengths: list[int]) -> Any:
    """Return the value of an argument for each frame; if a sample has a single value, it is repeated."""
    if not batch.layout().startswith("F"):
        return batch.repeated(lengths)
    if all(len(sample) == 1 for sample in batch.samples):
        return batch.unfolded().repeated(lengths)
    samples: list[Any] = []
    for index, (sample, length) in enumerate(zip(batch.samples, lengths)):
        if len(sample) != 1:
            _check_length(index, len(sample), length)
        frames = [sample[frame : frame + 1].reshape(sample.shape[1:]) for frame in range(len(sample))]
        samples.extend(frames * length if len(sample) == 1 else frames)
    return type(batch).of_samples(samples, batch.layout()[1:], batch.dtype, batch.ndim() - 1)


def _check_lengths(batch: TensorList, lengths: list[int]) -> None:
    for index, (shape, length) in enumerate(zip(batch.shapes, lengths)):
        _check_length(index, shape[0], length)


def _check_length(index: int, count: int, length: int) -> None:
    if count != length:
        raise ValueError(f"{count} values were given for the {length} frames of sample #{index}")


def _fold_shapes(shapes: list[Shape], lengths: list[int], frame_shapes: list[Shape]) -> list[Shape]:
    """Return the shapes of sequences whose frames have ``shapes``; sequences without frames get the extents ``frame_shapes``."""
    folded: list[Shape] = []
    start = 0
    for index, length in enumerate(lengths):
        of_sequence = shapes[start : start + length]
        start += length
        if any(shape != of_sequence[0] for shape in of_sequence):
            raise ValueError(f"Frames of one sequence would have different shapes: {sorted(set(of_sequence))}")
        folded.append((length, *(of_sequence[0] if of_sequence else frame_shapes[index])))
    return folded
