"""Makes pipelines from functions that are written in dynamic mode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from penstock.dynamic._batch import Batch
from penstock.dynamic._capture import Loop
from penstock.dynamic._capture_nodes import CapturedBatch, Reference, RunningLoop, SourceNode
from penstock.dynamic._capture_wiring import wire
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._making import as_batch
from penstock.external_source import external_source
from penstock.graph import DataNode, call_operator
from penstock.pipeline import Pipeline


class _Fed:
    """An input that will be fed to the pipeline; it is named after the function's parameter."""

    def __init__(self, name: str, example: Batch) -> None:
        self._name, self._example = name, example

    def connect(self, loop: RunningLoop, source: SourceNode) -> list[DataNode]:
        example = self._example
        return [
            external_source(
                name=self._name,
                device=example.device_type(),
                layout=example.layout,
                dtype=example.dtype.type_id,
                ndim=example.ndim,
            )
        ]

    def take_over(self, pipeline: Pipeline) -> None:
        """Do nothing: there is no state to take over."""

    def shaped(self, values: Sequence[Batch]) -> Batch:
        return values[0]

    def released(self) -> None:
        """Do nothing: there is nothing to release."""


def pipeline(
    function: Callable[..., object],
    *examples: object,
    batch_size: int | None = None,
    num_threads: int | None = None,
    device_id: int | None = None,
    **settings: Any,
) -> Pipeline:
    """Make a pipeline that does the same as a function that is written in dynamic mode. It can be saved and served like any other.

    The function is called once, with the examples, and the operators that it calls are traced. Decisions in Python and constants are those
    of this call. Random operators use the pipeline's seed.

    Args:
        function: takes a batch for each example, and returns a batch, a tuple of batches, or a dictionary of batches whose keys become the
            names of the pipeline's outputs.
        examples: batches, or values that can be converted to batches, with the types, numbers of dimensions and layouts of the inputs. The
            pipeline's inputs have the names of the function's parameters.
        batch_size: the pipeline's largest batch size; by default that of the examples.
        num_threads, device_id, settings: as for :class:`~penstock.Pipeline`; the number of threads and the device are by default those of
            the current context.

    Raises:
        ValueError: the examples have different batch sizes.
        TypeError: a returned value was not computed from the inputs by operators of dynamic mode alone.

    >>> def halves(numbers):
    ...     return {"half": numbers / 2}
    >>> pipe = pipeline(halves, [[1.0, 2.0], [3.0]], batch_size=8)
    >>> pipe.graph
    numbers = fn.external_source(repeat_last=False, dtype=FLOAT, ndim=1)
    half = dynamic._arithmetic_generic_op(numbers, 2)
    return half
    """
    batches = [as_batch(example).evaluate() for example in examples]
    sizes = {batch.batch_size for batch in batches}
    if len(sizes) != 1:
        raise ValueError(f"The examples must be batches of one size, got {sorted(sizes)}")
    context = EvalContext.current()
    loop = Loop(sizes.pop(), context)
    names = _names_of(function, len(batches))
    sources = [loop.add_source(_Fed(name, batch), 1) for name, batch in zip(names, batches)]
    with loop.active():
        returned = function(*(loop.values_of(source, [batch.storage]) for source, batch in zip(sources, batches)))
    outputs = _outputs(returned, loop)
    made = Pipeline(
        batch_size or loop.batch_size,
        num_threads or context.num_threads,
        context.device_id if device_id is None else device_id,
        **settings,
    )
    with made:
        nodes = {Reference(source, 0): source.root.connect(loop, source)[0] for source in sources}
        wire(loop.calls, nodes, {reference: name for name, reference in outputs if name is not None})
        made.set_outputs(*(_renamed(nodes[reference], name) for name, reference in outputs))
    return made


def _names_of(function: Callable[..., object], count: int) -> list[str]:
    """Return the names of the function's first parameters; missing ones are replaced by numbered names."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in inspect.signature(function).parameters.values() if parameter.kind in kinds]
    return [*names[:count], *(f"input_{index}" for index in range(len(names), count))]


def _outputs(returned: object, loop: Loop) -> list[tuple[str | None, Reference]]:
    if isinstance(returned, dict):
        pairs: list[tuple[str | None, object]] = list(returned.items())
    else:
        pairs = [(None, value) for value in (returned if isinstance(returned, (tuple, list)) else (returned,))]
    outputs = []
    for index, (name, value) in enumerate(pairs):
        reference = value.reference_in(loop) if isinstance(value, CapturedBatch) else None
        if reference is None:
            raise TypeError(
                f"Output {index if name is None else repr(name)} is not a result of dynamic mode's operators on the inputs alone, but "
                f"a {type(value).__name__}: numpy and other libraries cannot be part of the pipeline"
            )
        outputs.append((name, reference))
    return outputs


def _renamed(node: DataNode, name: str | None) -> DataNode:
    """Return a node, or a copy of it with another name."""
    if name is None or node.name == name:
        return node
    copied: DataNode = call_operator("Copy", (node,), {}, None if node.device == "cpu" else "gpu", name)
    return copied
