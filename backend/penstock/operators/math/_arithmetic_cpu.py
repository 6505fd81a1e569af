"""Arithmetic with a constant, as stages of a chain of the compiled core. The results equal :mod:`penstock.kernels.elementwise`'s bit for
bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.core.chains import StageKind, StageRecords
from penstock.kernels.cpu.callables import Kernel
from penstock.kernels.cpu.deferred import overload
from penstock.kernels.cpu.options import kernel
from penstock.kernels.cpu.parts import RUN, address_of, elements_at, record_at


def _in_type_of(value: Any, like: Any) -> Any:
    """Convert a number to the type of ``like``, as a C cast does. Only for use in kernels."""
    raise TypeError("this function can only be called in numba kernels")


# This function has no annotations, because numba compares the whole signatures of overloads.
@overload(_in_type_of)
def _in_type(value, like):  # type: ignore[no-untyped-def]
    return lambda value, like: type(like)(value)


@kernel
def _add(record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results, constant = (
        elements_at(source, count, like),
        elements_at(target, count, like_out),
        record_at(record),
    )
    for i in range(count):
        results[i] = _in_type_of(values[i], like_out) + constant.value


@kernel
def _subtract(record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results, constant = (
        elements_at(source, count, like),
        elements_at(target, count, like_out),
        record_at(record),
    )
    for i in range(count):
        results[i] = _in_type_of(values[i], like_out) - constant.value


@kernel
def _subtract_from(record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results, constant = (
        elements_at(source, count, like),
        elements_at(target, count, like_out),
        record_at(record),
    )
    for i in range(count):
        results[i] = constant.value - _in_type_of(values[i], like_out)


@kernel
def _multiply(record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results, constant = (
        elements_at(source, count, like),
        elements_at(target, count, like_out),
        record_at(record),
    )
    for i in range(count):
        results[i] = _in_type_of(values[i], like_out) * constant.value


@kernel
def _divide(record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results, constant = (
        elements_at(source, count, like),
        elements_at(target, count, like_out),
        record_at(record),
    )
    for i in range(count):
        results[i] = _in_type_of(values[i], like_out) / constant.value


@kernel
def _divide_into(record: Any, source: int, target: int, count: int, like: np.generic, like_out: np.generic) -> None:
    values, results, constant = (
        elements_at(source, count, like),
        elements_at(target, count, like_out),
        record_at(record),
    )
    for i in range(count):
        results[i] = constant.value / _in_type_of(values[i], like_out)


_KERNELS: dict[tuple[str, bool], Kernel] = {
    ("add", True): _add,
    ("add", False): _add,
    ("sub", True): _subtract,
    ("sub", False): _subtract_from,
    ("mul", True): _multiply,
    ("mul", False): _multiply,
    ("fdiv", True): _divide,
    ("fdiv", False): _divide_into,
}
"""The kernels by the name of the function and whether the data is the first operand."""


def arithmetic_stage(
    function: str, constant: np.ndarray, data_first: bool, shapes: np.ndarray, source: np.dtype, target: np.dtype
) -> StageRecords | None:
    """Return the chain stages that apply a function to a batch and a constant; None if there is no kernel for the result's type.

    Args:
        function: ``add``, ``sub``, ``mul`` or ``fdiv``.
        constant: an array of one element.
        data_first: whether the data is the first operand.
        shapes: the samples' shapes, int64 of shape (samples, rank).
        source, target: the types of the data's and of the result's elements.
    """
    if target.kind == "b":
        return None
    record = np.dtype([("value", target)])
    records = np.zeros(len(shapes), record)
    with np.errstate(all="ignore"):
        records["value"] = constant.astype(target)
    compute = address_of(_KERNELS[function, data_first], record, RUN, source, target)
    return StageRecords(StageKind.POINTWISE, records, shapes, target.itemsize, compute=compute)
