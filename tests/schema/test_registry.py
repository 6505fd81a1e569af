"""The name of an operator belongs to only one class."""

from __future__ import annotations

import pytest

from penstock.schema import Operator, Schema, operator_class, register_operator


def declared(qualified: str) -> type[Operator]:
    """Return a class with this name that declares the operator `_RegisteredHere`."""
    return type(
        "Registered",
        (Operator,),
        {"schema": Schema(name="_RegisteredHere"), "__qualname__": qualified, "__module__": __name__},
    )


def test_a_class_may_be_declared_again_but_not_another_one_of_that_name() -> None:
    register_operator(declared("Registered"))
    # Declare the same class again, as when its module is reloaded.
    again = declared("Registered")
    register_operator(again)
    assert operator_class("_RegisteredHere") is again
    with pytest.raises(ValueError, match=f"'_RegisteredHere' is declared twice: in {__name__} and in {__name__}"):
        register_operator(declared("Other"))
    assert operator_class("_RegisteredHere") is again
