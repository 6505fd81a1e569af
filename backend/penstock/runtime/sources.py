"""The data of external sources: callbacks, iterables and generators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np

from penstock.data_types import BatchInfo, SampleInfo
from penstock.runtime.settings import PipelineSettings


class _Cycle:
    """Iterates over a source repeatedly; with ``pause``, raises StopIteration once at each end of the source."""

    def __init__(self, begin: Callable[[], Iterator[Any]], pause: bool) -> None:
        self._begin = begin
        self._pause = pause
        self._iterator = begin()

    def __iter__(self) -> _Cycle:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = self._begin()
            if self._pause:
                raise
            return next(self._iterator)


def is_generator_function(source: object) -> bool:
    call = getattr(source, "__call__", None)  # noqa: B004  (the method itself is looked at)
    return inspect.isgeneratorfunction(source) or inspect.isgeneratorfunction(call)


def _is_iterable(source: object) -> bool:
    return hasattr(type(source), "__iter__") or hasattr(type(source), "__getitem__") or is_generator_function(source)


_CYCLES = {"no": None, "quiet": "quiet", "raise": "raise"}


def _cycle_mode(cycle: object) -> str | None:
    # Compared by identity: 0 and 1 equal False and True, but are invalid.
    if cycle is None or cycle is False:
        return None
    if cycle is True:
        return "quiet"
    if isinstance(cycle, str) and cycle in _CYCLES:
        return _CYCLES[cycle]
    raise ValueError(
        f"Invalid value {cycle!r} for the argument `cycle`. Valid values are 'no', False, None, 'quiet', True and 'raise'."
    )


def accepted_positional(function: Callable[..., object]) -> int:
    """Return the number of positional arguments a callback takes: 0 or 1."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return 0
    if isinstance(function, functools.partial):
        # Parameters with a default that `functools.partial` and the like have bound can be omitted.
        parameters = [p for p in parameters if p.default is p.empty]
    found = _forbidden(parameters)
    if found:
        raise TypeError(
            "The `source` callable must accept either 0 or 1 positional arguments to indicate whether it accepts the batch or "
            f"sample indexing information. Found {found} allowed. {function!r} takes ({', '.join(map(str, parameters))})."
        )
    return len(parameters)


def _forbidden(parameters: Sequence[Parameter]) -> str:
    """Return what is wrong with a callback's parameters, for an error message; an empty string if all are allowed."""
    for parameter in parameters:
        if parameter.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            stars = "*" * (parameter.kind == Parameter.VAR_POSITIONAL) + "**" * (
                parameter.kind == Parameter.VAR_KEYWORD
            )
            kind = parameter.kind.description.replace("variadic ", "var-")
            return f"{kind} argument `{stars}{parameter.name}` which is not"
    return "more than one positional argument, which is not" if len(parameters) > 1 else ""


