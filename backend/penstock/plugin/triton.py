"""For pipelines that Triton runs from their Python source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def autoserialize(dali_pipeline: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: marks the one pipeline of a file that the `penstock` backend is to serve.

    Args:
        dali_pipeline: a function decorated with :func:`penstock.pipeline_def`.

    Raises:
        TypeError: it is not decorated with ``pipeline_def``.
    """
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise TypeError("Only `@pipeline_def` can be decorated with `@triton.autoserialize`.")
    dali_pipeline._is_autoserialize = True  # type: ignore[attr-defined]
    return dali_pipeline
