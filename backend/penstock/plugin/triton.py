"""A decorator for pipelines that Triton runs from their Python source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.pipeline.definition import is_definition, mark_autoserialize


def autoserialize(dali_pipeline: Callable[..., object]) -> Callable[..., Any]:
    """Decorate the pipeline in a file that the backend `penstock` serves.

    Args:
        dali_pipeline: a function decorated with :func:`penstock.pipeline_def`.

    Raises:
        TypeError: ``dali_pipeline`` is not decorated with ``pipeline_def``.
    """
    if not is_definition(dali_pipeline):
        raise TypeError("Only `@pipeline_def` can be decorated with `@triton.autoserialize`.")
    return mark_autoserialize(dali_pipeline)
