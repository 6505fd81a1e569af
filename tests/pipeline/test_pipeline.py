"""Pipelines: settings, graphs, and ways of running them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, ops, pipeline_def, types

SETTINGS: dict[str, Any] = {"batch_size": 2, "num_threads": 1}


def counting(**settings: Any) -> Pipeline:
    pipe = Pipeline(**(SETTINGS | settings))
    with pipe:
        pipe.set_outputs(fn.external_source(lambda i: np.full((2, 3), i, np.float32)))
    return pipe


def fed(**arguments: Any) -> Pipeline:
    pipe = Pipeline(prefetch_queue_depth=1, **SETTINGS)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x", **arguments))
    return pipe


class Defined(Pipeline):
    def __init__(self, outputs: Any) -> None:
        super().__init__(**SETTINGS)
        self.outputs_of = outputs

    def define_graph(self) -> Any:
        self.number = fn.external_source(name="number")
        return self.outputs_of(self.number)

    def iter_setup(self) -> None:
        self.feed_input(self.number, np.zeros(2, np.int32))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"prefetch_queue_depth": True}, TypeError),
        ({"prefetch_queue_depth": {"cpu_size": 2, "gpu_size": 3}, "exec_async": False}, ValueError),
        ({"prefetch_queue_depth": {"cpu_size": 2, "gpu_size": 3}, "exec_dynamic": True}, RuntimeError),
        ({"py_callback_pickler": sys}, ValueError),
        ({"output_dtype": types.NO_TYPE}, ValueError),
        ({"output_ndim": -1}, ValueError),
        ({"output_layout": 5}, TypeError),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Pipeline(**(SETTINGS | settings))


@pytest.mark.parametrize(
    ("settings", "dynamic"),
    [({}, True), ({"exec_async": False}, None), ({"exec_pipelined": False}, None), ({"exec_dynamic": False}, False)],
)
def test_the_default_way_of_execution(settings: dict[str, Any], dynamic: bool | None) -> None:
    assert Pipeline(**SETTINGS, **settings).exec_dynamic is dynamic


def test_deprecated_settings() -> None:
    with pytest.warns(Warning, match="negative seed"):
        assert Pipeline(seed=-1).seed is None
    with pytest.warns(Warning, match="max_streams"):
        assert Pipeline(max_streams=3).max_streams == -1
    with pytest.warns(Warning, match="max_batch_size"):
        assert Pipeline(**SETTINGS).batch_size == 2


@pytest.mark.parametrize(
    ("outputs", "error"),
    [
        (lambda number: None, TypeError),
        (lambda number: (), RuntimeError),
        (lambda number: [], RuntimeError),
        (lambda number: ([number], 1), TypeError),
        (lambda number: (number, [[1, 2], [3, 4]]), TypeError),
    ],
)
def test_outputs_that_are_none(outputs: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Defined(outputs).build()


def test_define_graph_may_return_a_list() -> None:
    assert [batch.as_array().tolist() for batch in Defined(lambda number: [number, number + 1, 5]).run()] == [
        [0, 0],
        [1, 1],
        [5, 5],
    ]


@pytest.mark.parametrize("method", ["schedule_run", "share_outputs", "release_outputs", "outputs"])
def test_ways_of_running_are_not_mixed(method: str) -> None:
    pipe = counting()
    pipe.run()
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        getattr(pipe, method)()
    pipe.reset()
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        getattr(pipe, method)()
    pipe.enable_api_check(False)
    getattr(pipe, method)()


def test_outputs_go_with_scheduling() -> None:
    pipe = counting()
    pipe.schedule_run()
    assert pipe.outputs()[0].at(0)[0] == 0
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        pipe.run()


def test_python_functions_see_their_pipeline() -> None:
    seen = []
    pipe = Pipeline(**SETTINGS)

    def look(array: np.ndarray) -> np.ndarray:
        seen.append(Pipeline.current() is pipe)
        return array

    with pipe:
        pipe.set_outputs(fn.python_function(fn.constant(idata=1), function=look))
    pipe.run()
    assert set(seen) == {True}
    assert Pipeline.current() is None


def test_running_keeps_no_reference() -> None:
    pipe = counting()
    references = sys.getrefcount(pipe)
    pipe.run()
    assert sys.getrefcount(pipe) == references


def test_operators_with_side_effects_need_a_pipeline() -> None:
    for call in (
        lambda: fn.cast(fn.constant(idata=1), dtype=types.FLOAT, preserve=True),
        lambda: fn.python_function(fn.constant(idata=1), function=abs),
    ):
        with pytest.raises(RuntimeError, match="Current Pipeline not set"):
            call()


def test_saved_pipelines_run_when_asked() -> None:
    pipe = Pipeline.deserialize(fed().serialize(), unknown=1)
    assert (pipe.exec_async, pipe.exec_pipelined, pipe.max_batch_size) == (False, False, 2)
    assert pipe.run(x=np.zeros((2, 1)))[0].shape() == [(1,)] * 2
    other = Pipeline(num_threads=3)
    other.deserialize_and_build(fed().serialize())
    assert (other.max_batch_size, other.num_threads) == (2, 3)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (np.zeros((2, 3), np.int8), "Type of the data"),
        (np.zeros((2, 3, 3), np.float32), "Number of dimensions of the data"),
    ],
)
def test_sources_keep_to_one_kind_of_data(second: np.ndarray, message: str) -> None:
    pipe = fed()
    pipe.run(x=np.zeros((2, 3), np.float32))
    with pytest.raises(RuntimeError, match=message + ".*has changed from"):
        pipe.run(x=second)


def test_promises_are_checked_when_data_is_used() -> None:
    pipe = fed(layout="AB")
    pipe.feed_input("x", np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="expected data with 2 dimensions and got 1"):
        pipe.run()


@pytest.mark.parametrize(
    "source", [lambda a, b=1: a, lambda *a: a, lambda *, a=1: a], ids=["two", "any number", "by keyword"]
)
def test_callbacks_take_one_argument_at_most(source: Any) -> None:
    with pytest.raises(TypeError, match="0 or 1 positional"):
        fn.external_source(source)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_outputs": 2}, ValueError),
        ({"num_outputs": 2, "source": counting, "name": "x"}, RuntimeError),
        ({"source": counting, "bytes_per_sample_hint": 1}, ValueError),
        ({"source": counting, "prefetch_queue_depth": 1}, ValueError),
        ({"source": 5, "cycle": True}, ValueError),
    ],
)
def test_arguments_of_sources_that_do_not_go_together(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        fn.external_source(**arguments)


@pytest.mark.parametrize(("name", "error"), [("layout", RuntimeError), ("batch", ValueError)])
def test_arguments_are_given_once(name: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="already specified"):
        ops.ExternalSource(**{name: "A"})(**{name: "A"})


def test_unused_outputs_are_named() -> None:
    pipe = Pipeline(**SETTINGS)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: (np.zeros(2), np.ones(2), np.ones(2)), num_outputs=3)[1])
    with pytest.warns(Warning, match="3 outputs, but the outputs at the indices 0, 2 are not used"):
        pipe.build()
    assert pipe.run()[0].as_array().tolist() == [1, 1]


def test_settings_may_be_integers_of_numpy() -> None:
    """Random operators used to copy the batch size into their state as NumPy's integer, which overflowed in computations."""

    @pipeline_def(
        batch_size=np.int64(4),
        num_threads=np.int32(2),
        prefetch_queue_depth=np.int64(2),
        seed=np.uint8(3),
        bytes_per_sample=np.int16(9),
        output_ndim=[np.int64(0)],
        device_id=None,
    )
    def define() -> Any:
        return fn.random.uniform()

    pipeline, plain = define(), define(batch_size=4, seed=3)
    assert [type(value) for value in (pipeline.max_batch_size, pipeline.seed, pipeline.num_threads)] == [int] * 3
    for _ in range(3):
        np.testing.assert_array_equal(pipeline.run()[0].as_array(), plain.run()[0].as_array())
    assert Pipeline.deserialize(pipeline.serialize()).max_batch_size == 4


