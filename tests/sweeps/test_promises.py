"""The promises of every operator (`schema/example_data.py`), checked on calls generated from its schema."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulation import can_emulate
from running import BATCH_SIZE, Outcome, Tensors, batches_of, outcome, pipeline_of, run

from penstock import (
    Pipeline,
    fn,  # noqa: F401  (loads the operators)
)
from penstock.data_types import numpy_dtype
from penstock.errors import OperatorError
from penstock.schema import Argument, Schema, all_schemas, operator_class
from penstock.schema.example_data import Promise
from penstock.schema.examples import (
    Call,
    argument_call,
    choice_calls,
    examples,
    layout_call,
    settable_arguments,
    why_unswept,
)
from penstock.tensors.cuda import device_count

BAD = 1
# Deprecated operators are swept as well.
pytestmark = [pytest.mark.every_case, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def swept(promise: Promise | None = None) -> list[Schema]:
    """Return the schemas of the operators that give a promise, without aliases; None: of all operators."""
    schemas = [schema for schema in all_schemas() if operator_class(schema.name).schema is schema]
    return [schema for schema in schemas if not why_unswept(schema) and promise not in schema.exempt]


def name_of(schema: Schema) -> str:
    return schema.name


def devices(schema: Schema) -> tuple[str, ...]:
    """Return an operator's devices that are available here. Without a GPU, kernels can be emulated, but not a GPU's decoders."""
    had = {"cpu", "gpu"} if device_count() or can_emulate() else {"cpu"}
    return tuple(device for device in schema.devices if device in had)


def each(promise: Promise | None = None) -> list[Any]:
    """Return a test case for each operator that gives a promise, each device, and each example of the operator.

    On the GPU, only the case of the first example is in the default run.
    """
    return [
        pytest.param(schema, device, number, id=f"{schema.name}-{device}-{number}", marks=_marks(device, number))
        for schema in swept(promise)
        if not (promise == "batch" and schema.batchwise)
        for device in devices(schema)
        for number in range(max(len(schema.examples), 1))
    ]


def _marks(device: str, number: int) -> list[pytest.MarkDecorator]:
    """Return the marks of a case; most cases for the GPU are exhaustive, as kernels for the emulated GPU take seconds to compile."""
    return [pytest.mark.exhaustive] if device == "gpu" and number else []


def example(schema: Schema, number: int) -> Call:
    return list(examples(schema))[number]


def each_argument() -> list[Any]:
    return [
        pytest.param(schema, argument, id=f"{schema.name}-{argument.name}")
        for schema in swept()
        for argument in settable_arguments(schema)
    ]


def each_tensor_argument() -> list[Any]:
    given = {schema.name for schema in swept("tensor arguments")}
    return [own for own in each_argument() if own.values[1].tensor and own.values[0].name in given]


def differences(expected: Outcome, received: Outcome, samples: list[tuple[int, int]]) -> Iterator[str]:
    """Yield which of the samples, by their positions in both outcomes, differ."""
    assert len(expected.outputs) == len(received.outputs)
    for output, (a, b) in enumerate(zip(expected.outputs, received.outputs)):
        assert (a.dtype, a.layout) == (b.dtype, b.layout), f"output {output}"
        for i, j in samples:
            x, y = a.samples[i], b.samples[j]
            assert x is not None, expected.failures[i]
            assert y is not None, received.failures[j]
            if x.shape != y.shape or not np.array_equal(x, y, equal_nan=x.dtype.kind == "f"):
                yield f"output {output}, sample {j}: {y!r} instead of {x!r}"


def assert_equal(expected: Outcome, received: Outcome, samples: list[tuple[int, int]]) -> None:
    assert not list(differences(expected, received, samples))


def assert_close(expected: Outcome, received: Outcome) -> None:
    """Assert that integers are within 1, real numbers within 1e-5 of their range."""
    assert expected.failures.keys() == received.failures.keys()
    assert len(expected.outputs) == len(received.outputs)
    for a, b in zip(expected.outputs, received.outputs):
        assert (a.dtype, a.layout) == (b.dtype, b.layout)
        for x, y in zip(a.samples, b.samples):
            if x is None or y is None:
                continue
            assert x.shape == y.shape
            if x.dtype.kind in "biu":
                np.testing.assert_allclose(x.astype(np.int64), y.astype(np.int64), rtol=0, atol=1)
            elif x.size:
                finite = np.abs(x[np.isfinite(x)].astype(np.float64))
                scale = finite.max(initial=1e-30)
                relative = 1e-3 if x.dtype == np.float16 else 1e-5
                np.testing.assert_allclose(x, y, rtol=0, atol=scale * relative)


@pytest.mark.parametrize(("schema", "argument"), each_argument())
def test_arguments_work_as_constants(schema: Schema, argument: Argument) -> None:
    call, device = argument_call(schema, argument), devices(schema)[0]
    assert outcome(schema, call, device).failures == {}


@pytest.mark.parametrize("schema", swept(), ids=name_of)
def test_choices_work(schema: Schema) -> None:
    for call in choice_calls(schema):
        assert outcome(schema, call, devices(schema)[0]).failures == {}, call.name


@pytest.mark.parametrize("schema", swept(), ids=name_of)
def test_layouts_are_taken_or_refused(schema: Schema) -> None:
    layouts = schema.input(0).layouts if schema.inputs else ()
    for layout in layouts:
        with contextlib.nullcontext() if layout == layouts[0] else contextlib.suppress(OperatorError):
            assert outcome(schema, layout_call(schema, layout), devices(schema)[0]).failures == {}, layout


def _other(argument: Argument, value: Any) -> Any:
    """Return the argument's default if it is a valid value, so that samples differ."""
    if argument.is_list or argument.default is None or argument.tensor_example is not None:
        return value
    return argument.default


