"""Invalid calls raise errors at once, with DALI's error types."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, math, ops, pipeline_def, types


def images(**arguments: Any) -> Any:
    return fn.external_source(lambda: [np.zeros((4, 5, 3), np.uint8)] * 2, **arguments)


def build(define: Callable[[], Any], **options: Any) -> Pipeline:
    settings = {"batch_size": 2, "num_threads": 1} | options
    pipeline = pipeline_def(define, **settings)()
    pipeline.build()
    return pipeline


@pytest.mark.parametrize(
    ("define", "kind", "text"),
    [
        (lambda: fn.crop(images(), foo=1), KeyError, 'Argument "foo" is not defined for operator "Crop"'),
        (lambda: fn.rotate(images()), RuntimeError, "angle"),
        (lambda: fn.rotate(), ValueError, "expects from 1 to 1 inputs, but received 0"),
        (lambda: fn.rotate(images(), images(), angle=1.0), ValueError, "received 2"),
        (lambda: fn.rotate(images(), angle="a"), ValueError, "could not convert"),
        (lambda: fn.rotate(images(), angle=[1.0, 2.0]), TypeError, "list"),
        (lambda: fn.cast(images(), dtype=float), TypeError, ""),
        (lambda: fn.cast(images(), dtype=types.FLOAT, device="tpu"), ValueError, "Unsupported device"),
        (lambda: fn.cast(images(), dtype=types.FLOAT, device="gpu"), RuntimeError, "incompatible device"),
        (lambda: fn.cast(images().gpu(), dtype=types.FLOAT, device="cpu"), RuntimeError, "incompatible device"),
        (lambda: fn.rotate(images(), angle=images().gpu()), ValueError, "must be on CPU"),
        (lambda: fn.cast(images(), dtype=fn.random.coin_flip()), TypeError, "DataNode"),
        (lambda: fn.cast("a", dtype=types.FLOAT), TypeError, "Received input `0` of type 'str'"),
        (lambda: fn.cast(None, dtype=types.FLOAT), TypeError, "NoneType"),
        (lambda: tuple(fn.cat([images(), images()], [images()] * 3)), ValueError, "same length"),
        (lambda: 1 if images() else 2, TypeError, "enable_conditionals"),
        (lambda: tuple(images()), TypeError, "not iterable"),
        (lambda: images()["a"], TypeError, "index"),
        (lambda: images()[...], NotImplementedError, "Ellipsis"),
        (lambda: images() + "a", TypeError, "'bool', 'int' or 'float'"),
        (lambda: None, NotImplementedError, ""),
        (lambda: "a", TypeError, "Illegal output type"),
        (lambda: [images(), images()], TypeError, "nested"),
        (lambda: images(layout="HW")[0], RuntimeError, ""),
        (
            lambda: (fn.cast(images(), dtype=types.FLOAT, name="a"), fn.cast(images(), dtype=types.FLOAT, name="a")),
            RuntimeError,
            "non-unique names",
        ),
    ],
)
def test_mistakes(define: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text.replace("(", r"\(") or None):
        build(define).run()


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"batch_size": None}, ValueError),
        ({"batch_size": 0}, ValueError),
        ({"num_threads": None}, TypeError),
        ({"num_threads": 0}, ValueError),
        ({"prefetch_queue_depth": 0}, ValueError),
        ({"output_dtype": "a"}, TypeError),
        ({"output_dtype": [types.FLOAT, types.FLOAT]}, RuntimeError),
        ({"foo": 0}, TypeError),
        ({"device_id": 99}, RuntimeError),
        ({"bytes_per_sample": -1}, TypeError),
        ({"bytes_per_sample": 1.5}, TypeError),
    ],
)
def test_settings_that_are_refused(options: dict[str, Any], kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        build(lambda: images(), **options)


def test_errors_name_the_users_line() -> None:
    def define() -> Any:
        return fn.crop(images(), crop=[10, 10])

    pipeline = build(define)
    with pytest.raises(RuntimeError) as caught:
        pipeline.run()
    text = str(caught.value)
    assert "test_calls.py" in text
    assert "fn.crop(images(), crop=[10, 10])" in text
    assert "penstock.fn.crop" in text


def test_multiple_input_sets() -> None:
    def define() -> Any:
        cast = fn.cast([images(), images()], dtype=types.FLOAT)
        assert isinstance(cast, list)
        return tuple(cast)

    outputs = build(define).run()
    assert [batch.dtype for batch in outputs] == [types.FLOAT, types.FLOAT]


def test_a_list_of_one_input_gives_one_output() -> None:
    def define() -> Any:
        outputs = fn.cast([images()], dtype=types.FLOAT), ops.Cast(dtype=types.FLOAT)([images()])
        return *outputs, *fn.nonsilent_region([fn.external_source(lambda: [np.ones(4096, np.float32)] * 2)])

    assert len(build(define).run()) == 4


def test_a_constant_is_compared_with_a_node_from_both_sides() -> None:
    def define() -> Any:
        return types.Constant(1) != images(), images() != types.Constant(0), types.Constant(0) == images()

    assert [bool(batch.as_array().all()) for batch in build(define).run()] == [True, False, True]


def test_a_constant_given_to_a_python_function() -> None:
    def define() -> Any:
        return fn.python_function([42, 43], function=lambda data: data + 1)

    assert build(define).run()[0].at(1).tolist() == [43, 44]


def test_sources_of_one_class_face_are_fed_apart() -> None:
    source = ops.ExternalSource(num_outputs=2)
    pipeline = build(lambda: tuple(source()), prefetch_queue_depth=1)
    for value, node in enumerate(pipeline.graph.outputs):
        pipeline.feed_input(node, np.full((2, 1), value))
    assert [int(batch.at(1)[0]) for batch in pipeline.run()] == [0, 1]


def test_class_face_takes_arguments_at_both_places() -> None:
    def define() -> Any:
        resize = ops.Resize(resize_x=10)
        return resize(images(), interp_type=types.INTERP_NN)

    assert build(define).run()[0].shape() == [(8, 10, 3)] * 2


def test_class_face_refuses_unknown_arguments() -> None:
    with pytest.raises(KeyError, match="foo"):
        ops.Resize(foo=1)
    with pytest.raises(ValueError, match="tpu"):
        ops.Resize(device="tpu", resize_x=3)(np.zeros((2, 2, 3), np.uint8))


def test_class_face_checks_arguments_at_construction() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        ops.Resize(size="x")
    with pytest.raises(TypeError, match="deprecated argument when 'dtype' was already provided"):
        ops.Crop(output_dtype=types.FLOAT, dtype=types.FLOAT)
    with pytest.warns(DeprecationWarning, match="`output_dtype` is a deprecated alias") as warned:
        crop = ops.Crop(output_dtype=types.FLOAT)
    assert warned[0].filename == __file__
    with pytest.raises(ValueError, match="`dtype` was already specified"):
        crop(np.zeros((2, 2, 3), np.uint8), dtype=types.FLOAT)


def test_words_of_warnings_that_programs_look_for() -> None:
    with pytest.warns(DeprecationWarning, match="should not be used with operators that don't use random numbers.$"):
        fn.reshape(images(), shape=[-1], seed=1)
    with pytest.warns(DeprecationWarning, match="is no longer used and will be removed in a future release.$"):
        fn.crop_mirror_normalize(images(), image_type=types.RGB)


def test_deprecated_arguments_warn_and_work() -> None:
    with pytest.warns(DeprecationWarning, match="output_dtype"):
        pipeline = build(lambda: fn.crop(images(), crop=[2, 2], output_dtype=types.FLOAT))
    assert pipeline.run()[0].dtype == types.FLOAT


def test_unused_operators_are_pruned_and_preserved_ones_are_not() -> None:
    def define(preserve: bool) -> Any:
        fn.cast(images(), dtype=types.FLOAT, preserve=preserve, name="unused")
        return images()

    for preserve in (False, True):
        pipeline = build(lambda p=preserve: define(p))
        names = [step.node.name for step in pipeline.executor.plan.operators]
        assert ("unused" in names) is preserve


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("shapes", "`penstock.fn.shapes` is now deprecated.\nUse the method `shape`"),
        ("hidden.shapes", "is now deprecated.\nUse the method `shape`"),
        ("experimental.equalize", "Use `penstock.fn.equalize` instead.\nIt was moved out of the experimental phase"),
        ("image_decoder", "Use `penstock.fn.decoders.image` instead.\nIn DALI 1.0 all decoders were moved"),
    ],
)
def test_deprecated_operators_warn(path: str, text: str) -> None:
    function: Any = functools.reduce(getattr, path.split("."), fn)
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        data = fn.external_source(name="data")
        with pytest.warns(DeprecationWarning, match=re.escape(text)):
            function(data)


def test_class_faces_take_an_argument_once() -> None:
    resize = ops.Resize(size=[2, 3], interp_type=None, name="small")

    def define(**arguments: Any) -> Callable[[], Any]:
        return lambda: resize(images(layout="HWC"), **arguments)

    assert build(define(size=None, interp_type=types.INTERP_NN)).run()[0].shape() == [(2, 3, 3)] * 2
    for arguments in ({"size": [2, 3]}, {"name": "other"}):
        with pytest.raises(ValueError, match="already specified in __init__"):
            build(define(**arguments))
    with pytest.raises(RuntimeError, match="already specified"):
        build(lambda: ops.Rotate(angle=3.0)(images(layout="HWC"), angle=fn.random.uniform()))


def test_python_faces_take_their_settings_by_place() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1)
    with pipe:
        numbers = fn.external_source(source=[np.arange(6, dtype=np.int32).reshape(2, 3)])
        by_batch = ops.PythonFunction(lambda batch: [sample + 1 for sample in batch], 1, "cpu", True)
        capsules = ops.DLTensorPythonFunction(lambda batch: batch, 1, "cpu", True, True)
        pipe.set_outputs(by_batch(numbers), capsules(numbers))
    more, same = pipe.run()
    assert more.as_array().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert same.as_array().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (by_batch.schema_name, by_batch.device, by_batch.preserve) == ("PythonFunction", "cpu", True)


def test_unknown_arguments_are_found_before_the_inputs_are_looked_at() -> None:
    for call in (lambda: fn.resize(foo=3), lambda: fn.resize("a", foo=3), lambda: ops.ExternalSource()(foo=3)):
        with pytest.raises(KeyError, match='Argument "foo" is not defined for operator'):
            call()


def test_compose_of_one_is_that_operator() -> None:
    cast = ops.Cast(dtype=types.FLOAT)
    assert ops.Compose([cast]) is cast


def test_functions_of_two_values_take_them_by_name() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        number = types.Constant(np.float32([2.0]), device="cpu")
        pipe.set_outputs(math.atan2(x=number, y=number), math.pow(base=number, exponent=3), math.fpow(number, 2))
    angle, cube, square = (batch.as_array()[0, 0] for batch in pipe.run())
    assert (round(float(angle), 5), cube, square) == (0.7854, 8.0, 4.0)


def test_nodes_in_functions_of_numpy() -> None:
    def define() -> Any:
        node = types.Constant([1, 2], dtype=types.INT32)
        return np.add(node, 1), np.float32(2) * node, np.subtract(5, node)

    assert [output.as_array()[0].tolist() for output in build(define).run()] == [[2, 3], [2, 4], [4, 3]]
    node = types.Constant([1, 2])
    for wrong in (lambda: np.sin(node), lambda: np.add(node, np.zeros(2)), lambda: np.zeros(2) + node):
        with pytest.raises(TypeError, match="numpy's"):
            wrong()


def test_nodes_are_unhashable_and_not_iterable() -> None:
    node = types.Constant([1, 2])
    with pytest.raises(TypeError, match="unhashable"):
        hash(node)
    with pytest.raises(TypeError, match="not iterable"):
        list(node)


@pytest.mark.parametrize(
    "call", [fn.copy, lambda x: fn.brightness(fn.zeros(shape=[1]), brightness=x), lambda x: fn.zeros(shape=x)]
)
def test_arrays_that_cannot_be_constants(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"convertible to constant nodes.*1099511627776 out of range"):
        call(np.array([1, 2**40]))