@pytest.mark.parametrize(
    "setting",
    [{"batch_size": 1.5}, {"num_threads": 2.0}, {"num_threads": 1 << 31}, {"seed": 1.5}, {"seed": 1 << 63}],
    ids=str,
)
def test_settings_that_are_no_integers_are_refused(setting: dict[str, Any]) -> None:
    pipeline = Pipeline(**({"batch_size": 1, "num_threads": 1, "device_id": None} | setting))
    with pipeline:
        pipeline.set_outputs(fn.random.uniform())
    with pytest.raises(TypeError, match=next(iter(setting))):
        pipeline.build()


@pytest.mark.parametrize(
    "output", ["a", {"a": 1}, None, [fn.random.uniform]], ids=["text", "dictionary", "none", "function"]
)
def test_outputs_are_refused_when_the_pipeline_is_built(output: object) -> None:
    pipe = Pipeline(**SETTINGS)
    pipe.set_outputs(output)
    with pytest.raises(TypeError, match="Illegal output type"):
        pipe.build()
    with pipe:
        pipe.set_outputs(fn.random.uniform())
    pipe.build()


def test_writing_the_graph(tmp_path: Path) -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.random.uniform())
    with pytest.raises(RuntimeError, match=r"Cannot open .* for writing"):
        pipe.save_graph_to_dot_file(str(tmp_path / "none" / "graph.dot"))
    with pytest.warns(DeprecationWarning, match='The argument "show_ids" is deprecated'):
        pipe.save_graph_to_dot_file(str(tmp_path / "graph.dot"), show_ids=True)
    assert (tmp_path / "graph.dot").exists()


