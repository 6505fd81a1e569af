"""The base class of operators.

A run on a batch has three steps, which concrete operators implement:

1. ``describe(workspace)``: once per batch; checks the types of inputs and returns the dtypes and layouts of outputs;
2. ``infer(sample)``: once per sample; returns the shapes of outputs, and may store a plan in ``sample.plan``; or instead
   ``infer_batch(samples)``: once per batch, in arrays with a row for each sample;
3. ``compute(sample)`` on the CPU: once per sample, on the pool's threads, into allocated arrays;
   ``compute_batch(workspace)`` on the GPU: once per batch, on the current CuPy stream.

Operators that do not work in this way (sources, operators on whole batches, relabelling without copies) override ``run(workspace)`` and set
``workspace.outputs`` themselves.

Data that are passed between the steps are typed: in ``Operator[State, Plan]``, ``describe`` stores a ``State`` in the workspace, and
``infer`` a ``Plan`` in each sample; in ``Operator[State, Plan, Plans]``, ``infer_batch`` returns the plans of all samples as ``Plans``. A
plain ``Operator`` passes nothing between the steps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np

from penstock.data_types import BFLOAT16
from penstock.schema.arguments import Argument
from penstock.schema.declaration import NO_BFLOAT16, Schema
from penstock.schema.early_start import EarlyStart
from penstock.schema.launching import GpuLaunches
from penstock.schema.outputs import OutputSpec, Shape
from penstock.schema.planning import BatchPlanning, PlanCache, PlannedBatch, plan_within_allowance
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.samples import Samples
from penstock.schema.sequence import run_over_frames, run_over_inner_frames
from penstock.schema.workspace import PlannedSamples, Sample, Workspace
from penstock.storage import ANYWHERE, Files
from penstock.tensors import TensorListGPU

if TYPE_CHECKING:
    from typing import Self


class Operator(Generic[State, Plan, Plans]):
    """Base class of all operators.

    Args:
        arguments: the constant arguments that the user passed, converted by the schema.
        device: ``cpu``, ``gpu`` or ``mixed``.
        tensor_arguments: the names of the arguments that are computed in the graph.
        seed: the seed of the random stream, for operators that draw random numbers.
        files: the files that the operator may access.

    Attributes:
        args: all constant arguments by name, including defaults.
        explicit: the names of the constant arguments that the user passed.
        known: the values that were derived from constant arguments (``Samples.derived``).
    """

    schema: ClassVar[Schema]
    # Whether shapes and plans depend only on the types, layouts and shapes of inputs and on the values of arguments, and plans are
    # never modified; if so, equal samples share one plan.
    plans_by_shape: bool = False
    # Whether plans depend only on types, layouts, arguments and the shapes of all samples, and are never modified: then a batch
    # like the previous one is not planned again.
    repeats_plans: bool = False
    # Whether the results of `describe`, and the state that it stores, depend only on the inputs' and arguments' types,
    # ranks and layouts, and are never modified: then they hold for all batches of the same kind. Batches with an empty
    # input or argument may be exceptions.
    described_by_kind: bool = False
    # Whether the launches of `compute_batch` depend only on the types, layouts and shapes of the batch and on the values of arguments
    # and CPU inputs; if so, they are recorded, and repeated for later batches of the same kind.
    repeatable: bool = True
    # Whether the shapes of frames do not change; only then may sequences have no frames.
    keeps_frame_shape: bool = False
    # Whether the result of a sample may depend on which other samples of the batch have failed.
    depends_on_batch: bool = False
    # Whether the operator passes its inputs to user code. That code may keep references to them, and the pipeline must be the current one
    # while it runs.
    lends_inputs: bool = False
    # The arguments whose values affect only `run_values`.
    varying_arguments: frozenset[str] = frozenset()

    def __init__(
        self,
        arguments: dict[str, object] | None = None,
        device: str = "cpu",
        tensor_arguments: Iterable[str] = (),
        seed: int = -1,
        schema: Schema | None = None,
        files: Files = ANYWHERE,
    ) -> None:
        explicit = dict(arguments or {})
        if schema is not None:
            # An alias has a schema of its own, whose defaults may differ.
            self.schema = schema  # type: ignore[misc]
        self.device = device
        self.explicit = frozenset(explicit)
        self.tensor_arguments = frozenset(tensor_arguments)
        self.args: dict[str, Any] = {name: a.default for name, a in self.schema.all_arguments.items()} | explicit
        self.seed = seed
        self.files = files
        for name in self.schema.path_arguments:
            files.check_argument(self.args[name])
        self.plan_cache = PlanCache()
        self.gpu_launches = GpuLaunches()
        # The kinds of the last batch that needed no changes; see `admit`.
        self._admitted: tuple[object, ...] | None = None
        # The last batch's plans, if they depend on shapes only.
        self._last_planned: PlannedBatch | None = None
        self._described: tuple[object, Sequence[OutputSpec], Any] = (None, (), None)
        given_lists = [self.schema.all_arguments.get(name) for name in self.tensor_arguments]
        self._has_lists = any(argument is not None and argument.is_list for argument in given_lists)
        self._constants: dict[str, np.ndarray] = {}
        self.known: dict[Hashable, Any] = {}
        self.setup()

    def __class_getitem__(cls, types: object) -> type[Self]:
        # `Generic` would require all parameters, as only type checkers know their defaults.
        return cls

    # -- implemented by concrete operators --------------------------------------------------------------------

    def setup(self) -> None:
        """Check constant arguments, and prepare state that depends only on them; called once, when the pipeline is
        built.
        """

    def bind(self, payload: object) -> None:
        """Receive what the operator needs in addition to arguments, such as a callback or a source."""

    def connect(self, num_inputs: int, num_threads: int, device_id: int | None) -> None:
        """Prepare state that depends on the pipeline; called after :meth:`setup`, when the pipeline is built.

        Args:
            num_inputs: the number of the operator's inputs.
            num_threads: the number of the pipeline's threads.
            device_id: the number of the pipeline's GPU, or None.
        """

    def describe(self, workspace: Workspace[State, Plan, Plans]) -> Sequence[OutputSpec]:
        """Return the dtypes and layouts of the outputs for a batch; raise an error if the types of inputs are not supported."""
        raise NotImplementedError(f"{type(self).__name__} must implement `describe`")

    def infer(self, sample: Sample[State, Plan, Plans]) -> Any:
        """Return the shapes of the outputs for one sample: a list of tuples, or a single tuple if there is one output."""
        raise NotImplementedError(f"{type(self).__name__} must implement `infer`")

    def infer_batch(
        self, samples: Samples[State, Plan, Plans]
    ) -> tuple[np.ndarray | Sequence[np.ndarray | list[Shape]], Plans]:
        """Return the outputs' shapes, int64 with a row for each sample, and the samples' plans; replaces :meth:`infer`.

        Returns one array, or one for each output, of which each may also be a list of tuples, such as an input's shapes. If it raises, all
        samples that it hasn't isolated itself (``workspace.fail``) are inferred one by one: so only those at fault fail, and samples that
        can't share an array still work.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement `infer_batch`")

    def working_bytes(self, workspace: Workspace[State, Plan, Plans]) -> Sequence[int]:
        """Return the bytes of host memory that computing each sample takes in addition to its outputs; empty if they are few.

        The shapes of samples have been inferred. Failed samples take 0 bytes.
        """
        return ()

    def compute(self, sample: Sample[State, Plan, Plans]) -> None:
        """Fill the outputs of one sample, on the CPU."""
        raise NotImplementedError(f"{type(self).__name__} does not run on CPU")

    def compute_batch(self, workspace: Workspace[State, Plan, Plans]) -> None:
        """Fill the outputs of the whole batch, on the current CuPy stream.

        By default, data are copied to the host, results are computed there, and copied back.
        """
        on_host = replace(
            workspace, inputs=[batch.as_cpu() for batch in workspace.inputs], outputs=[], device="cpu", samples=[]
        )
        specs = [OutputSpec(batch.dtype, batch.layout(), batch.ndim()) for batch in workspace.outputs]
        shapes = self.infer_samples(on_host, specs)
        on_host.outputs = [on_host.allocate(s, spec) for s, spec in zip(shapes, specs)]
        self.compute_samples(on_host, shapes[0] if shapes else [])
        uploaded = [TensorListGPU.upload(batch) for batch in on_host.outputs]
        if workspace.owners is None:
            workspace.outputs = uploaded
            return
        # For frames of sequences, the outputs exist already, and are filled in place.
        from penstock.kernels.cuda.window import copy_batch

        for frames, batch in zip(workspace.outputs, uploaded):
            copy_batch(batch, frames)

    def run_values(self, workspace: Workspace) -> dict[str, np.generic | np.ndarray]:
        """Return the kernel arguments that differ between batches of the same kind, by name (``launch.RunValue``)."""
        return {}

    # -- shared by all operators -------------------------------------------------------------------------------

    def input_layout(self, workspace: Workspace, index: int = 0) -> str:
        """Return the layout of an input; for data without a layout, the first declared one with as many dimensions.

        Raises:
            ValueError: the operator does not accept the layout or the number of dimensions.
        """
        batch, declared = workspace.inputs[index], self.schema.input(index).layouts
        layout = batch.layout()
        if not layout and declared and not len(batch):
            return next((candidate for candidate in declared if len(candidate) == batch.ndim()), declared[0])
        return self.schema.fitting_layout(index, layout, batch.ndim())

    def given(self, name: str) -> bool:
        """Return whether the user passed the argument, as a constant or as a tensor."""
        return name in self.explicit or name in self.tensor_arguments

    def run(self, workspace: Workspace) -> None:
        """Run the operator on a batch: describe, infer, allocate, compute."""
        if self.admit(workspace):
            self.run_batch(workspace)
        elif self._has_frames(workspace):
            run_over_frames(self, workspace)
        else:
            if any(batch.layout().startswith("C") for batch in workspace.inputs):
                run_over_inner_frames(self, workspace)
            else:
                # For images without frames, per-frame values are treated as ordinary lists.
                plain = {name: batch.relabelled(layout="") for name, batch in workspace.arguments.items()}
                workspace.arguments = plain
                self._check_lists(workspace)
                self.run_batch(workspace)

    def admit(self, workspace: Workspace) -> bool:
        """Name the dimensions of inputs that have no layout; return False if samples have to be unfolded into frames.

        Raises:
            ValueError: a layout or number of dimensions is not supported.
            RuntimeError: the shapes of tensors do not suit their list arguments.
        """
        kinds = workspace.kinds()
        workspace.admitted = kinds if kinds == self._admitted else None
        if workspace.admitted is not None:
            if self._has_lists:
                self._check_lists(workspace)
            return True
        self.check_inputs(workspace)
        if self.sees_frames(workspace):
            return False
        # If layouts were completed, or values expanded for each frame, that has to be repeated for each batch.
        if kinds is not None:
            self._admitted = kinds if kinds == workspace.kinds() else None
        return True

    def described(self, workspace: Workspace[State, Plan, Plans]) -> Sequence[OutputSpec]:
        """Return the result of :meth:`describe` for a batch; it is reused if the last batch was of the same kind."""
        if not self.described_by_kind:
            return self.describe(workspace)
        kinds, (known, specs, state) = workspace.admitted or workspace.kinds(), self._described
        if kinds is None:
            # A batch without samples, for example in a branch that no sample takes; the next batch may be of the known kind again.
            return self.describe(workspace)
        if kinds != known:
            specs = self.describe(workspace)
            self._described = kinds, specs, workspace.state
        else:
            workspace.state = state
        return specs

    def check_inputs(self, workspace: Workspace) -> None:
        """Name the dimensions of inputs that have no layout; raise errors for unsupported types, layouts, numbers of dimensions and
        lists.
        """
        if not self.schema.moves_elements and any(batch.dtype is BFLOAT16 for batch in workspace.inputs):
            raise RuntimeError(NO_BFLOAT16)
        if self.schema.sequences:
            workspace.inputs = [self._frames_named(batch, index) for index, batch in enumerate(workspace.inputs)]
        if any(map(_holds_frames, workspace.arguments.values())):
            workspace.arguments = {
                name: self._argument_batch(name, batch) for name, batch in workspace.arguments.items()
            }
        self._check_layouts(workspace)
        self._check_lists(workspace)

    def sees_frames(self, workspace: Workspace) -> bool:
        """Return whether samples, or the values of arguments, are unfolded into frames."""
        return self.schema.sequences and (
            self._has_frames(workspace) or any(map(_holds_frames, workspace.arguments.values()))
        )

    @property
    def begins_early(self) -> bool:
        """Whether :meth:`begin` starts work that needs no Python, such as decoding, while the previous batch is still running."""
        return False

    def prepare(self, workspace: Workspace) -> None:
        """Start background reads that :meth:`begin` needs. Called before :meth:`begin` with the same workspace, if the caller has other
        work to do meanwhile.
        """

    def begin(self, workspace: Workspace) -> EarlyStart:
        """Start a batch, and return hints for the runtime; a later :meth:`run` with the same workspace completes the batch.

        May store a value in ``workspace.begun``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement `begin`")

    def is_ready(self, workspace: Workspace) -> bool:
        """Return whether :meth:`run` would not have to wait for work that :meth:`begin` started."""
        return True

    def await_begun(self, workspace: Workspace) -> None:
        """Wait until the work that :meth:`begin` started is done. Any thread may call this, while another begins the next batch."""

    def finish(self, workspace: Workspace) -> None:
        """Advance the state that changes from batch to batch; called after a batch, however it was computed."""

    def parts(self) -> Iterable[tuple[str, Operator]]:
        """Return the operators that a fused operator replaces, by node name; empty for other operators."""
        return ()

    def _frames_named(self, batch: Any, index: int) -> object:
        """Return an input; if it has no layout, but the first declared layout with as many dimensions has frames, it gets that layout."""
        if batch.layout():
            return batch
        fitting = (layout for layout in self.schema.input(index).layouts if len(layout) == batch.ndim())
        layout = next(fitting, "")
        return batch.relabelled(layout) if layout.startswith("F") else batch

    def _is_per_frame(self, argument: Argument) -> bool:
        return self.schema.sequences and argument.per_frame

    def _argument_batch(self, name: str, batch: Any) -> Any:
        """Return the values of an argument; their layout is removed if they are not per-frame values."""
        per_frame = self._is_per_frame(self.schema.all_arguments[name])
        return batch if per_frame or not _holds_frames(batch) else batch.relabelled(layout="")

    def _check_layouts(self, workspace: Workspace) -> None:
        """Raise ValueError for inputs whose layout or number of dimensions is not declared; this precedes all other checks."""
        for index, batch in enumerate(workspace.inputs):
            declared = self.schema.input(index).layouts
            # For sequences, possibly only the layout of the frames is declared.
            if not _holds_frames(batch) or any(layout.startswith("F") for layout in declared):
                self.input_layout(workspace, index)

    def _check_lists(self, workspace: Workspace) -> None:
        """Raise RuntimeError for tensors whose shapes do not suit their list arguments."""
        for name, batch in workspace.arguments.items():
            argument = self.schema.all_arguments.get(name)
            if argument is not None and argument.is_list:
                first = 1 if self._is_per_frame(argument) and _holds_frames(batch) else 0
                # Failed samples have no values.
                failed = workspace.failures
                shapes = (
                    [shape for index, shape in enumerate(batch.shapes) if index not in failed]
                    if failed
                    else batch.shapes
                )
                argument.check_shapes([shape[first:] for shape in shapes] if first else shapes)

    def _has_frames(self, workspace: Workspace) -> bool:
        return any(map(_holds_frames, workspace.inputs))

    def run_batch(self, workspace: Workspace) -> None:
        """Run the operator on samples that need not be unfolded into frames."""
        if workspace.device != "cpu" and self.gpu_launches.repeat(self, workspace):
            return
        specs = self.described(workspace)
        shapes = self.infer_samples(workspace, specs)
        outputs: list[Any] = []
        workspace.outputs = outputs
        for sample_shapes, spec in zip(shapes, specs):
            outputs.append(workspace.allocate(sample_shapes, spec, len(outputs)))
        if workspace.device == "cpu":
            self.compute_samples(workspace, shapes[0] if shapes else [])
        elif workspace.live_indices:
            self.gpu_launches.record(self, workspace, self.compute_batch)

    def constant_values(self, name: str) -> np.ndarray:
        """Return the value of a constant numeric argument, float64 of shape (1, values); empty if the argument is absent."""
        known = self._constants.get(name)
        if known is None:
            value = self.args[name]
            known = self._constants[name] = np.array([] if value is None else value, np.float64).reshape(1, -1)
        return known

    def infer_samples(self, workspace: Workspace[State, Plan, Plans], specs: Sequence[OutputSpec]) -> list[list[Shape]]:
        """Infer the shapes of each output for each sample; store the samples in the workspace. Failed samples get empty shapes, and so
        do those that would take too much memory.
        """
        return plan_within_allowance(self, workspace, specs)

    def infer_shapes(self, workspace: Workspace[State, Plan, Plans], num_outputs: int) -> list[list[Shape]]:
        """Return the shapes of each output for each sample, however large; leave the samples in the workspace."""
        depends = workspace.arguments or workspace.failures or len(workspace.inputs) != 1
        if depends or self.plans_by_shape or not self.repeats_plans:
            return BatchPlanning(self, workspace).shapes(num_outputs)
        known, kinds = self._last_planned, workspace.admitted or workspace.kinds()
        shapes = workspace.inputs[0].shapes
        if known is not None and kinds == known.kinds and shapes == known.shapes:
            workspace.samples, workspace.plans = PlannedSamples(self, workspace, known.plans), known.plans
            return known.outputs
        outputs = BatchPlanning(self, workspace).shapes(num_outputs)
        is_planned = workspace.plans is not None and not workspace.failures
        self._last_planned = PlannedBatch(kinds, shapes, outputs, workspace.plans) if is_planned else None
        return outputs

    @functools.cached_property
    def plans_in_arrays(self) -> bool:
        """Whether the operator implements :meth:`infer_batch` rather than :meth:`infer`."""
        return type(self).infer_batch is not Operator.infer_batch

    def align_frames(
        self, workspace: Workspace, shapes: list[list[Shape]], lengths: Sequence[int]
    ) -> list[list[Shape]]:
        """Return the shapes of each output for each frame, changed so that the frames of a sequence have the same shape.

        Overridden by operators that may give frames different shapes; ``lengths``: the number of frames in each sequence.
        """
        return shapes

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        """Compute the samples on the pool's threads, the most expensive ones first."""
        self.compute_some(workspace, range(workspace.batch_size), shapes)

    def compute_some(
        self, workspace: Workspace[State, Plan, Plans], indices: Sequence[int], shapes: Sequence[Shape]
    ) -> None:
        """Compute the samples at these positions; ``shapes``: the shapes of all samples."""

        def task(number: int) -> None:
            index = indices[number]
            sample = workspace.samples[index]
            if sample is None:
                return
            try:
                self.compute(sample)
            except Exception as error:
                workspace.fail(index, error)

        workspace.parallel(task, len(indices), [math.prod(shapes[index]) for index in indices])

    @functools.cached_property
    def is_cheap_on_host(self) -> bool:
        """Whether a run is expected to take so little time on the host that prefetching on a thread gains nothing; see
        :meth:`begin`.
        """
        kind = type(self)
        return self.device == "gpu" and (kind.compute_batch, kind.run) != (Operator.compute_batch, Operator.run)

    def pending_batch_size(self) -> int | None:
        """Return the number of samples in the next batch of a source; None for other operators."""
        return None

    def state(self) -> Any:
        """Return the state for checkpoints, as JSON-compatible data; None if there is none."""
        return None

    def restore(self, state: object) -> None:
        """Continue from a state returned by :meth:`state`."""

    def reset(self) -> None:
        """Begin a new epoch."""


def _holds_frames(batch: Any) -> bool:
    return bool(batch.layout().startswith("F"))
