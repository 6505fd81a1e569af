"""Data types of other libraries are converted to DALI's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import types
from penstock.types import DALIDataType, to_dali_type


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float32, types.FLOAT),
        (np.dtype("f4"), types.FLOAT),
        ("float32", types.FLOAT),
        ("int32", types.INT32),
        ("bool", types.BOOL),
        (float, types.FLOAT),
        (bool, types.BOOL),
        (types.UINT8, types.UINT8),
    ],
)
def test_types_of_other_libraries(given: object, expected: DALIDataType) -> None:
    assert to_dali_type(given) is expected


@pytest.mark.parametrize("given", ["f4", "<i8", "single", "", int, None, 5, np.complex64, str])
def test_what_is_no_type(given: object) -> None:
    with pytest.raises(TypeError, match="could not be converted into any known DALIDataType"):
        to_dali_type(given)


def test_no_choice_is_false() -> None:
    for choices in (types.DALIDataType, types.DALIImageType, types.DALIInterpType):
        assert all(choices.__members__.values())
    assert types.ScalarConstant(types.ScalarConstant(3, types.FLOAT), types.UINT8).dtype == types.UINT8


@pytest.mark.parametrize("dtype", [np.float32, "uint8", types.DATA_TYPE, types.STRING, types.NO_TYPE, 99])
def test_scalars_are_numbers(dtype: Any) -> None:
    with pytest.raises(TypeError, match="ScalarConstant can only hold one of"):
        types.ScalarConstant(1, dtype)
    with pytest.raises(TypeError, match="ScalarConstant can only hold one of"):
        types.Constant(1, dtype=dtype)


@pytest.mark.parametrize("kind", [types.DALIDataType, types.DALIImageType, types.DALIInterpType])
def test_enumerations_are_names_of_numbers(kind: Any) -> None:
    first = kind(0)
    for use in (list, len, lambda kind: kind["UINT8"], lambda kind: first in kind, lambda kind: kind(1.0)):
        with pytest.raises(TypeError):
            use(kind)
    for use in (lambda one: one < one, lambda one: one + 1, lambda one: 1 | one, lambda one: -one, "{:d}".format):
        with pytest.raises(TypeError):
            use(first)
    assert first == 0
    assert first != 0.0
    assert hash(first) == hash(0)
    assert int(first) == 0
    assert repr(kind(99)) == f"<{kind.__name__}.???: 99>"
    assert kind(99) == kind(99) != first


def test_members_of_two_enumerations_differ() -> None:
    assert types.UINT8 != types.RGB
    assert types.RGB != types.INTERP_NN


def test_layouts_are_made_of_text() -> None:
    layout = types.TensorLayout("HWC")
    assert layout == "HWC"
    assert repr(layout) == "penstock.types.TensorLayout('HWC')"
    for wrong in (5, None):
        with pytest.raises(TypeError, match="made from a str"):
            types.TensorLayout(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "fitting", "beyond"),
    [
        (types.DALIDataType, (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**31)),
        (types.DALIImageType, (0, 2**32 - 1), (-1, 2**32)),
        (types.DALIInterpType, (0, 2**32 - 1), (-1, 2**32)),
    ],
)
def test_enumerations_have_32_bits(
    kind: Callable[[int], object], fitting: tuple[int, ...], beyond: tuple[int, ...]
) -> None:
    assert [kind(number) for number in fitting] == list(fitting)
    for number in beyond:
        with pytest.raises(TypeError, match="32-bit integer"):
            kind(number)


def test_constants_are_compared_and_not_hashed() -> None:
    assert types.ScalarConstant(5) == types.ScalarConstant(5) != types.ScalarConstant(5.0)
    assert types.ScalarConstant(5) != 5
    assert types.ScalarConstant(np.array([[5]])).value == 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(types.ScalarConstant(5))
    with pytest.raises(TypeError, match=r"got <class 'list'>: \[1\]"):
        types.ScalarConstant([1])
