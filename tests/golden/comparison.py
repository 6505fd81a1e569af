"""Runs a case, and describes how the outcomes of DALI and Penstock differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Case

BATCH_SIZE = 3
BUILT_IN = (RuntimeError, ValueError, TypeError, KeyError, IndexError, NotImplementedError)
Batch = tuple[list[np.ndarray], str, int]


def run(module: Any, case: Case) -> list[list[Batch]]:
    """Run a case; return, for each iteration, the outputs, each as a tuple of samples, layout and type."""
    settings = {"batch_size": BATCH_SIZE, "num_threads": 2, "device_id": None, "seed": 1234} | case.options
    pipeline = module.pipeline_def(lambda: case.define(module), **settings)()
    pipeline.build()
    iterations = []
    for _ in range(case.iterations):
        batches = pipeline.run()
        iterations.append(
            [([np.array(t) for t in b], b.layout() or "", int(b.dtype) if len(b) else -1) for b in batches]
        )
    return iterations


def error_kinds(error: BaseException) -> list[str]:
    """Return the names of the built-in error types of which the error is an instance."""
    return [kind.__name__ for kind in BUILT_IN if isinstance(error, kind)]


def message(error: BaseException) -> str:
    """Return the error's text in one line."""
    return " ".join(str(error).split())


def difference(theirs: list[list[Batch]], ours: list[list[Batch]], case: Case) -> str:
    """Return a description of the first difference between two outcomes; empty if they agree."""
    for iteration, (expected, received) in enumerate(zip(theirs, ours)):
        if len(expected) != len(received):
            return f"{len(received)} outputs instead of {len(expected)}"
        for index, (a, b) in enumerate(zip(expected, received)):
            text = _batch_difference(a, b, case)
            if text:
                return f"iteration {iteration}, output {index}: {text}"
    return ""


def _batch_difference(theirs: Batch, ours: Batch, case: Case) -> str:
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
        text = _values_difference(a, b, case)
        if text:
            return f"sample {index} {text}"
    return ""


def _values_difference(a: np.ndarray, b: np.ndarray, case: Case) -> str:
    if not a.size:
        return ""
    if case.exact:
        if a.dtype == np.float16:
            # DALI rounds values halfway between two numbers of float16 differently.
            return (
                ""
                if np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-3, equal_nan=True)
                else "is not equal"
            )
        return "" if np.array_equal(a, b, equal_nan=a.dtype.kind == "f") else "is not equal"
    if a.dtype.kind in "biu":
        worst = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        return f"differs by {worst:g}" if worst > 1 else ""
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "differs in infinities or NaN"
    if not finite.any():
        return ""
    values = a[finite].astype(np.float64)
    scale = max(float(np.ptp(values)), float(np.abs(values).max()), 1e-30)
    allowed = case.tolerance if a.dtype != np.float16 else max(case.tolerance, 1e-3)
    worst = float(np.abs(values - b[finite]).max()) / scale
    return f"differs by {worst:.2g} of the range" if worst > allowed else ""
