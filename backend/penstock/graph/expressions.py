"""The operators that Python's syntax stands for: arithmetic, comparison, mathematical functions and indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, ScalarConstant, dtype_name, numpy_dtype
from penstock.graph import syntax
from penstock.graph.calls import call_operator, to_node
from penstock.graph.nodes import DataNode
from penstock.graph.scope import current_scope
from penstock.kernels.expression import SYMBOLS


class NewAxis:
    """A new dimension of extent 1 in an index: ``node[:, newaxis]``, ``node[newaxis("F")]``.

    Args:
        name: the letter of the new dimension in the layout; without it, the result has no layout.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            if not isinstance(name, str):
                raise TypeError(f"Axis name must be a single-character string, got {name!r}")
            if len(name) != 1:
                raise ValueError(f"Axis name must be a single-character string, got {name!r}")
        self.name = name

    def __call__(self, name: str | None = None) -> NewAxis:
        return NewAxis(name)

    def __repr__(self) -> str:
        return "newaxis" if self.name is None else f"newaxis({self.name!r})"


newaxis = NewAxis()


def _type_word(dtype: DALIDataType) -> str:
    return {"float": "float32", "double": "float64"}.get(dtype_name(dtype), dtype_name(dtype))


def apply(function: str, *operands: object) -> DataNode:
    """Return the node that applies ``function`` to nodes and constants; ``function`` is a name in expressions of the wire format."""
    operands = tuple(_as_operand(operand, index, function) for index, operand in enumerate(operands))
    if all(isinstance(operand, ScalarConstant) for operand in operands):
        raise ValueError(
            f"Operator penstock.math.{function} expects from 1 to 64 inputs, but received 0: its operands are all constants "
            f"({', '.join(map(repr, operands))}). Compute on constants in Python."
        )
    inputs: list[DataNode] = []
    integers: list[int] = []
    reals: list[float] = []
    words = []
    for operand in operands:
        if not isinstance(operand, ScalarConstant):
            words.append(f"&{len(inputs)}")
            inputs.append(to_node(operand))
            continue
        if not operand.fits:
            raise OverflowError(f"Integer constant {operand!r} out of range for {dtype_name(operand.dtype)}")
        values: list[Any] = reals if numpy_dtype(operand.dtype).kind == "f" else integers
        words.append(f"${len(values)}:{_type_word(operand.dtype)}")
        values.append(operand.value if values is reals else int(operand.value))
    device = "gpu" if any(node.device == "gpu" for node in inputs) else "cpu"
    arguments: dict[str, Any] = {"expression_desc": f"{function}({' '.join(words)})"}
    if integers:
        arguments["integer_constants"] = integers
    if reals:
        arguments["real_constants"] = reals
    nodes = [node.gpu() for node in inputs] if device == "gpu" else inputs
    return call_operator("_ArithmeticGenericOp", nodes, arguments, device=device, display=f"penstock.math.{function}")


def _as_operand(value: object, index: int, function: str) -> object:
    """Return an operand as a node, a scalar constant, or data for a constant node."""
    if isinstance(value, (DataNode, ScalarConstant)):
        return value
    if type(value) in (bool, int, float, np.bool_):
        return ScalarConstant(value)
    if isinstance(value, np.float64):
        raise TypeError(
            f"Expected scalar value of type 'bool', 'int' or 'float', got {type(value)}: write float(value)"
        )
    if isinstance(value, np.number) or (isinstance(value, np.ndarray) and not value.ndim):
        return ScalarConstant(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, DataNode) for item in value):
        raise TypeError(
            f"The input {index} of operator `{SYMBOLS.get(function, function)}` must be a `DataNode` or a compatible "
            f"constant. Got a `{type(value).__name__}` with nested `DataNode`(s): was it returned by an operator of several "
            "outputs?"
        )
    if isinstance(value, (list, tuple, np.ndarray)) or hasattr(value, "__array__"):
        return value
    raise TypeError(
        f"Expected scalar value of type 'bool', 'int' or 'float', got {type(value)}. Nodes and arrays are operands as well."
    )


def subscript(node: Any, index: Any) -> DataNode:
    """Return the node for ``node[index]``."""
    indices = index if isinstance(index, tuple) else (index,)
    arguments: dict[str, Any] = {}
    new_axes: list[int] = []
    names: list[str | None] = []
    consumed = produced = 0
    for item in indices:
        if isinstance(item, NewAxis):
            new_axes.append(produced)
            names.append(item.name)
            produced += 1
            continue
        index_arguments = _index_arguments(item, consumed)
        arguments.update(index_arguments)
        produced += f"at_{consumed}" not in index_arguments
        consumed += 1
    result = node
    if arguments:
        result = call_operator(
            "_TensorSubscript", (node,), dict(arguments, num_subscripts=consumed), device=node.device
        )
    elif consumed and not isinstance(indices[-1], NewAxis):
        result = call_operator("_SubscriptDimCheck", (node,), {"num_subscripts": consumed}, device=node.device)
    if not new_axes:
        return result
    index_arguments = {"axes": new_axes}
    named = [name for name in names if name is not None]
    if named and len(named) != len(names):
        raise ValueError("Either all new axes of an index must have names, or none of them")
    if named:
        index_arguments["new_axis_names"] = "".join(named)
    return call_operator("ExpandDims", (result,), index_arguments, device=node.device)


def _index_arguments(item: object, axis: int) -> dict[str, object]:
    if item is None:
        return {}
    if item is Ellipsis:
        raise NotImplementedError("Ellipsis in indexing is not implemented: write one `:` for each dimension")
    if isinstance(item, slice):
        bounds = {f"lo_{axis}": item.start, f"hi_{axis}": item.stop}
        bounds_given = {name: _index_value(value) for name, value in bounds.items() if value is not None}
        if item.step is not None and item.step != 1:
            bounds_given[f"step_{axis}"] = _index_value(item.step)
        return bounds_given
    return {f"at_{axis}": _index_value(item)}


def _index_value(value: object) -> object:
    if isinstance(value, DataNode):
        return value
    if isinstance(value, ScalarConstant):
        value = np.asarray(value.value)
    if isinstance(value, np.ndarray) and value.size != 1:
        raise RuntimeError(f"Array indices must be scalar (0D). Got {value.ndim}D tensor of shape {value.shape}.")
    if isinstance(value, (int, np.generic, np.ndarray)):
        return int(np.asarray(value).reshape(()))
    raise TypeError(f"Invalid type for an index: {type(value)}; use integers, slices, DataNodes or `newaxis`")


class _Operators:
    """Implements Python's operators on nodes by operators of the graph that is being defined."""

    apply = staticmethod(apply)
    subscript = staticmethod(subscript)

    @staticmethod
    def call(operator: str, node: object, arguments: dict[str, object], device: str) -> Any:
        return call_operator(operator, (node,), arguments, device=device)

    @staticmethod
    def enter_branch(node: Any) -> Any:
        return current_scope().enter_branch(node)


syntax.define(_Operators())
