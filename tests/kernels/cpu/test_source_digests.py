"""Digests of kernels' sources change with the code, and only with it: changed kernels are compiled again, which takes minutes for all.

They are the same with each version of NumPy, because a server may have another version than the one with which the library was compiled.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.kernels import cpu
from penstock.kernels.cpu.deferred import DeferredModule
from penstock.kernels.cpu.source_digests import count_functions, digest_of

_KERNEL = """
double, halve = lambda x: 2 * x, lambda x: x / 2

def limited(value):
    "Return a number."
    return min(value, 255)

def kernel(value, mode):
    "Return numbers."
    if mode == "double":
        return limited(double(value))
    if value < 0:
        raise ValueError("negative")
    return [halve(v) for v in (value, None)]
"""
_KERNEL_WITH_COMMENTS = '''
"""A module."""

double, halve = lambda x: 2 * x, lambda x: x / 2  # two functions


def limited(value):
    """Return a number.

    It is at most 255.
    """
    return min(value, 255)


def kernel(value, mode):
    """Return a number or two."""
    if mode == "double":
        # The larger one.
        return limited(
            double(value)
        )
    if value < 0:
        raise ValueError("negative")
    return [halve(v) for v in (value, None)]
'''
_MODULE = """
class Lanes:
    count = 4

    def names(self):
        return "x", "y"
"""
_MODULE_WITH_COMMENTS = _MODULE.replace("names(self):", "names(self):  # in their order").replace(
    "count", "# A number.\n    count"
)
_MODULE_WITH_DOCSTRINGS = '''"""A module."""
class Lanes:
    """A class."""
    count = 4

    def names(self):
        """Return names."""
        return "x", "y"
'''


def _kernel(factor: np.generic) -> Callable[[float], object]:
    def scaled(value: float) -> object:
        return value * factor

    return scaled


def test_scalars_count_by_their_type_and_value() -> None:
    scalars = [np.float32(0.75), np.float32(1 << 25), np.float64(0.75), np.int32(3), np.bool_(True), np.bool_(False)]
    digests = [digest_of(_kernel(scalar)) for scalar in scalars]
    assert len(set(digests)) == len(scalars)
    assert digests == [digest_of(_kernel(scalar.copy())) for scalar in scalars]


def test_the_way_in_which_numpy_writes_scalars_does_not_count() -> None:
    digests = []
    for legacy in (False, "1.25"):
        with np.printoptions(legacy=legacy):
            digests.append([digest_of(_kernel(np.float32(value))) for value in (0.75, 1 << 25)])
    assert digests[0] == digests[1]


def _kernel_of_source(source: str, **others: object) -> Callable[..., object]:
    # Digests include functions of the package and of the main program.
    names: dict[str, Any] = {"__name__": "__main__", **others}
    exec(source, names)
    kernel: Callable[..., object] = names["kernel"]
    return kernel


def _digest_of_source(source: str, **others: object) -> str:
    return digest_of(_kernel_of_source(source, **others))


def test_functions_that_are_compiled_with_a_kernel_count_once() -> None:
    """The kernel and three functions, although it calls each of these twice."""
    again = "\n    return limited(halve(double(value)))\n"
    assert count_functions(_kernel_of_source(_KERNEL + again)) == 4


def test_comments_docstrings_and_line_numbers_do_not_count() -> None:
    assert _digest_of_source(_KERNEL_WITH_COMMENTS) == _digest_of_source(_KERNEL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"double"', '"twice"'),
        ('"negative"', '"below zero"'),
        ("255", "127"),
        ("2 * x", "3 * x"),
        ("x / 2", "x / 3"),
        ("double, halve", "halve, double"),
        ("min(", "max("),
        ("None", "1"),
    ],
)
def test_code_counts(old: str, new: str) -> None:
    assert _digest_of_source(_KERNEL.replace(old, new)) != _digest_of_source(_KERNEL)


def test_the_code_of_modules_counts_without_comments_and_docstrings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "__path__", [*cpu.__path__, str(tmp_path)])

    def digest(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        lanes = DeferredModule(f"{cpu.__name__}.{name}")
        return _digest_of_source("def kernel():\n    return lanes.Lanes", lanes=lanes)

    plain = digest("plain", _MODULE)
    assert digest("with_comments", _MODULE_WITH_COMMENTS) == plain
    documented = digest("with_docstrings", _MODULE_WITH_DOCSTRINGS)
    assert digest("with_other_docstrings", _MODULE_WITH_DOCSTRINGS.replace('"""A', '"""Another')) == documented
    changes = [("count = 4", "count = 8"), ('"y"', '"z"'), ("Lanes", "Rows")]
    assert plain not in [digest(f"changed_{i}", _MODULE.replace(*change)) for i, change in enumerate(changes)]
