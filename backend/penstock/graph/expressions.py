"""Arithmetic, comparison, mathematical functions, indexing: the operators that Python's own syntax makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.kernels.expression import SYMBOLS
from penstock.types import DALIDataType, ScalarConstant, dtype_name, numpy_dtype

if TYPE_CHECKING:
    from penstock.graph.nodes import DataNode


class NewAxis:
    """Inserts a dimension of extent 1 where it stands in an index: ``node[:, newaxis]``, ``node[newaxis("F")]``.

    Args:
        name: the dimension's letter in the layout; without it the result has no layout.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            if not isinstance(name, str):
                raise TypeError(f"The axis name must be a single character, got {name!r}")
            if len(name) != 1:
                raise ValueError(f"The axis name must be a single character, got {name!r}")
        self.name = name

    def __call__(self, name: str | None = None) -> NewAxis:
        return NewAxis(name)

    def __repr__(self) -> str:
        return "newaxis" if self.name is None else f"newaxis({self.name!r})"


newaxis = NewAxis()


def _type_word(dtype: DALIDataType) -> str:
    return {"float": "float32", "double": "float64"}.get(dtype_name(dtype), dtype_name(dtype))


def apply(function: str, *operands: Any) -> DataNode:
    """The node that computes ``function`` (a name of the wire format's expressions) of nodes and constants."""
    from penstock.graph.calls import call_operator
    from penstock.graph.constants import to_node

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


def _as_operand(value: Any, index: int, function: str) -> Any:
    """A node, a scalar constant, or data for a constant node."""
    if isinstance(value, (Expression, ScalarConstant)):
        return value
    if type(value) in (bool, int, float, np.bool_):
        return ScalarConstant(value)
    if isinstance(value, np.float64):
        raise TypeError(f"Expected a value of type 'bool', 'int' or 'float', got {type(value)}: write float(value)")
    if isinstance(value, np.number) or (isinstance(value, np.ndarray) and not value.ndim):
        return ScalarConstant(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, Expression) for item in value):
        raise TypeError(
            f"The input {index} of operator `{SYMBOLS.get(function, function)}` must be a `DataNode` or a compatible "
            f"constant. Got a `{type(value).__name__}` with nested `DataNode`(s): was it returned by an operator of several "
            "outputs?"
        )
    if isinstance(value, (list, tuple, np.ndarray)) or hasattr(value, "__array__"):
        return value
    raise TypeError(f"Expected a DataNode or a value of type 'bool', 'int' or 'float', got {type(value)}.")


_UFUNCS = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.power: "pow",
    np.true_divide: "fdiv",
    np.floor_divide: "div",
    np.remainder: "mod",
    np.equal: "eq",
    np.not_equal: "neq",
    np.less: "lt",
    np.less_equal: "leq",
    np.greater: "gt",
    np.greater_equal: "geq",
    np.bitwise_and: "bitand",
    np.bitwise_or: "bitor",
    np.bitwise_xor: "bitxor",
    np.left_shift: "lshift",
    np.right_shift: "rshift",
}


