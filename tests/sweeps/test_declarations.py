"""Properties of every registered operator's schema."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import fn  # noqa: F401  (loads the operators)
from penstock.schema import Schema, all_schemas, operator_class

pytestmark = pytest.mark.every_case

SCHEMAS = [pytest.param(schema, id=schema.name) for schema in all_schemas()]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_is_documented(schema: Schema) -> None:
    assert operator_class(schema.name).__doc__, "the operator's class needs a docstring"
    for argument in schema.arguments:
        assert argument.doc or argument.hidden or argument.deprecated, f"argument {argument.name} needs documentation"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_devices_and_inputs_make_sense(schema: Schema) -> None:
    assert schema.devices
    assert set(schema.devices) <= {"cpu", "gpu", "mixed"}
    assert 0 <= schema.min_input_count <= schema.max_input_count
    for declared in schema.inputs:
        for layout in declared.layouts:
            named = layout.replace("*", "")
            assert len(set(named)) == len(named)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_defaults_are_of_their_types(schema: Schema) -> None:
    for argument in schema.all_arguments.values():
        if argument.default is not None:
            converted = argument.convert(argument.default)
            # The converted value passes through single precision, so it may be rounded.
            same = converted == argument.default or np.allclose(converted, argument.default)
            assert same, argument.name
        assert not (argument.required and argument.default is not None), argument.name
