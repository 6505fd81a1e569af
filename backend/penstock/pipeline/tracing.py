"""Defines a pipeline's graph by calling the user's function, whose results become the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from penstock.graph import DataNode, Graph, Scope
from penstock.graph.branching import load
from penstock.graph.calls import constant_node
from penstock.graph.conditionals import ConditionStack
from penstock.graph.placement import on_cpu
from penstock.graph.values import is_constant

_NOT_DEFINED = object()


class Definition:
    """The definition of a pipeline's graph, from the calls of operators to the outputs.

    Attributes:
        scope: the scope that these calls share.
        outputs: the outputs as they were set or returned, before they are checked; None: not known yet.
    """

    def __init__(self) -> None:
        self.scope = Scope()
        self.outputs: Sequence[object] | None = None
        self._returned: object = _NOT_DEFINED
        self._graph: Graph | None = None

    @property
    def is_given(self) -> bool:
        """Whether the outputs were set, or returned by a function."""
        return self.outputs is not None or self._returned is not _NOT_DEFINED

    @property
    def known_graph(self) -> Graph | None:
        """The graph if it was requested before, otherwise None."""
        return self._graph

    def graph_so_far(self) -> Graph | None:
        """Return the graph, for display, as far as it is known without calling the user's function or changing this definition."""
        if self._graph is not None:
            return self._graph
        outputs = self._returned if self.outputs is None else self.outputs
        outputs = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
        nodes = [node for node in map(load, outputs) if isinstance(node, DataNode)]
        return Graph(nodes, self.scope.sinks) if nodes else None

    def graph(self, pipeline: AbstractContextManager[object], define_graph: Callable[[], object]) -> Graph:
        """Return the graph as defined by the user; call ``define_graph`` if it was not defined before."""
        if self._graph is None:
            if self.outputs is None:
                if self._returned is _NOT_DEFINED:
                    self.trace(pipeline, define_graph)
                    self.take_defined(self._returned)
                else:
                    self._take_returned(self._returned)
            assert self.outputs is not None
            outputs = [as_output(output, index) for index, output in enumerate(self.outputs)]
            self._graph = Graph(outputs, self.scope.sinks)
        return self._graph

    def trace(
        self,
        pipeline: AbstractContextManager[object],
        function: object,
        arguments: Sequence[object] = (),
        keywords: dict[str, object] | None = None,
        conditions: ConditionStack | None = None,
    ) -> None:
        """Define the graph by calling the user's function; its result is checked when the graph is needed."""
        scope = self.scope
        scope.tracer, scope.conditions = trace.__code__, conditions
        try:
            with pipeline:
                self._returned = trace(function, *arguments, **(keywords or {}))
        finally:
            scope.tracer = scope.conditions = None

    def _take_returned(self, outputs: object) -> None:
        """Set the outputs from the result of a function decorated with `pipeline_def`."""
        if outputs is None or (isinstance(outputs, tuple) and not outputs):
            raise no_outputs()
        self.set_outputs(outputs if isinstance(outputs, tuple) else (outputs,))

    def take_defined(self, outputs: object) -> None:
        """Set the outputs from the result of ``define_graph``, which may also be a list."""
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        if not outputs:
            raise RuntimeError("The pipeline was defined with an incorrect number of outputs (0).")
        self.set_outputs(outputs)

    def set_outputs(self, outputs: Sequence[object]) -> None:
        """Set the outputs of each run; invalid ones are rejected when the graph is needed."""
        self.outputs = outputs or None
        self._graph = None

    def move_to_cpu(self, graph: Graph) -> None:
        """Move all operators of the defined graph to the CPU."""
        self._graph = on_cpu(graph)


def no_outputs() -> NotImplementedError:
    """Return the error for a pipeline without outputs."""
    return NotImplementedError(
        "The pipeline has no outputs: return them from the graph-defining function, override `define_graph`, or call "
        "`set_outputs`."
    )


def trace(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """Call the graph-defining function. In a stack, frames above this one belong to the library, and frames below to the user."""
    return function(*arguments, **keywords)


def as_output(value: object, index: int) -> DataNode:
    """Return the node of output ``index``; raise TypeError if ``value`` cannot be an output."""
    value = load(value)
    if isinstance(value, DataNode):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(item, DataNode) for item in value):
        raise TypeError(
            f"Illegal pipeline output type. The output {index} contains a nested `DataNode`. Missing list/tuple expansion (*) is "
            "the likely cause."
        )
    nested = isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple)) for item in value)
    if nested or not is_constant(value):
        raise TypeError(
            f"Illegal output type. The output {index} is a `{type(value)}`. Allowed types are ``DataNode`` and types convertible "
            "to `types.Constant` (numerical constants, 1D lists/tuple of numbers and ND arrays)."
        )
    return constant_node(value)
