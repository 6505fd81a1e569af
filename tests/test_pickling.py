"""Callbacks are pickled."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import pytest

from penstock.pickling import dumps, loads, pickle_by_value


def counting(start: int) -> Any:
    def count(n: int) -> int:
        return 0 if n == 0 else 1 + count(n - 1)

    def counted(n: int, *, more: int = 1) -> int:
        return start + count(n) + more

    return counted


@pickle_by_value
def marked(angle: float) -> float:
    return math.cos(angle)


def test_local_functions_keep_their_variables() -> None:
    assert loads(dumps(counting(10)))(5) == 16
    assert loads(dumps(counting(10)))(5, more=3) == 18


def test_functions_that_name_families_of_operators_are_sent() -> None:
    script = """
import subprocess, sys
import cloudpickle
from penstock import fn, ops, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def noise():
    return fn.random.uniform(range=[0, 1], shape=[2]), ops.random.Uniform(range=[0, 1])()

here = "import pickle, sys; print(len(pickle.load(sys.stdin.buffer)().run()))"
sys.exit(subprocess.run([sys.executable, "-c", here], input=cloudpickle.dumps(noise)).returncode)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("2\n", "")


def test_functions_by_value_bring_the_modules_they_use() -> None:
    again = loads(dumps(marked))
    assert again is not marked
    assert again(0.0) == 1.0
    assert loads(dumps(lambda: [math.sqrt(x) for x in (4, 9)]))() == [2.0, 3.0]


@pickle_by_value
def even(n: int) -> bool:
    """Return whether a number is even."""
    return n == 0 or odd(n - 1)


@pickle_by_value
def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def test_functions_by_value_may_call_each_other() -> None:
    again = loads(dumps(even))
    assert [again(n) for n in (4, 7)] == [True, False]
    assert again.__globals__["odd"] is not odd
    assert again.__globals__["odd"].__globals__["even"] is again
    assert (again.__module__, again.__doc__) == (__name__, "Return whether a number is even.")


def test_importable_functions_go_by_name() -> None:
    assert loads(dumps(counting)) is counting


def test_only_functions_are_marked() -> None:
    with pytest.raises(TypeError, match="functions"):
        pickle_by_value(3)  # type: ignore[type-var]
