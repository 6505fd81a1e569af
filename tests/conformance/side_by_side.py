"""Runs a pipeline definition in real DALI and in Penstock, and compares the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import nvidia.dali as dali
import nvidia.dali.fn
import nvidia.dali.math
import nvidia.dali.types

import penstock

dali.fn, dali.math, dali.types = nvidia.dali.fn, nvidia.dali.math, nvidia.dali.types


@dataclass
class Outcome:
    """The outcome of running a pipeline: the outputs of each iteration, or the error."""

    outputs: list[list[tuple[list[np.ndarray], str, int]]] = field(default_factory=list)
    error: BaseException | None = None


def run(module: Any, define: Callable[[Any], Any], batch_size: int, iterations: int, **options: Any) -> Outcome:
    """Run ``define(module)`` as a pipeline definition of ``module``, which is ``nvidia.dali`` or ``penstock``."""
    settings = {"batch_size": batch_size, "num_threads": 2, "device_id": None, "seed": 1234} | options
    try:
        pipeline = module.pipeline_def(lambda: define(module), **settings)()
        pipeline.build()
        outcome = Outcome()
        for _ in range(iterations):
            batches = pipeline.run()
            outcome.outputs.append(
                [([np.array(t) for t in b], b.layout() or "", int(b.dtype) if len(b) else -1) for b in batches]
            )
        return outcome
    except Exception as error:
        return Outcome(error=error)


def difference(
    define: Callable[[Any], Any],
    batch_size: int = 3,
    iterations: int = 1,
    tolerance: float = 1e-5,
    exact: bool = False,
    **options: Any,
) -> str:
    """Return a description of how Penstock's outputs differ from DALI's; empty if they agree.

    Unless ``exact``, integers agree if they differ by at most 1, and floating-point numbers if they differ by at most
    ``tolerance`` times the range of the output. Where DALI raises an error, Penstock must raise one of the same built-in type.
    """
    expected = run(dali, define, batch_size, iterations, **options)
    received = run(penstock, define, batch_size, iterations, **options)
    if expected.error is not None or received.error is not None:
        return _error_difference(expected.error, received.error)
    for iteration, (theirs, ours) in enumerate(zip(expected.outputs, received.outputs)):
        if len(theirs) != len(ours):
            return f"{len(ours)} outputs instead of {len(theirs)}"
        for index, (a, b) in enumerate(zip(theirs, ours)):
            text = batch_difference(a, b, 0.0 if exact else tolerance, 0 if exact else 1)
            if text:
                return f"iteration {iteration}, output {index}: {text}"
    return ""


def _error_difference(expected: BaseException | None, received: BaseException | None) -> str:
    if expected is None:
        return f"DALI runs, Penstock raises {type(received).__name__}: {received}"
    if received is None:
        return f"Penstock runs, DALI raises {type(expected).__name__}: {_short(expected)}"
    kinds = [kind for kind in (RuntimeError, ValueError, TypeError, KeyError, IndexError) if isinstance(expected, kind)]
    if not any(isinstance(received, kind) for kind in kinds or [type(expected)]):
        return f"DALI raises {type(expected).__name__} ({_short(expected)}), Penstock {type(received).__name__}: {received}"
    return ""


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[-300:]


def batch_difference(theirs: Sequence[Any], ours: Sequence[Any], tolerance: float, step: int) -> str:
    """Return a description of how a batch differs from another one; empty if they agree.

    Floating-point numbers may differ by ``tolerance`` times their range, integers by ``step``.
    """
    (samples_a, layout_a, type_a), (samples_b, layout_b, type_b) = theirs, ours
    if type_a != type_b:
        return f"type {type_b} instead of {type_a}"
    if layout_a != layout_b:
        return f"layout '{layout_b}' instead of '{layout_a}'"
    if len(samples_a) != len(samples_b):
        return f"{len(samples_b)} samples instead of {len(samples_a)}"
    for index, (a, b) in enumerate(zip(samples_a, samples_b)):
        if a.shape != b.shape:
            return f"sample {index} has shape {b.shape} instead of {a.shape}"
        text = _values_difference(a, b, tolerance, step)
        if text:
            return f"sample {index} {text}"
    return ""


def _values_difference(a: np.ndarray, b: np.ndarray, tolerance: float, step: int) -> str:
    if not a.size:
        return ""
    if a.dtype.kind in "biu":
        worst = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        return f"differs by {worst:g}" if worst > step else ""
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "differs in infinities or NaN"
    if not finite.any():
        return ""
    values = a[finite].astype(np.float64)
    scale = max(float(np.ptp(values)), float(np.abs(values).max()), 1e-30)
    allowed = max(tolerance, 1e-3) if tolerance and a.dtype == np.float16 else tolerance
    worst = float(np.abs(values - b[finite]).max()) / scale
    return f"differs by {worst:.2g} of the range" if worst > allowed else ""


def source(samples: Sequence[np.ndarray], layout: str | None = None) -> Callable[[Any], Any]:
    """Return a function that adds an input to a pipeline of a module; the input has the same samples at each iteration."""
    return lambda module: module.fn.external_source(lambda: list(samples), layout=layout)