@pytest.mark.parametrize(("schema", "argument"), each_tensor_argument())
def test_tensors_mean_what_constants_do(schema: Schema, argument: Argument) -> None:
    call, device = argument_call(schema, argument), devices(schema)[0]
    value = call.arguments[argument.name]
    values = [value, _other(argument, value), value]
    kind = argument.element.tensor_dtype
    given = values if argument.tensor_example is None else [argument.tensor_example] * BATCH_SIZE
    arrays = [np.array(own, numpy_dtype(kind) if kind is not None else None) for own in given]
    computed = outcome(schema, call, device, {argument.name: Tensors(arrays, dtype=kind)})
    for index, own in enumerate(values):
        constant = Call(call.name, {**call.arguments, argument.name: own}, call.inputs)
        assert_equal(outcome(schema, constant, device), computed, [(index, index)])


@pytest.mark.parametrize(("schema", "device", "number"), each("batch"))
def test_batches_equal_samples_one_by_one(schema: Schema, device: str, number: int) -> None:
    call = example(schema, number)
    batch = outcome(schema, call, device)
    for index in range(BATCH_SIZE) if call.inputs else [0]:
        # Random numbers depend on the position in the batch.
        alone = [index] * BATCH_SIZE if schema.random and call.inputs else [index]
        assert_equal(outcome(schema, call, device, indices=alone), batch, [(index if len(alone) > 1 else 0, index)])


@pytest.mark.parametrize(("schema", "device", "number"), each())
def test_inputs_are_left_as_they_are(schema: Schema, device: str, number: int) -> None:
    call = example(schema, number)
    batches = batches_of(call, range(BATCH_SIZE))
    pipeline = pipeline_of(schema, call, device)
    run(pipeline, batches, BATCH_SIZE)
    pipeline.close()
    for name, expected in batches_of(call, range(BATCH_SIZE)).items():
        for a, b in zip(expected.samples, batches[name].samples):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("schema", "device", "number"), each("empty batch"))
def test_batches_without_samples_give_such(schema: Schema, device: str, number: int) -> None:
    call = example(schema, number)
    if call.inputs:
        full, empty = outcome(schema, call, device), outcome(schema, call, device, indices=[])
        assert [output.samples for output in empty.outputs] == [[]] * len(full.outputs)
        assert [output.dtype for output in empty.outputs] == [output.dtype for output in full.outputs]


@pytest.mark.parametrize(("schema", "device", "number"), each("isolation"))
def test_a_sample_that_failed_before_is_passed_over(schema: Schema, device: str, number: int) -> None:
    call = example(schema, number)
    expected, received = outcome(schema, call, device), outcome(schema, call, device, cancelled=[BAD])
    assert BAD in received.failures
    if not schema.batchwise:
        assert list(received.failures) == [BAD]
        assert_equal(expected, received, [(i, i) for i in range(BATCH_SIZE) if i != BAD])


def each_scalar_tensor_argument() -> list[Any]:
    arguments = [own.values[1] for own in each_tensor_argument()]
    return [
        own
        for own, a in zip(each_tensor_argument(), arguments)
        if not (a.is_list or a.tensor_example is not None or a.zero_dimensional)
    ]


@pytest.mark.parametrize(("schema", "argument"), each_scalar_tensor_argument())
def test_a_sample_with_a_bad_argument_fails_alone(schema: Schema, argument: Argument) -> None:
    call, device = argument_call(schema, argument), devices(schema)[0]
    kind = argument.element.tensor_dtype
    assert kind is not None
    value = call.arguments[argument.name]
    good, bad = np.array([value], numpy_dtype(kind)), np.array([value, value], numpy_dtype(kind))
    if outcome(schema, call, device, {argument.name: Tensors([good] * BATCH_SIZE, dtype=kind)}).failures:
        # The argument takes only scalars without dimensions, while all samples of a batch must have the same number of dimensions.
        return
    received = outcome(schema, call, device, {argument.name: Tensors([good, bad, good], dtype=kind)})
    # No sample fails if the operator ignores the argument, such as the depth of a window in an image without depth.
    assert received.failures.keys() <= {BAD}
    assert_equal(outcome(schema, call, device), received, [(0, 0), (2, 2)])


