"""Graphs as text: each operator is a line, written as the call that made it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from penstock.errors import as_imported

if TYPE_CHECKING:
    from penstock.graph.nodes import DataNode, OpNode

_MAX_LINE_CHARACTERS = 110
# How many operators at either end of a longer graph are listed.
_NUM_EDGE_OPERATORS = 30
# The arguments of the arithmetic operator, which are shown as its operands.
_EXPRESSION = (_DESCRIPTION, _INTEGERS, _REALS) = ("expression_desc", "integer_constants", "real_constants")
_OPERAND = re.compile(r"([&$])(\d+)(?::(\w+))?")


def listing(operators: Sequence[OpNode], outputs: Sequence[DataNode]) -> str:
    """Return the operators, each with its outputs, inputs and arguments, and the graph's outputs.

    >>> from penstock import Pipeline, fn
    >>> with Pipeline(batch_size=1) as pipe:
    ...     pipe.set_outputs(fn.flip(fn.external_source(name="image"), name="mirrored"))
    >>> print(listing(pipe.graph.operators, pipe.graph.outputs))
    image = fn.external_source()
    mirrored = fn.flip(image)
    return mirrored
    """
    shown = [_line(op) for op in operators]
    if len(shown) > 2 * _NUM_EDGE_OPERATORS:
        shown[_NUM_EDGE_OPERATORS:-_NUM_EDGE_OPERATORS] = [f"... {len(shown) - 2 * _NUM_EDGE_OPERATORS} more operators"]
    return "\n".join([*shown, f"return {', '.join(map(_use, outputs))}"])


def title(op: OpNode) -> str:
    """Return an operator's name in pictures and listings: its function's name, or, for a fused operator, the names of its steps."""
    if op.steps:
        return " + ".join(title(step).partition(".")[2] for step in op.steps)
    return op.display_name.removeprefix(as_imported("penstock."))


def arguments(op: OpNode) -> Iterator[tuple[str, str]]:
    """Yield the name and the value, as text, of each constant argument that was passed."""
    return ((name, _value(value)) for name, value in op.arguments.items() if name not in _EXPRESSION)


def _line(op: OpNode) -> str:
    shown_arguments = _operands(op) if _DESCRIPTION in op.arguments else [*map(_use, op.inputs)]
    shown_arguments += [f"{name.rpartition(':')[2]}={_use(node)}" for name, node in op.argument_inputs.items()]
    shown_arguments += [f"{name}={value}" for name, value in arguments(op)]
    shown_arguments += [] if op.device == "cpu" else [f"device='{op.device}'"]
    call = f"{title(op)}({', '.join(shown_arguments)})"
    line = f"{', '.join(node.name for node in op.outputs)} = {call}" if op.outputs else call
    return line if len(line) <= _MAX_LINE_CHARACTERS else line[: _MAX_LINE_CHARACTERS - 4] + "...)"


def _operands(op: OpNode) -> list[str]:
    """Return the operands of an expression, nodes and constants, in order."""
    operands = []
    for kind, number, dtype in _OPERAND.findall(op.arguments[_DESCRIPTION]):
        if kind == "&":
            operands.append(_use(op.inputs[int(number)]))
        else:
            constants = op.arguments[_REALS if "float" in dtype else _INTEGERS]
            operands.append(_value(constants[int(number)]))
    return operands


def _use(node: DataNode) -> str:
    return f"{node.name}.{node.device}()" if node.is_moved else node.name


def _value(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
