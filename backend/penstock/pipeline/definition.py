"""`pipeline_def`: makes a pipeline factory from a function that calls operators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.errors import did_you_mean
from penstock.graph.autograph import convert, exempt, explain, is_exempt
from penstock.graph.conditionals import ConditionStack
from penstock.pipeline.pipeline import CONSTRUCTOR, Pipeline, check_settings

# DALI's names for these marks, which tools look for.
_DEFINITION = "_is_pipeline_def"
_AUTOSERIALIZE = "_is_autoserialize"
_T = TypeVar("_T", bound=Callable[..., Any])


class UnexpectedArgumentError(TypeError, AssertionError):
    """A keyword argument that neither the graph-defining function nor the pipeline's constructor takes."""


def pipeline_def(
    fn: Callable[..., Any] | None = None, *, enable_conditionals: bool = False, **pipeline_kwargs: Any
) -> Any:
    """Decorate a function so that its call returns a :class:`Pipeline` of the operators that it calls.

    The keyword arguments are those of :class:`Pipeline`; a call can override them.

    Args:
        fn: the graph-defining function, which returns the outputs: a node or a tuple of nodes.
        enable_conditionals: whether ``if`` on a node chooses a branch for each sample.

    >>> @pipeline_def(batch_size=2, num_threads=1)
    ... def doubled():
    ...     return penstock.fn.external_source(name="numbers") * 2
    >>> pipe = doubled(prefetch_queue_depth=1)
    >>> pipe.run(numbers=[np.int32(1), np.int32(2)])[0].as_array()
    array([2, 4], dtype=int32)
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Pipeline]:
        if is_exempt(function):
            raise ValueError("Pipeline definition cannot be marked with @do_not_convert.")

        @functools.wraps(function)
        def create_pipeline(*args: Any, **kwargs: Any) -> Pipeline:
            conditionals = conditionals_enabled(function, kwargs, enable_conditionals)
            constructor, own = split_keywords(function, kwargs)
            settings = pipeline_kwargs | constructor
            check_settings(settings)
            pipeline = Pipeline(**settings)
            if not conditionals:
                pipeline.define_by(function, args, own)
                return pipeline
            try:
                pipeline.define_by(convert(function), args, own, ConditionStack())
            except Exception as error:
                explain(error)
                raise
            return pipeline

        return mark_definition(create_pipeline)

    return decorate if fn is None else decorate(fn)


def mark_definition(factory: _T) -> _T:
    """Mark a function as a factory of pipelines, as DALI does."""
    setattr(factory, _DEFINITION, True)
    return factory


def is_definition(value: object) -> bool:
    """Return whether a value is a function decorated with :func:`pipeline_def`."""
    return bool(getattr(value, _DEFINITION, False))


def mark_autoserialize(factory: _T) -> _T:
    """Mark the factory of the pipeline to serve when its file is served, as DALI does."""
    setattr(factory, _AUTOSERIALIZE, True)
    return factory


def is_autoserialize(value: object) -> bool:
    """Return whether a value was marked by :func:`mark_autoserialize`."""
    return bool(getattr(value, _AUTOSERIALIZE, False))


def conditionals_enabled(function: Callable[..., object], keywords: dict[str, object], default: bool) -> bool:
    """Return whether a call of the factory enables conditionals; remove `enable_conditionals` from ``keywords``."""
    if "enable_conditionals" in inspect.signature(function).parameters:
        return bool(keywords.get("enable_conditionals", default))
    return bool(keywords.pop("enable_conditionals", default))


def split_keywords(
    function: Callable[..., object], keywords: dict[str, object]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the keyword arguments of a call; return those for the pipeline's constructor and those for the function."""
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError(
                f"Using variadic keyword argument `**{parameter.name}` in a graph-defining function is not allowed."
            )
    constructor: dict[str, object] = {}
    own: dict[str, Any] = {}
    for name, value in keywords.items():
        if name in parameters:
            if name in CONSTRUCTOR:
                print(f"Warning: the argument `{name}` shadows a Pipeline constructor argument of the same name.")
            own[name] = value
        elif name in CONSTRUCTOR:
            constructor[name] = value
        elif name != "debug":  # only for `experimental.pipeline_def`; ignored here, as in DALI
            raise UnexpectedArgumentError(
                f"`{name}` is neither an argument of the function `{function.__name__}` nor of Pipeline."
                f"{did_you_mean(name, [*parameters, *CONSTRUCTOR])} "
                f"The function takes: {', '.join(parameters) or 'none'}."
            )
    return constructor, own


def do_not_convert(func: Callable[..., object] | None = None) -> Callable[..., Any]:
    """Decorate a function so that its conditionals remain plain Python, even in pipelines that enable conditionals."""
    if func is None:
        return do_not_convert
    if is_definition(func):
        raise ValueError("Pipeline definition cannot be marked with @do_not_convert.")
    return exempt(func)
