"""Runs single operators in Penstock's executor; each is created once for all calls that it suits."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

from penstock.dynamic._streams import Stream, in_order
from penstock.graph import DataNode, Graph, OpNode
from penstock.graph.calls import split_arguments
from penstock.graph.graph import verify_operator
from penstock.runtime import Executor, Plan
from penstock.runtime.plan import Step, construct
from penstock.schema import Operator, Schema
from penstock.tensors import TensorList

# The largest number of cached operators; the least recently used are dropped first.
_MAX_CACHED_OPERATORS = 1024


@dataclass(frozen=True)
class BoundOperator:
    """An operator with constant arguments, for inputs and tensor arguments of one kind.

    Attributes:
        step: the operator as a step of a plan, which the executor runs.
        count: the number of outputs.
    """

    step: Step
    count: int

    @property
    def operator(self) -> Operator:
        """The operator itself."""
        return self.step.operator


def display_name(path: str) -> str:
    """Return the name of an operator in messages."""
    return f"penstock.dynamic.{path}"


def bind(
    schema: Schema, device: str, inputs: int, arguments: Sequence[str], constants: dict[str, object], display: str
) -> BoundOperator:
    """Create an operator with its constant arguments.

    Args:
        schema: the operator's schema.
        device: ``cpu``, ``gpu`` or ``mixed``.
        inputs: the number of inputs.
        arguments: the names of the arguments that will be tensors.
        constants: the other arguments.
        display: the operator's name in messages.

    Raises:
        TypeError: an argument is unknown or missing.
    """
    for name in (*arguments, *constants):
        if name not in schema.all_arguments:
            raise TypeError(
                f"{display}() got an unexpected keyword argument {name!r}. {schema.unknown_argument(name).args[0]}"
            )
    _, converted = split_arguments(schema, constants, display)
    passed = {*arguments, *converted}
    missing = [a.name for a in schema.all_arguments.values() if a.required and a.name not in passed]
    if missing:
        raise TypeError(f"{display}() misses the required arguments {', '.join(map(repr, missing))}")
    node = OpNode(
        schema,
        schema.class_name,
        device,
        [DataNode(f"input_{index}") for index in range(inputs)],
        {name: DataNode(f"argument_{name}") for name in arguments},
        converted,
        display,
    )
    verify_operator(node)
    seed = converted.get("seed", -1)
    operator = construct(node, secrets.randbits(31) if seed < 0 else seed)
    first = inputs + len(arguments)
    count = len(node.outputs)
    slots = {name: inputs + index for index, name in enumerate(arguments)}
    return BoundOperator(Step(node, operator, list(range(inputs)), slots, list(range(first, first + count))), count)


class Engine:
    """Runs the operators of an evaluation context.

    Args:
        device_id: the number of the GPU; None: the CPU.

    Attributes:
        stream: the stream for work on the GPU.
    """

    def __init__(self, device_id: int | None) -> None:
        self.executor = Executor(Plan(Graph([]), seed=0), 0, 1, device_id)
        self.stream: Stream | None = None
        self._bound: OrderedDict[Hashable, BoundOperator] = OrderedDict()

    def bound(self, key: Hashable, make: Callable[[], BoundOperator]) -> BoundOperator:
        """Return the cached operator for the key; if there is none, the operator that ``make`` returns."""
        found = self._bound.get(key)
        if found is not None:
            return found
        found = self._bound[key] = make()
        if len(self._bound) > _MAX_CACHED_OPERATORS:
            self._bound.popitem(last=False)
        return found

    def forget(self) -> None:
        """Remove all cached operators."""
        self._bound.clear()

    def run(
        self, bound: BoundOperator, data: list[TensorList], batch_size: int, gpus: Collection[int] = ()
    ) -> list[TensorList]:
        """Run an operator and return its outputs; ``data`` contains the inputs, followed by the tensor arguments.

        Args:
            gpus: the numbers of the GPUs on which inputs are.
        """
        executor = self.executor
        executor.iteration += 1
        slots: list[object] = [*data, *[None] * bound.count]
        if executor.device_id is None or self.stream is None or (bound.step.node.device == "cpu" and not gpus):
            executor.run_step(bound.step, slots, batch_size)
        else:
            executor.use_stream(self.stream.cupy_stream)
            with in_order(self.stream, {*gpus, executor.device_id}):
                executor.run_step(bound.step, slots, batch_size)
        return [output for output in slots[len(data) :] if isinstance(output, TensorList)]
