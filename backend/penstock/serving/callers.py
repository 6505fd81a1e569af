"""Which requests a pipeline run serves, for operators that call other models of the server on behalf of these requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from penstock.serving.requests import Request

_callers: ContextVar[Sequence[Request]] = ContextVar("penstock_callers", default=())


@contextmanager
def running_for(requests: Sequence[Request]) -> Iterator[None]:
    """Attribute pipeline runs of this thread within the context to these requests."""
    token = _callers.set(requests)
    try:
        yield
    finally:
        _callers.reset(token)


def request_id() -> str:
    """Return the ids of the requests for which this thread runs a pipeline, separated by commas; an empty string if they
    have none.
    """
    return ",".join(dict.fromkeys(request.id for request in _callers.get() if request.id))


def trace() -> int:
    """Return the address of Triton's trace of the first traced request that this thread serves; 0 if none is traced."""
    return next(filter(None, (request.trace() for request in _callers.get())), 0)


def all_cancelled() -> bool:
    """Return whether all requests that this thread serves were cancelled; False if it serves none."""
    callers = _callers.get()
    return bool(callers) and all(request.is_cancelled() for request in callers)