@pytest.mark.parametrize(
    ("described", "error", "told"),
    [
        (
            {"output_dtype": 3},
            TypeError,
            "`output_dtype` must be either: a value from penstock.types.DALIDataType, a list of these or None. "
            "Found type: <class 'int'>.",
        ),
        (
            {"output_dtype": [types.FLOAT, "float"]},
            TypeError,
            "`output_dtype` must be either: a value from penstock.types.DALIDataType, a list of these or None. "
            "Found type <class 'str'> in the list.",
        ),
        (
            {"output_dtype": types.NO_TYPE},
            ValueError,
            f"`output_dtype` can't be a types.NO_TYPE. Found value: {types.NO_TYPE}.",
        ),
        (
            {"output_ndim": "a"},
            TypeError,
            "`output_ndim` must be either: an int, a list of ints or None. Found type: <class 'str'>.",
        ),
        ({"output_ndim": [2, -1]}, ValueError, "`output_ndim` must be non-negative. Found value -1 in the list."),
    ],
)
def test_descriptions_of_outputs_are_checked_in_dalis_words(
    described: dict[str, object], error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as refused:
        Pipeline(1, 1, None, **described)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"cycle": True}, ValueError, "`cycle` argument is only valid for iterable `source`"),
        (
            {"source": lambda: 1, "prefetch_queue_depth": 3},
            ValueError,
            "The argument `prefetch_queue_depth` is valid only for parallel external sources (when ``parallel`` is True).",
        ),
    ],
)
def test_sources_are_refused_in_dalis_words(options: dict[str, object], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as refused:
        fn.external_source(**options)
    assert str(refused.value).startswith(told)


def test_debug_is_ignored_by_the_ordinary_decorator() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def counted() -> Any:
        return types.Constant(3, device="cpu")

    assert counted(debug=True).run()[0].as_array().tolist() == [3, 3]


@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        (lambda pipeline: pipeline.feed_input("x", [np.int32(1)], layout=3), TypeError),
        (lambda pipeline: pipeline.feed_input("x", [np.array([1])], layout="AB"), RuntimeError),
        (lambda pipeline: pipeline.output_dtype(), RuntimeError),
        (lambda pipeline: pipeline.output_ndim(), RuntimeError),
        (lambda _: Pipeline.deserialize(3), TypeError),  # type: ignore[arg-type]
        (lambda _: Pipeline.deserialize("text"), RuntimeError),  # type: ignore[arg-type]
    ],
)
def test_mistakes_have_dalis_types_of_errors(mistake: Callable[[Pipeline], object], kind: type[Exception]) -> None:
    pipeline = Pipeline(1, 1, None, output_ndim=[0, 1])
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="x"))
    with pytest.raises(kind):
        mistake(pipeline)


@pytest.mark.parametrize("number", [np.int32(1), np.array(1)])
def test_a_number_is_not_several_outputs(number: Any) -> None:
    pipeline = pipeline_def(
        lambda: tuple(fn.external_source(lambda: number, num_outputs=2)), batch_size=1, num_threads=1, device_id=None
    )()
    with pytest.raises(IndexError, match="must return 2 outputs"):
        pipeline.run()
