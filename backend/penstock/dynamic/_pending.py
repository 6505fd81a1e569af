"""Calls whose results may be pending, and errors that name the program's line of such a call."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._eval_modes import SYNCHRONOUS, EvalMode
from penstock.errors import Frame, OperatorError
from penstock.tensors import TensorList

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def call_site() -> Frame:
    """Return the innermost line on the call stack that is not in Penstock's code."""
    frame = sys._getframe(1)  # private: done for each deferred call, and far faster than inspect.stack()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, "")


def raise_at(error: Exception, site: Frame) -> NoReturn:
    """Raise an error of the same kind as ``error`` that names the call at ``site``. It is chained to ``error``, whose traceback is replaced
    by that line.
    """
    line = linecache.getline(site.filename, site.lineno).strip()
    text = f"It was called here:\n\n{Frame(site.filename, site.lineno, site.function, line)}\n"
    try:
        raise _alike(error, text) from _seen_from(error, site)
    finally:
        del error


def _alike(error: Exception, text: str) -> Exception:
    if isinstance(error, OperatorError):
        return type(error)(f"{error.reason}\n\n{text}", error.operator, error.device, error.sample)
    try:
        return type(error)(f"{error}\n\n{text}")
    except TypeError:
        return RuntimeError(f"{error}\n\n{text}")


def _seen_from(error: Exception, site: Frame) -> Exception:
    """Return the error with a traceback of a single frame: the line of the call."""
    # A traceback needs a frame, and the call's frame may no longer exist: compile code that makes one with its file name and line.
    code = compile("\n" * (site.lineno - 1) + "raise error", site.filename, "exec")
    known = {"error": error.with_traceback(None)}
    try:
        exec(code.replace(co_name=site.function), known)
    except type(error) as raised:
        return raised.with_traceback(None if raised.__traceback__ is None else raised.__traceback__.tb_next)
    finally:
        # Break the reference cycle, as these variables refer to the frames of the traceback.
        known.clear()
        del error
    raise AssertionError


class Work(Protocol):
    """The work of a call.

    Attributes:
        count: the number of results.
        devices: the device of each result, ``cpu`` or ``gpu``.
    """

    @property
    def count(self) -> int: ...

    @property
    def devices(self) -> Sequence[str]: ...

    def run(self, context: EvalContext) -> list[TensorList]:
        """Return the results."""

    def placeholder(self, context: EvalContext) -> list[TensorList] | None:
        """Return batches without samples that have the types, numbers of dimensions and layouts of the results; None if these are
        not known in advance.
        """


class Invocation:
    """A call that runs when one of its results is needed.

    Args:
        work: the function that computes the results.
        context: the context to run it with.
        batch_size: the batch size of the results; None: each result is a single tensor.
    """

    __slots__ = ("__weakref__", "_context", "_error", "_results", "_site", "_sketch", "_work", "batch_size", "devices")

    def __init__(self, work: Work, context: EvalContext, batch_size: int | None) -> None:
        self._work: Work | None = work
        self._context = context
        self._site = call_site()
        self._results: list[TensorList] | None = None
        self._sketch: list[TensorList] | None = None
        self._error: Exception | None = None
        self.batch_size = batch_size
        self.devices = work.devices

    @property
    def device_id(self) -> int | None:
        """The number of the GPU on which the call runs."""
        return self._context.device_id

    @property
    def is_pending(self) -> bool:
        """Whether the call has not run yet."""
        return self._work is not None

    def run(self, context: EvalContext | None = None) -> list[TensorList]:
        """Return the results; run the call first if it has not run yet.

        Raises:
            Exception: the call failed. The error is of the same kind as the call's own, is chained to it, and names the line of the call.
        """
        if self._results is None:
            if self._error is None:
                self._attempt()
            if self._error is not None:
                raise_at(self._error, self._site)
        assert self._results is not None
        return self._results

    def _attempt(self) -> None:
        work, self._work = self._work, None
        assert work is not None
        try:
            self._results = work.run(self._context)
        except Exception as error:
            self._error = error

    def placeholder(self) -> list[TensorList]:
        """Return the results, or batches without samples that have the same types, numbers of dimensions and layouts."""
        if self._results is not None:
            return self._results
        if self._sketch is None and self._work is not None:
            try:
                self._sketch = self._work.placeholder(self._context)
            except Exception:
                # The same error occurs again, with the sample's number, when the call runs.
                self._sketch = None
        return self.run() if self._sketch is None else self._sketch


class Result:
    """One of the results of an :class:`Invocation`."""

    __slots__ = ("_invocation", "index")

    def __init__(self, invocation: Invocation, index: int) -> None:
        self._invocation = invocation
        self.index = index

    @property
    def device(self) -> str:
        """``cpu`` or ``gpu``."""
        return self._invocation.devices[self.index]

    @property
    def device_id(self) -> int | None:
        """The number of the GPU on which the call runs."""
        return self._invocation.device_id

    @property
    def batch_size(self) -> int | None:
        """The number of samples; None if the result is a single tensor."""
        return self._invocation.batch_size

    @property
    def layout(self) -> str | None:
        """The layout; None if there is none."""
        return self.placeholder().layout() or None

    def placeholder(self) -> TensorList:
        """Return the result, or a batch without samples that has the same type, number of dimensions and layout."""
        return self._invocation.placeholder()[self.index]

    def value(self) -> TensorList:
        """Return the result."""
        return self._invocation.run()[self.index]


def deferred(work: Work, batch_size: int | None) -> list[Result]:
    """Return the results of a call that runs when one of them is needed; ``batch_size``: see :class:`Invocation`."""
    context = EvalContext.current()
    call = Invocation(work, context, batch_size)
    context.defer(call)
    return [Result(call, index) for index in range(work.count)]


def evaluated(work: Work, external: bool) -> list[TensorList] | None:
    """Run a call and return its results, if the current mode runs it at once; return None if it is to be deferred.

    Args:
        work: the function that computes the result.
        external: whether an input is in memory that the program may change; if so, the call runs at once.
    """
    mode = EvalMode.current()
    if mode is EvalMode.deferred and not external:
        return None
    context = EvalContext.current()
    try:
        lists = work.run(context)
    except Exception as error:
        if mode in SYNCHRONOUS:
            raise
        raise_at(error, call_site())
    if mode is EvalMode.sync_full and "gpu" in work.devices:
        stream = context.engine.executor.stream
        if stream is not None:
            stream.synchronize()
    return lists
