"""`pipeline_def` with debug mode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from penstock.graph.autograph import convert
from penstock.pipeline import definition
from penstock.pipeline.debug import DebugPipeline

__all__ = ["pipeline_def"]


def pipeline_def(
    fn: Callable[..., Any] | None = None,
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Any,
) -> Any:
    """Decorate like :func:`penstock.pipeline_def`; takes the further argument ``debug``, which calls can override.

    Args:
        fn: the graph-defining function.
        enable_conditionals: whether ``if`` on a node chooses a branch for each sample.
        debug: whether to call the function for each batch, and run each operator when it is called. If so, nodes have data
            (``node.get()``, ``node.shape()``), operators accept arrays and lists of arrays as batches, and errors are
            raised from the line that caused them. Slow: for inspection, not for training.

    >>> @pipeline_def(batch_size=2, num_threads=1, debug=True)
    ... def doubled():
    ...     numbers = penstock.fn.external_source(lambda: np.int32([1, 2]))
    ...     print(numbers.get().as_array())
    ...     return numbers * 2
    >>> outputs = doubled().run()
    [1 2]
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        ordinary = definition.pipeline_def(enable_conditionals=enable_conditionals, **pipeline_kwargs)(function)

        @functools.wraps(function)
        def create_pipeline(*args: object, **kwargs: object) -> Any:
            if not kwargs.pop("debug", debug):
                return ordinary(*args, **kwargs)
            conditionals = definition.conditionals_enabled(function, kwargs, enable_conditionals)
            constructor, own = definition.split_keywords(function, kwargs)
            running = convert(function) if conditionals else function
            return DebugPipeline(running, args, own, conditionals, **(pipeline_kwargs | constructor))

        return definition.mark_definition(create_pipeline)

    return decorate if fn is None else decorate(fn)
