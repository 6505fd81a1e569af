"""Plans: graphs prepared for running, with operators constructed, data in numbered slots and copies between devices."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.errors import operator_error
from penstock.graph import DataNode, Graph, OpNode
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.runtime.workers import Pace, WorkerPool
from penstock.schema import Operator, operator_class
from penstock.schema.fused import FusedOperator
from penstock.schema.input_operator import InputOperator
from penstock.schema.tolerance import ON_ERROR, check_policy
from penstock.schema.workspace import Workspace
from penstock.storage import ANYWHERE, Files
from penstock.tensors import TensorList


@dataclass
class Step:
    """One operator of the plan.

    Attributes:
        node: the operator as the user wrote it.
        operator: the constructed operator.
        inputs, arguments, outputs: the numbers of the slots with the inputs, the argument inputs by name, and the outputs.
        release: slots not needed after this step.
        pace: how long the operator takes for a sample, as measured.
        workspace: the workspace that is copied for each batch; None before the first run.
        workers: the worker threads that the workspace refers to.
        merges: whether the operator joins the branches of a conditional.
        joins: whether the operator takes several batches, which must have the same number of samples.
        device: the device on which the operator computes, ``cpu`` or ``gpu``.
        feeds_gpu: whether outputs of the operator on the CPU are copied to the GPU.
        empty_outputs: the outputs of the last batch without samples, with the types, ranks and layouts of the inputs and
            arguments for which they hold.
    """

    node: OpNode
    operator: Operator
    inputs: list[int]
    arguments: dict[str, int]
    outputs: list[int]
    release: list[int] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)
    workspace: Workspace | None = None
    workers: WorkerPool | None = None
    empty_outputs: tuple[list[object], list[TensorList]] | None = None

    def __post_init__(self) -> None:
        self.merges = self.node.schema.merges
        self.joins = not self.merges and len(self.inputs) + len(self.arguments) > 1
        self.device = "cpu" if self.node.device == "cpu" else "gpu"
        self.feeds_gpu = self.device == "gpu"


@dataclass
class Transfer:
    """A copy of a batch to the other device.

    Attributes:
        source, target: the numbers of the slots to copy from and to.
        device: the device to copy to.
        release: slots not needed after this step.
    """

    source: int
    target: int
    device: str
    release: list[int] = field(default_factory=list)


class Plan:
    """The steps of a pipeline, in order.

    Args:
        graph: the verified graph.
        seed: the pipeline's seed; None: a random one.
        decoding: how operators decode untrusted data.
        files: the files that operators may access.
        written: the graph before the passes; the order of its operators decides which operator gets which seed. None: ``graph``.
        num_threads: the pipeline's number of threads.
        device_id: the number of the pipeline's GPU, or None.

    Attributes:
        seed: the seed from which random operators derive theirs.
        outputs: the slots of the pipeline's outputs.
        prepared: the first steps, which do not depend on early steps.
        early: the steps that are started next; their work continues while other batches run.
        waiting: all other steps, including the completion of the early ones.
    """

    def __init__(
        self,
        graph: Graph,
        seed: int | None,
        decoding: Decoding = FREELY,
        files: Files = ANYWHERE,
        written: Graph | None = None,
        num_threads: int = 1,
        device_id: int | None = None,
    ) -> None:
        self.decoding = decoding
        self._files = files
        self._num_threads, self._device_id = num_threads, device_id
        self.steps: list[Step | Transfer] = []
        self.early: list[Step] = []
        self._slots: dict[tuple[str, str], int] = {}
        self.seed = secrets.randbits(32) if seed is None or seed < 0 else seed
        self._seeds = _seeds_by_name(graph, graph if written is None else written, self.seed)
        for op in graph.operators:
            self._add(op)
        self.outputs = [self._slot_of(node) for node in graph.outputs]
        self.num_slots = len(self._slots)
        uploaded = {step.source for step in self.steps if isinstance(step, Transfer) and step.device == "gpu"}
        for step in self.operators:
            step.feeds_gpu = step.feeds_gpu or not uploaded.isdisjoint(step.outputs)
        self._schedule_early_steps()
        self._place_releases()

    @functools.cached_property
    def operators(self) -> list[Step]:
        """The steps that are operators."""
        return [step for step in self.steps if isinstance(step, Step)]

    def named_operators(self) -> Iterator[tuple[str, Operator]]:
        """Yield the operators as written by the user, with their node names, including those that run as parts of fused ones."""
        return self._named(self.steps)

    @staticmethod
    def _named(steps: Sequence[Step | Transfer]) -> Iterator[tuple[str, Operator]]:
        for step in steps:
            if isinstance(step, Step):
                parts = list(step.operator.parts())
                yield from parts or [(step.node.name, step.operator)]

    def states(self, steps: Sequence[Step | Transfer] | None = None) -> dict[str, object]:
        """Return the state of each stateful operator, by name; ``steps``: only of operators in these steps."""
        states = {name: operator.state() for name, operator in self._named(self.steps if steps is None else steps)}
        return {name: state for name, state in states.items() if state is not None}

    def fusion_statistics(self) -> dict[str, dict[str, int]]:
        """Return, for each fused operator, how many samples ran fused ("fused"), and how many step by step, by reason."""
        return {
            step.node.name: dict(step.operator.counts)
            for step in self.operators
            if isinstance(step.operator, FusedOperator)
        }

    @property
    def is_cheap_on_host(self) -> bool:
        """Whether a run takes next to no time on the host, because the GPU does all the work asynchronously."""
        return all(step.operator.is_cheap_on_host for step in self.operators)

    def _add(self, op: OpNode) -> None:
        inputs = [self._slot_of(node) for node in op.inputs]
        arguments = {name: self._slot_of(node) for name, node in op.argument_inputs.items()}
        operator = construct(
            op, self._seeds.get(op.name, -1), self._files, self.decoding, self._num_threads, self._device_id
        )
        for name, part in operator.parts():
            part.seed = self._seeds.get(name, -1)
        outputs = [self._new_slot(node.name, node.device) for node in op.outputs]
        self.steps.append(Step(op, operator, inputs, arguments, outputs))

    def _new_slot(self, name: str, device: str) -> int:
        return self._slots.setdefault((name, device), len(self._slots))

    def _slot_of(self, node: DataNode) -> int:
        slot = self._slots.get((node.name, node.device))
        if slot is None:
            other = "cpu" if node.device == "gpu" else "gpu"
            source = self._slots[node.name, other]
            slot = self._new_slot(node.name, node.device)
            self.steps.append(Transfer(source, slot, node.device))
        return slot

    def _schedule_early_steps(self) -> None:
        """Move the steps that depend neither on early steps nor on copies to the GPU before all others."""
        self.prepared: list[Step | Transfer] = []
        self.waiting: list[Step | Transfer] = []
        pending: set[int] = set()
        for step in self.steps:
            needed, made = _touched(step)
            early = isinstance(step, Step) and step.operator.begins_early
            if isinstance(step, Step) and early and pending.isdisjoint(needed):
                self.early.append(step)
            if early or not pending.isdisjoint(needed):
                self.waiting.append(step)
                pending.update(made)
            else:
                self.prepared.append(step)
                if isinstance(step, Transfer) and step.device == "gpu":
                    # The copy runs while the previous batch is computed, so steps that need it wait.
                    pending.update(made)
        self.steps = self.prepared + self.waiting

    def _place_releases(self) -> None:
        needed = set(self.outputs)
        for step in reversed(self.steps):
            touched = {slot for slots in _touched(step) for slot in slots}
            step.release = sorted(touched - needed)
            needed |= touched


def _touched(step: Step | Transfer) -> tuple[list[int], list[int]]:
    """Return the slots that a step reads, and the slots that it fills."""
    if isinstance(step, Step):
        return [*step.inputs, *step.arguments.values()], step.outputs
    return [step.source], [step.target]


def construct(
    op: OpNode,
    seed: int,
    files: Files = ANYWHERE,
    decoding: Decoding = FREELY,
    num_threads: int = 1,
    device_id: int | None = None,
) -> Operator:
    """Construct a node's operator; errors name the line of the user's program that calls the operator."""
    try:
        operator = operator_class(op.schema.name)(op.arguments, op.device, op.argument_inputs, seed, op.schema, files)
        operator.bind(op.payload)
        operator.connect(len(op.inputs), num_threads, device_id)
        if ON_ERROR.name in operator.explicit:
            check_policy(op.arguments[ON_ERROR.name])
        if isinstance(operator, InputOperator):
            operator.decoding = decoding
        return operator
    except Exception as error:
        raise operator_error(error, op.display_name, op.device, None, op.origin) from error


def _seeds_by_name(graph: Graph, written: Graph, seed: int) -> dict[str, int]:
    """Return the seeds of the random operators of ``graph``, including those fused in it, by name; they are assigned in the
    order of ``written``, the original graph.
    """
    left = {op.name for fused in graph.operators for op in (fused, *fused.steps)}
    seeds = operator_seeds([op for op in written.operators if op.name in left], seed)
    return {op.name: value for op, value in seeds.items()}


def operator_seeds(operators: Sequence[OpNode], seed: int) -> dict[OpNode, int]:
    """Return the seeds of the operators that draw random numbers.

    Each operator without a seed from the user takes the next value of a sequence derived from the pipeline's seed, in graph
    order; the instances of one call share the seed of the first.
    """
    if not any(op.schema.random for op in operators):
        return {}
    from penstock.kernels.random_streams import seed_slots

    slots = seed_slots(seed)
    seeds: dict[OpNode, int] = {}
    group_seeds: dict[object, int] = {}
    assigned = 0
    for op in operators:
        if not op.schema.random:
            continue
        explicit_seed = op.arguments.get("seed")
        if explicit_seed is not None:
            seeds[op] = explicit_seed
            continue
        seeds[op] = group_seeds.setdefault(op.group, slots[assigned % len(slots)])
        assigned += 1
    return seeds