class Expression:
    """The part of a node that Python's operators and brackets reach."""

    __slots__ = ()

    def __add__(self, other: Any) -> DataNode:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> DataNode:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> DataNode:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> DataNode:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> DataNode:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> DataNode:
        return apply("mul", other, self)

    def __pow__(self, other: Any) -> DataNode:
        return apply("pow", self, other)

    def __rpow__(self, other: Any) -> DataNode:
        return apply("pow", other, self)

    def __truediv__(self, other: Any) -> DataNode:
        return apply("fdiv", self, other)

    def __rtruediv__(self, other: Any) -> DataNode:
        return apply("fdiv", other, self)

    def __floordiv__(self, other: Any) -> DataNode:
        return apply("div", self, other)

    def __rfloordiv__(self, other: Any) -> DataNode:
        return apply("div", other, self)

    def __mod__(self, other: Any) -> DataNode:
        return apply("mod", self, other)

    def __rmod__(self, other: Any) -> DataNode:
        return apply("mod", other, self)

    def __neg__(self) -> DataNode:
        return apply("minus", self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> DataNode:
        return apply("abs", self)

    def __eq__(self, other: Any) -> DataNode:  # type: ignore[override]
        return apply("eq", self, other)

    def __ne__(self, other: Any) -> DataNode:  # type: ignore[override]
        return apply("neq", self, other)

    def __lt__(self, other: Any) -> DataNode:
        return apply("lt", self, other)

    def __le__(self, other: Any) -> DataNode:
        return apply("leq", self, other)

    def __gt__(self, other: Any) -> DataNode:
        return apply("gt", self, other)

    def __ge__(self, other: Any) -> DataNode:
        return apply("geq", self, other)

    def __and__(self, other: Any) -> DataNode:
        return apply("bitand", self, other)

    def __rand__(self, other: Any) -> DataNode:
        return apply("bitand", other, self)

    def __or__(self, other: Any) -> DataNode:
        return apply("bitor", self, other)

    def __ror__(self, other: Any) -> DataNode:
        return apply("bitor", other, self)

    def __xor__(self, other: Any) -> DataNode:
        return apply("bitxor", self, other)

    def __rxor__(self, other: Any) -> DataNode:
        return apply("bitxor", other, self)

    def __invert__(self) -> DataNode:
        return apply("bitnot", self)

    def __lshift__(self, other: Any) -> DataNode:
        return apply("lshift", self, other)

    def __rlshift__(self, other: Any) -> DataNode:
        return apply("lshift", other, self)

    def __rshift__(self, other: Any) -> DataNode:
        return apply("rshift", self, other)

    def __rrshift__(self, other: Any) -> DataNode:
        return apply("rshift", other, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> DataNode:
        """What numpy calls for ``number + node`` where the number is its own: it is taken for Python's, as in DALI."""
        left, function = operands[0], _UFUNCS.get(ufunc)
        if function is None or method != "__call__" or options or operands[1:] != (self,) or np.ndim(left):
            raise TypeError(
                f"numpy's `{ufunc.__name__}` cannot be computed with a `DataNode`: an array to its left is not supported. "
                "Put the node first, make the array a node by `types.Constant`, or use the functions of `math`."
            )
        return apply(function, left.item(), self)

    # Nodes are compared into nodes, and found in dictionaries by identity.
    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> DataNode:
        return subscript(self, index)

    def shape(self, *, dtype: DALIDataType | None = None, device: str = "cpu") -> DataNode:
        """The extents of each sample, as a 1-D tensor of ``dtype`` (default INT64)."""
        from penstock.graph.calls import call_operator

        return call_operator("_Shape", (self,), {"dtype": dtype}, device=device)

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """A property of each sample, e.g. ``"layout"`` or ``"source_info"``, as a 1-D tensor of UINT8 characters."""
        from penstock.graph.calls import call_operator

        return call_operator("GetProperty", (self,), {"key": key}, device=device)

    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Where each sample came from, e.g. a file's name, as a 1-D tensor of UINT8 characters."""
        return self.property("source_info", device=device)


def subscript(node: Any, index: Any) -> DataNode:
    """The node for ``node[index]``."""
    from penstock.graph.calls import call_operator

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
        given = _index_arguments(item, consumed)
        arguments.update(given)
        produced += f"at_{consumed}" not in given
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
    given = {"axes": new_axes}
    named = [name for name in names if name is not None]
    if named and len(named) != len(names):
        raise ValueError("Either all new axes of an index have a name or none has")
    if named:
        given["new_axis_names"] = "".join(named)
    return call_operator("ExpandDims", (result,), given, device=node.device)


def _index_arguments(item: Any, axis: int) -> dict[str, Any]:
    if item is None:
        return {}
    if item is Ellipsis:
        raise NotImplementedError("Ellipsis in indexing is not implemented: write one `:` for each dimension")
    if isinstance(item, slice):
        bounds = {f"lo_{axis}": item.start, f"hi_{axis}": item.stop}
        given = {name: _index_value(value) for name, value in bounds.items() if value is not None}
        if item.step is not None and item.step != 1:
            given[f"step_{axis}"] = _index_value(item.step)
        return given
    return {f"at_{axis}": _index_value(item)}


def _index_value(value: Any) -> Any:
    if isinstance(value, Expression):
        return value
    if isinstance(value, ScalarConstant):
        value = np.asarray(value.value)
    if isinstance(value, np.ndarray) and value.size != 1:
        raise RuntimeError(f"Array indices must be scalar (0D). Got {value.ndim}D tensor of shape {value.shape}.")
    if isinstance(value, (int, np.generic, np.ndarray)):
        return int(np.asarray(value).reshape(()))
    raise TypeError(f"Invalid type for an index: {type(value)}; use integers, slices, DataNodes or `newaxis`")
