"""Python functions as operators, with the results of DALI 2.4 on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, ops, pipeline_def, types


def doubled(array: np.ndarray) -> np.ndarray:
    return array * 2


def refusing(array: np.ndarray) -> np.ndarray:
    raise KeyError("oops")


def source() -> Any:
    return fn.external_source(lambda _: [np.full((2, 3), k, np.float32) for k in range(3)], layout="HW")


def run(define: Callable[[], Any]) -> tuple[Any, ...]:
    pipe = Pipeline(3, 1, None)
    with pipe:
        outputs = define()
        pipe.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else (outputs,)))
    return pipe.run()


def test_one_output() -> None:
    (out,) = run(lambda: fn.python_function(source(), function=lambda x: x + 1))
    assert out.layout() == ""
    assert out.as_array()[:, 0, 0].tolist() == [1, 2, 3]


def test_several_outputs_and_layouts() -> None:
    first, second = run(
        lambda: fn.python_function(source(), function=lambda x: (x.T, x[0]), num_outputs=2, output_layouts=["WH"])
    )
    assert (first.layout(), second.layout()) == ("WH", "")
    assert (first.shape()[0], second.shape()[0]) == ((3, 2), (3,))
    both = run(lambda: fn.python_function(source(), function=lambda x: (x, x), num_outputs=2, output_layouts="HW"))
    assert [batch.layout() for batch in both] == ["HW", "HW"]


def test_without_inputs_and_with_constants() -> None:
    (out,) = run(lambda: fn.python_function(function=lambda: np.zeros(2, np.int16)))
    assert out.dtype == types.INT16
    assert out.shape() == [(2,)] * 3
    (out,) = run(lambda: fn.python_function(np.ones(4, np.float32), source(), function=lambda x, y: x * y[0, 0]))
    assert out.as_array().tolist() == [[0] * 4, [1] * 4, [2] * 4]


def test_batches() -> None:
    def across(batch: list[np.ndarray]) -> list[np.ndarray]:
        return [batch[-1] - sample for sample in batch]

    (out,) = run(lambda: fn.python_function(source(), function=across, batch_processing=True))
    assert out.as_array()[:, 0, 0].tolist() == [2, 1, 0]


def test_called_for_what_it_does() -> None:
    seen: list[float] = []

    def define() -> Any:
        data = source()
        assert fn.python_function(data, function=lambda x: seen.append(float(x[0, 0])), num_outputs=0) == []
        return data

    run(define)
    assert seen[:3] == [0, 1, 2]


def test_what_is_returned_is_copied() -> None:
    buffer = np.zeros(1, np.int32)

    def count() -> list[np.ndarray]:
        buffer[0] += 1
        return [buffer]

    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.python_function(function=count, batch_processing=True))
    assert [pipe.run()[0].as_array().tolist() for _ in range(3)] == [[[1]], [[2]], [[3]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(function=refusing), "KeyError: 'oops'"),
        (dict(function=lambda x: None), "returned 0 outputs"),
        (dict(function=lambda x: (x, x, x), num_outputs=2), "got 3, expected 2"),
        (dict(function=lambda x: [x, x], num_outputs=2), "tuple"),
        (dict(function=lambda x: 3), "got a int"),
        (dict(function=lambda x: x.sum()), "got a float32"),
        (dict(function=lambda x: np.stack(x), batch_processing=True), "list"),
        (dict(function=lambda x: x[:2], batch_processing=True), "2 samples for a batch of 3"),
        (dict(function=lambda x: x.astype(np.int32) if x[0, 0] else x), "differ in type"),
        (dict(function=lambda x: x[0] if x[0, 0] else x), "number of dimensions"),
        (dict(function=lambda x: x, output_layouts=["HW", "HW"]), "greater than the number of outputs"),
        (dict(function=3), "not callable"),
    ],
)
def test_failures_are_runtime_errors_with_their_place(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as caught:
        run(lambda: fn.python_function(source(), **arguments))
    assert "test_python_functions.py" in str(caught.value)


def test_failures_at_the_call() -> None:
    with pytest.raises(ValueError, match="HWC"):
        run(lambda: fn.python_function(source(), function=doubled, output_layouts="HWC"))
    with pytest.raises(TypeError, match="Multiple Input Sets"):
        run(lambda: fn.python_function([source(), source()], function=doubled))
    with pytest.raises(TypeError, match="function"):
        run(lambda: fn.python_function(source()))
    with pytest.raises(RuntimeError, match="Current Pipeline not set"):
        fn.python_function(function=doubled)


def test_a_failing_sample_is_put_aside_in_serving() -> None:
    pipe = Pipeline(3, 1, None)
    with pipe:
        pipe.set_outputs(fn.python_function(source(), function=lambda x: x if x[0, 0] != 1 else refusing(x)) + 1)
    pipe.build()
    for one in pipe._session.sources:
        pipe._session.feeds[one.names[0]].operator.feed(run(source)[0])
    result = pipe.executor.run_once(isolate=True)
    assert list(result.failures) == [1]
    assert result.outputs[0].shape() == [(2, 3), (0, 0), (2, 3)]


def test_capsules() -> None:
    kinds = set()

    def same(values: Any) -> Any:
        kinds.add(type(values[0]).__name__ if isinstance(values, list) else type(values).__name__)
        return values

    (out,) = run(lambda: fn.dl_tensor_python_function(source(), function=same))
    assert out.as_array()[:, 0, 0].tolist() == [0, 1, 2]
    (out,) = run(
        lambda: fn.dl_tensor_python_function(
            source(), function=lambda capsule: np.ones(2, np.uint8), batch_processing=False
        )
    )
    assert out.dtype == types.UINT8
    assert kinds == {"PyCapsule"}
    with pytest.raises(RuntimeError, match="capsules"):
        run(lambda: fn.dl_tensor_python_function(source(), function=lambda batch: [1, 2, 3]))


def test_classes() -> None:
    (out,) = run(lambda: ops.PythonFunction(function=doubled)(source()))
    assert out.as_array()[:, 0, 0].tolist() == [0, 2, 4]
    operator = ops.DLTensorPythonFunction(lambda batch: batch, num_outputs=1)
    assert operator.device == "cpu"
    (out,) = run(lambda: operator(source()))
    assert len(out) == 3


def test_conditionals() -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, enable_conditionals=True)
    def chosen() -> Any:
        data = source()
        if fn.reductions.sum(data) > 2:
            data = fn.python_function(data, function=lambda x: -x if x[0, 0] > 1 else x * 10, output_layouts="HW")
        return data

    (out,) = chosen().run()
    assert out.as_array()[:, 0, 0].tolist() == [0, 10, -2]


def test_saving_by_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions_of_mine.py").write_text("def tripled(array):\n    return array * 3\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import functions_of_mine  # type: ignore[import-not-found]

    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(
            fn.python_function(fn.external_source(name="x"), function=functions_of_mine.tripled, output_layouts="A")
        )
    path = str(tmp_path / "pipeline.json")
    pipe.save(path)
    loaded = Pipeline.load(path, allowed_modules=["functions_of_mine"], prefetch_queue_depth=1)
    (out,) = loaded.run(x=np.ones((2, 1), np.int32))
    assert out.as_array().tolist() == [[3], [3]]
    assert out.layout() == "A"
    with pytest.raises(ValueError, match="functions_of_mine"):
        Pipeline.load(path)
    with pytest.raises(ValueError, match="cannot name Python objects"):
        pipe.serialize()


def test_of_a_tuple_for_a_single_output_the_first_counts() -> None:
    pipe = pipeline_def(
        lambda: fn.python_function(np.int32([3]), function=lambda x: (x, x + 1)), batch_size=1, num_threads=1
    )()
    assert pipe.run()[0].as_array().tolist() == [[3]]


def test_capsules_become_arrays_and_arrays_capsules() -> None:
    part = np.arange(0, 10, 0.5).reshape(2, 10, 1)[:, 2:5, :]
    np.testing.assert_array_equal(ops._dlpack_to_array(ops._dlpack_from_array(part)), part)