@pytest.mark.parametrize(
    "schema", [s for s in swept("isolation") if any(own.example("").bad is not None for own in s.inputs)], ids=name_of
)
def test_a_bad_sample_fails_alone(schema: Schema) -> None:
    for call in examples(schema):
        damaged = tuple(own.with_bad_sample(BAD) for own in call.inputs)
        received = outcome(schema, Call(call.name, call.arguments, damaged))
        assert list(received.failures) == [BAD]
        assert_equal(outcome(schema, call), received, [(0, 0), (2, 2)])


def each_of_sequences() -> list[Any]:
    def takes_frames(schema: Schema) -> bool:
        return schema.sequences or any(layout.startswith("F") for own in schema.inputs[:1] for layout in own.layouts)

    def has_inputs(schema: Schema, device: str, number: int) -> bool:
        return bool(schema.min_input_count or (schema.examples and schema.examples[number].inputs))

    return [own for own in each("sequences") if takes_frames(own.values[0]) and has_inputs(*own.values)]


@pytest.mark.parametrize(("schema", "device", "number"), each_of_sequences())
def test_sequences_equal_their_frames(schema: Schema, device: str, number: int) -> None:
    whole = in_sequences(schema, example(schema, number))
    # An operator that runs over frames takes them with the same arguments; others may need matching arguments.
    with contextlib.nullcontext() if schema.sequences else contextlib.suppress(OperatorError):
        sequences = outcome(schema, whole, device)
        for frame in range(2):
            expected = outcome(schema, frame_of(whole, frame), device)
            for a, b in zip(expected.outputs, sequences.outputs):
                for x, y in zip(a.samples, b.samples):
                    assert x is not None
                    assert y is not None
                    np.testing.assert_array_equal(x, y[frame])


def in_sequences(schema: Schema, call: Call) -> Call:
    """Return the call with each sample of its first input as the first of two frames, or on sequences in a layout that
    is taken.
    """
    first = call.inputs[0]
    declared = [layout for layout in schema.input(0).layouts if layout.startswith("F")]
    if first.layout.startswith("F"):
        return call
    if declared and "F" + first.layout not in declared:
        return layout_call(schema, declared[0])
    return Call(call.name, call.arguments, (first.sequences(), *call.inputs[1:]))


def frame_of(call: Call, number: int) -> Call:
    """Return the call on one frame of each sequence."""
    inputs = tuple(own.frame(number) if own.layout.startswith("F") else own for own in call.inputs)
    layouts = {key: value[1:] for key, value in call.arguments.items() if str(value).startswith("F")}
    return Call(call.name, {**call.arguments, **layouts}, inputs)


@pytest.mark.parametrize(
    ("schema", "device", "number"),
    [own for own in each("devices") if own.values[1] == "gpu" and "cpu" in own.values[0].devices],
)
def test_gpu_gives_what_the_cpu_does(schema: Schema, device: str, number: int) -> None:
    call = example(schema, number)
    assert_close(outcome(schema, call, "cpu"), outcome(schema, call, device))


@pytest.mark.parametrize("schema", swept("saving"), ids=name_of)
def test_saved_pipelines_give_the_same(schema: Schema, tmp_path: Path) -> None:
    calls = [*examples(schema), *(argument_call(schema, argument) for argument in settable_arguments(schema))]
    device = devices(schema)[0]
    for call in calls:
        made = pipeline_of(schema, call, device)
        made.save(str(tmp_path / "a.json"))
        made.serialize(filename=str(tmp_path / "a.dali"))
        expected = run(made, batches_of(call, range(BATCH_SIZE)), BATCH_SIZE)
        for loaded in (
            Pipeline.load(str(tmp_path / "a.json")),
            Pipeline.deserialize(filename=str(tmp_path / "a.dali")),
        ):
            received = run(loaded, batches_of(call, range(BATCH_SIZE)), BATCH_SIZE)
            assert_equal(expected, received, [(i, i) for i in range(BATCH_SIZE)])
            loaded.close()
        made.close()


def each_alias() -> list[Any]:
    """Return each other name of an operator, except for those with separate defaults."""

    def defaults(schema: Schema) -> dict[str, Any]:
        return {argument.name: argument.default for argument in schema.arguments}

    own = {operator_class(schema.name): schema for schema in swept()}
    aliases = [schema for schema in all_schemas() if operator_class(schema.name).schema is not schema]
    return [
        pytest.param(alias, own[cls], id=alias.name)
        for alias in aliases
        if (cls := operator_class(alias.name)) in own and defaults(alias) == defaults(own[cls])
    ]


@pytest.mark.parametrize(("alias", "schema"), each_alias())
def test_aliases_are_the_operator(alias: Schema, schema: Schema) -> None:
    call, device = example(schema, 0), devices(schema)[0]
    assert_equal(outcome(schema, call, device), outcome(alias, call, device), [(i, i) for i in range(BATCH_SIZE)])