@dataclass(eq=False)
class Source:
    """The data of one ``external_source`` call: in each step, one batch for each output.

    Args:
        source: a callable, an iterable or a generator function.
        cycle: whether to restart when the source is at its end, as in ``fn.external_source``.
        batch: whether each call returns a whole batch rather than one sample.
        batch_info: whether the callback takes a BatchInfo rather than the number of the iteration.
        num_outputs: the number of outputs; None: one output, not wrapped in a sequence.
        layouts: the layout of each output.
        no_copy: whether to use the data in place, without a copy.
        names: the names of the operators to feed, in the order of the outputs.
    """

    source: Any
    cycle: Any = None
    batch: bool = True
    batch_info: bool = False
    num_outputs: int | None = None
    layouts: Sequence[str | None] = (None,)
    no_copy: bool = False
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.iteration = 0
        self.sample = 0
        self.takes_info = False
        self.is_iterable = _is_iterable(self.source)
        mode = _cycle_mode(self.cycle)
        self.call: Callable[..., Any]
        if self.is_iterable:
            self.call = self._iterating(mode).__next__
            return
        if self.cycle is not None:
            raise ValueError("The argument `cycle` can only be specified if `source` is iterable")
        if not callable(self.source):
            raise TypeError("The `source` must be callable, iterable or a parameterless generator function.")
        self.call = self.source
        self.takes_info = accepted_positional(self.source) == 1

    def _iterating(self, mode: str | None) -> Iterator[object]:
        source = self.source
        if mode is None:
            return iter(source() if is_generator_function(source) else source)
        if inspect.isgenerator(source):
            raise TypeError(
                "Cannot cycle through a generator - it ends for good. If it comes from a function, pass that function instead as "
                "`source`."
            )
        begin = source if is_generator_function(source) else lambda: iter(source)
        return _Cycle(begin, mode == "raise")

    def fetch(self, batch_size: int, epoch: int) -> list[object]:
        """Return the data of the next step, one item for each output; raise StopIteration at the end.

        Args:
            batch_size: the number of samples to request if the callback returns one sample at a time.
            epoch: the index of the epoch, which the callback gets in its SampleInfo or BatchInfo.
        """
        try:
            if self.batch:
                data = self.call(*self._batch_information(epoch)) if self.takes_info else self.call()
                outputs = [data] if self.num_outputs is None else self._checked(data)
            else:
                outputs = self._fetch_samples(batch_size, epoch)
        except StopIteration:
            self.reset()
            raise
        self.iteration += 1
        self.sample += batch_size
        return outputs

    def _batch_information(self, epoch: int) -> tuple[object, ...]:
        return (BatchInfo(self.iteration, epoch) if self.batch_info else self.iteration,)

    def _fetch_samples(self, batch_size: int, epoch: int) -> list[object]:
        samples = []
        for index in range(batch_size):
            info = SampleInfo(self.sample + index, index, self.iteration, epoch)
            samples.append(self.call(info) if self.takes_info else self.call())
        if self.num_outputs is None:
            return [samples]
        return [list(column) for column in zip(*map(self._checked, samples))]

    def _checked(self, data: Any) -> list[object]:
        if isinstance(data, (np.generic, np.ndarray)) and not data.ndim:
            raise IndexError(
                f"The external source must return {self.num_outputs} outputs, but returned a number: {data!r}"
            )
        if not isinstance(data, (list, tuple)) and not hasattr(data, "__len__"):
            raise TypeError(
                f"The external source must return {self.num_outputs} outputs, but returned a {type(data).__name__}"
            )
        if len(data) < (self.num_outputs or 0):
            raise IndexError(f"The external source must return {self.num_outputs} outputs, but returned {len(data)}")
        return list(data)[: self.num_outputs]

    def skip(self, iterations: int, batch_size: int) -> None:
        """Continue after ``iterations`` steps of the epoch: callbacks get later indices, and items of iterables are skipped."""
        self.iteration = iterations
        self.sample = iterations * batch_size
        if not self.is_iterable:
            return
        for _ in range(iterations * (1 if self.batch else batch_size)):
            self.call()

    def restart(self, settings: PipelineSettings) -> None:
        """Restart from the beginning; an iterator cannot restart, and continues."""
        if self.is_iterable:
            self.call = self._iterating(_cycle_mode(self.cycle)).__next__

    def reset(self) -> None:
        """Start a new epoch: iterations and samples are counted from 0 again."""
        self.iteration = self.sample = 0


def fetch_all(sources: Sequence[Source], batch_size: int, epoch: int) -> list[tuple[Source, list[object]]]:
    """Return the data of the next step of each source.

    Raises:
        StopIteration: a source is at its end. All sources have advanced, so that those that cycle stay in step.
    """
    fetched = []
    for source in sources:
        try:
            fetched.append((source, source.fetch(batch_size, epoch)))
        except StopIteration:
            # The error is not stored: it would keep the callers' frames alive, and with them the pipeline.
            continue
    if len(fetched) < len(sources):
        raise StopIteration
    return fetched
