"""Functions compiled by numba as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from penstock import Pipeline, fn, types
from penstock.plugin.numba import NumbaFunction
from penstock.plugin.numba.fn import numba_function
from penstock.plugin.numba.fn.experimental import numba_function as experimental_function

PLAIN = dict(out_types=types.FLOAT, in_types=types.FLOAT, outs_ndim=2, ins_ndim=2)


def source() -> Any:
    return fn.external_source(lambda _: [np.full((2, 3 + k), k, np.float32) for k in range(3)], layout="HW")


def run(define: Callable[[], Any]) -> tuple[Any, ...]:
    pipe = Pipeline(3, 2, None)
    with pipe:
        outputs = define()
        pipe.set_outputs(*(outputs if isinstance(outputs, list) else [outputs]))
    return pipe.run()


def doubled(out: Any, value: Any) -> None:
    out[:] = value * 2


def turned(out: Any, value: Any) -> None:
    out[:] = value.T + 1


def turned_shapes(outs: Any, ins: Any) -> None:
    for sample in range(len(outs[0])):
        outs[0][sample][0] = ins[0][sample][1]
        outs[0][sample][1] = ins[0][sample][0]


def increased(outs: Any, values: Any) -> None:
    for out, value in zip(outs, values):
        out[:] = value + 1


def sum_and_difference(total: Any, difference: Any, a: Any, b: Any) -> None:
    total[:] = a + b
    difference[:] = a - b


def broken(out: Any, value: Any) -> None:
    raise ValueError("too much")


def test_samples() -> None:
    (out,) = run(lambda: numba_function(source(), run_fn=doubled, **PLAIN))
    assert out.shape() == [(2, 3), (2, 4), (2, 5)]
    assert out.layout() == ""
    assert [float(out.at(i)[1, 2]) for i in range(3)] == [0, 2, 4]


def test_shapes_of_a_function() -> None:
    (out,) = run(lambda: experimental_function(source(), run_fn=turned, setup_fn=turned_shapes, **PLAIN))
    assert out.shape() == [(3, 2), (4, 2), (5, 2)]
    assert [float(out.at(i)[2, 1]) for i in range(3)] == [1, 2, 3]


def test_batches() -> None:
    (out,) = run(lambda: numba_function(source(), run_fn=increased, batch_processing=True, **PLAIN))
    assert [float(out.at(i)[1, 2]) for i in range(3)] == [1, 2, 3]


def test_several_inputs_and_outputs() -> None:
    lists = {key: [value] * 2 for key, value in PLAIN.items()}
    total, difference = run(lambda: numba_function(source(), source(), run_fn=numba.njit(sum_and_difference), **lists))
    assert float(total.at(2)[0, 0]) == 4
    assert float(difference.at(2)[0, 0]) == 0


def test_class() -> None:
    operator = NumbaFunction(doubled, **PLAIN)
    assert operator.device == "cpu"
    (out,) = run(lambda: operator(source()))
    assert float(out.at(1)[0, 0]) == 2


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(in_types=types.UINT8), RuntimeError, "promises"),
        (dict(ins_ndim=3), RuntimeError, "promises 3"),
        (dict(setup_fn=None, outs_ndim=1, run_fn=lambda out, value: None), RuntimeError, "setup_fn"),
        (dict(run_fn=broken), RuntimeError, "too much"),
        (dict(out_types=[types.FLOAT] * 2), AssertionError, "as many as `outs_ndim`"),
        (dict(in_types=types.FLOAT16), RuntimeError, "float16"),
        (dict(run_fn=lambda out, value: nothing_of_that_name(value)), numba.core.errors.NumbaError, "nothing_of_that"),  # noqa: F821
        (dict(device="gpu"), AssertionError, "blocks"),
        (dict(device="gpu", batch_processing=True), AssertionError, "samples"),
    ],
)
def test_mistakes(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(lambda: numba_function(source(), **(dict(PLAIN, run_fn=doubled) | changes)))


def test_outputs_without_an_input_need_shapes() -> None:
    two = dict(out_types=[types.FLOAT] * 2, outs_ndim=[2, 2], in_types=types.FLOAT, ins_ndim=2)
    with pytest.raises(RuntimeError, match="setup_fn"):
        run(lambda: numba_function(source(), run_fn=lambda a, b, c: None, **two))
