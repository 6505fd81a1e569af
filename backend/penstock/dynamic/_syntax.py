"""Python's operators, and methods of tensors and batches that run operators."""

from __future__ import annotations

from typing import TypeVar, cast

from penstock.dynamic._calls import CallInterface, call
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._tensor import Tensor
from penstock.dynamic._value import Value, define
from penstock.schema import find_schema
from penstock.schema.registry import offer_package

offer_package("penstock.operators")
_interfaces: dict[str, CallInterface] = {}
_Value = TypeVar("_Value", bound=Value)
_WORDS = {bool: "bool", int: "int32", float: "float32"}


def interface_of(operator: str) -> CallInterface:
    """Return the call interface of the operator with this schema name."""
    interface = _interfaces.get(operator)
    if interface is None:
        schema = find_schema(operator)
        interface = _interfaces[operator] = CallInterface(schema, schema.fn_path)
    return interface


def apply(function: str, *operands: object) -> Value:
    """Apply an arithmetic function, by its name in expressions, to tensors, batches, numbers and lists of numbers.

    Raises:
        ValueError: some operands are on the CPU and some on a GPU.
        OverflowError: an integer does not fit into 32 bits.
    """
    operands = tuple(map(unmarked, operands))
    values = [operand for operand in operands if isinstance(operand, Value)]
    on_gpu = any(value.device_type() == "gpu" for value in values)
    words: list[str] = []
    inputs: list[Value] = []
    integers: list[int] = []
    reals: list[float] = []
    for position, operand in enumerate(operands):
        kind = type(operand)
        if kind not in _WORDS or (not values and not position):
            words.append(f"&{len(inputs)}")
            inputs.append(_operand(operand, on_gpu))
        elif isinstance(operand, float):
            words.append(f"${len(reals)}:float32")
            reals.append(operand)
        else:
            assert isinstance(operand, int)
            if not -(2**31) <= operand < 2**31:
                raise OverflowError(f"The integer {operand} is out of range for int32; make it a tensor")
            words.append(f"${len(integers)}:{_WORDS[kind]}")
            integers.append(int(operand))
    arguments = {
        "expression_desc": f"{function}({' '.join(words)})",
        "integer_constants": integers or None,
        "real_constants": reals or None,
    }
    result = call(interface_of("_ArithmeticGenericOp"), inputs, arguments)
    assert isinstance(result, Value), "one output"
    return result


def _operand(operand: object, on_gpu: bool) -> Value:
    if not isinstance(operand, Value):
        numbers = isinstance(operand, (int, float, list, tuple))
        operand = Tensor(operand, device="gpu" if on_gpu and numbers else None)
    if (operand.device_type() == "gpu") != on_gpu:
        raise ValueError("Cannot mix GPU and CPU inputs: copy one of them by `.cpu()` or `.gpu()`")
    return operand


class _Operations:
    """Implements the operations on tensors and batches with operators."""

    apply = staticmethod(apply)

    @staticmethod
    def call(operator: str, operand: _Value, arguments: dict[str, object], device: object) -> _Value:
        result = call(interface_of(operator), (operand,), arguments, None, device)
        assert isinstance(result, Value), "one output"
        return cast(_Value, result)


define(_Operations())
