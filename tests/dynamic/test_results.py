"""Operators return the same bytes in dynamic mode as in a pipeline, for calls generated from the schemas."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, dynamic, fn
from penstock.errors import OperatorError
from penstock.schema import Schema, all_schemas
from penstock.schema.declaration import Schema as Declaration
from penstock.schema.examples import Call, examples, why_unswept
from penstock.tensors import TensorListCPU

SIZE = 3
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def functions() -> dict[str, Any]:
    """Return dynamic mode's operators, by the names of their schemas."""
    return {function._op_class._interface.schema.name: function for function in dynamic.ops.all_functions()}


def calls() -> list[Any]:
    known = functions()
    return [
        pytest.param(schema, number, id=f"{schema.name}-{number}")
        for schema in all_schemas()
        if schema.name in known and not why_unswept(schema) and "cpu" in schema.devices
        for number, _ in enumerate(examples(schema))
    ]


def fed(call: Call) -> list[TensorListCPU]:
    return [
        TensorListCPU.of_samples([samples.make(index) for index in range(SIZE)], samples.layout)
        for samples in call.inputs
    ]


def from_pipeline(schema: Declaration, call: Call, state: list[int]) -> list[TensorListCPU]:
    function = operator.attrgetter(schema.fn_path)(fn)
    pipeline = Pipeline(batch_size=SIZE, num_threads=1, device_id=None, exec_pipelined=False, exec_async=False)
    arguments = dict(call.arguments)
    if schema.random:
        words = np.array(state, np.uint32)
        with pipeline:
            arguments["_random_state"] = fn.external_source(source=lambda: [words] * SIZE)
    with pipeline:
        nodes = [fn.external_source(name=f"input_{index}") for index, _ in enumerate(call.inputs)]
        results = function(*nodes, **arguments)
        pipeline.set_outputs(*(results if isinstance(results, list) else [results]))
    for index, batch in enumerate(fed(call)):
        pipeline.feed_input(f"input_{index}", batch)
    return [batch.as_cpu() for batch in pipeline.run()]


@pytest.mark.cases(40)
@pytest.mark.parametrize(("schema", "number"), calls())
def test_equal_a_pipeline_s(schema: Schema, number: int) -> None:
    call = list(examples(schema))[number]
    keywords: dict[str, Any] = dict(call.arguments)
    rng = dynamic.random.RNG(seed=5)
    expected: list[TensorListCPU] | OperatorError
    try:
        expected = from_pipeline(schema, call, rng.clone().draw(7))
    except OperatorError as error:
        expected = error
    if schema.random:
        keywords["rng"] = rng
        keywords.pop("seed", None)
    given = [dynamic.as_batch(batch) for batch in fed(call)]
    if isinstance(expected, OperatorError):
        with pytest.raises(type(expected), match=re.escape(expected.reason)):
            functions()[schema.name](*given, batch_size=SIZE, **keywords)
        return
    found = functions()[schema.name](*given, batch_size=SIZE, **keywords)
    batches = found if isinstance(found, tuple) else (found,)
    assert len(batches) == len(expected)
    for batch, whole in zip(batches, expected):
        assert (batch.dtype.type_id, batch.layout or "") == (whole.dtype, whole.layout())
        for sample, own in zip(batch.tensors, whole.samples):
            np.testing.assert_array_equal(np.asarray(sample), own)
