"""Python's operators and brackets on nodes: each adds an operator to the graph.

:mod:`penstock.graph.expressions` registers the implementation, which avoids an import cycle.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from penstock.data_types import DALIDataType

Node = TypeVar("Node", bound="Expression")


class Syntax(Protocol):
    """Makes the operators that Python's syntax stands for."""

    def apply(self, function: str, *operands: object) -> Any:
        """Return the node that applies ``function``, a name in expressions of the wire format."""

    def subscript(self, node: object, index: object) -> Any:
        """Return the node for ``node[index]``."""

    def call(self, operator: str, node: object, arguments: dict[str, object], device: str) -> Any:
        """Return the output of an operator with one input."""

    def enter_branch(self, node: object) -> Any:
        """Return the part of ``node`` that contains the samples of the open branches."""


_defined: list[Syntax] = []


def define(syntax: Syntax) -> None:
    """Set the implementation of Python's syntax on nodes."""
    _defined[:] = [syntax]


def syntax() -> Syntax:
    """Return the implementation of Python's syntax on nodes."""
    return _defined[0]


UFUNCS = {
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
"""The NumPy functions that are operators, with their names in expressions."""


class Expression:
    """Base class of nodes: Python's operators and brackets."""

    __slots__ = ()

    def __add__(self: Node, other: object) -> Node:
        return syntax().apply("add", self, other)

    def __radd__(self: Node, other: object) -> Node:
        return syntax().apply("add", other, self)

    def __sub__(self: Node, other: object) -> Node:
        return syntax().apply("sub", self, other)

    def __rsub__(self: Node, other: object) -> Node:
        return syntax().apply("sub", other, self)

    def __mul__(self: Node, other: object) -> Node:
        return syntax().apply("mul", self, other)

    def __rmul__(self: Node, other: object) -> Node:
        return syntax().apply("mul", other, self)

    def __pow__(self: Node, other: object) -> Node:
        return syntax().apply("pow", self, other)

    def __rpow__(self: Node, other: object) -> Node:
        return syntax().apply("pow", other, self)

    def __truediv__(self: Node, other: object) -> Node:
        return syntax().apply("fdiv", self, other)

    def __rtruediv__(self: Node, other: object) -> Node:
        return syntax().apply("fdiv", other, self)

    def __floordiv__(self: Node, other: object) -> Node:
        return syntax().apply("div", self, other)

    def __rfloordiv__(self: Node, other: object) -> Node:
        return syntax().apply("div", other, self)

    def __mod__(self: Node, other: object) -> Node:
        return syntax().apply("mod", self, other)

    def __rmod__(self: Node, other: object) -> Node:
        return syntax().apply("mod", other, self)

    def __neg__(self: Node) -> Node:
        return syntax().apply("minus", self)

    def __pos__(self: Node) -> Node:
        return self

    def __abs__(self: Node) -> Node:
        return syntax().apply("abs", self)

    def __eq__(self: Node, other: object) -> Node:  # type: ignore[override]
        return syntax().apply("eq", self, other)

    def __ne__(self: Node, other: object) -> Node:  # type: ignore[override]
        return syntax().apply("neq", self, other)

    def __lt__(self: Node, other: object) -> Node:
        return syntax().apply("lt", self, other)

    def __le__(self: Node, other: object) -> Node:
        return syntax().apply("leq", self, other)

    def __gt__(self: Node, other: object) -> Node:
        return syntax().apply("gt", self, other)

    def __ge__(self: Node, other: object) -> Node:
        return syntax().apply("geq", self, other)

    def __and__(self: Node, other: object) -> Node:
        return syntax().apply("bitand", self, other)

    def __rand__(self: Node, other: object) -> Node:
        return syntax().apply("bitand", other, self)

    def __or__(self: Node, other: object) -> Node:
        return syntax().apply("bitor", self, other)

    def __ror__(self: Node, other: object) -> Node:
        return syntax().apply("bitor", other, self)

    def __xor__(self: Node, other: object) -> Node:
        return syntax().apply("bitxor", self, other)

    def __rxor__(self: Node, other: object) -> Node:
        return syntax().apply("bitxor", other, self)

    def __invert__(self: Node) -> Node:
        return syntax().apply("bitnot", self)

    def __lshift__(self: Node, other: object) -> Node:
        return syntax().apply("lshift", self, other)

    def __rlshift__(self: Node, other: object) -> Node:
        return syntax().apply("lshift", other, self)

    def __rshift__(self: Node, other: object) -> Node:
        return syntax().apply("rshift", self, other)

    def __rrshift__(self: Node, other: object) -> Node:
        return syntax().apply("rshift", other, self)

    def __array_ufunc__(self: Node, ufunc: Any, method: str, *operands: Any, **options: object) -> Node:
        """Compute expressions such as ``number + node`` and ``numpy.add(node, number)``, for which NumPy calls this method.

        NumPy's numbers are treated like Python's, as in DALI.
        """
        function = UFUNCS.get(ufunc)
        others = [operand for operand in operands if not isinstance(operand, Expression)]
        if function is None or method != "__call__" or options or any(np.ndim(other) for other in others):
            raise TypeError(
                f"numpy's `{ufunc.__name__}` cannot be computed with a `DataNode`: an array to its left is not supported. "
                "Put the node first, make the array a node by `types.Constant`, or use the functions of `math`."
            )
        return syntax().apply(
            function, *(value if isinstance(value, Expression) else np.asarray(value).item() for value in operands)
        )

    # Comparison makes nodes, so dictionaries could not look nodes up.
    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self: Node, index: object) -> Node:
        return syntax().subscript(self, index)

    def shape(self: Node, *, dtype: DALIDataType | None = None, device: str = "cpu") -> Node:
        """Return the extents of each sample, as a 1-D tensor of type ``dtype`` (by default INT64)."""
        return syntax().call("_Shape", self, {"dtype": dtype}, device)

    def property(self: Node, key: str, *, device: str = "cpu") -> Node:
        """Return a property of each sample, e.g. ``"layout"`` or ``"source_info"``, as a 1-D tensor of UINT8 characters."""
        return syntax().call("GetProperty", self, {"key": key}, device)

    def source_info(self: Node, *, device: str = "cpu") -> Node:
        """Return the source of each sample, e.g. a file's name, as a 1-D tensor of UINT8 characters."""
        return self.property("source_info", device=device)
