"""Refusals of requests: the message for the client, and the data for logs and metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from penstock.errors import (
    CancelledError,
    DecoderDiedError,
    LimitError,
    MemoryShortageError,
    OperatorError,
    PenstockError,
    traceback_text,
)
from penstock.serving.faults import Fault, fault_of, is_about_resources, server_cause
from penstock.serving.requests import RequestError


class Kind(Enum):
    """Why a request failed, by the name in metrics and log lines."""

    REQUEST = "bad_request"
    LIMIT = "limit"
    DECODER = "decoder_died"
    OPERATOR = "operator"
    CANCELLED = "cancelled"
    RESOURCES = "resources"
    OVERLOAD = "overload"
    INTERNAL = "internal"


class Status(Enum):
    """Triton's error codes for clients, with Triton's names and numbers."""

    INTERNAL = 1
    INVALID_ARG = 3
    UNAVAILABLE = 4
    CANCELLED = 7


# Classes of errors that are not the server's fault, and their kinds: the first class that matches counts. Other errors are internal.
_KINDS: tuple[tuple[type[BaseException], Kind], ...] = (
    (CancelledError, Kind.CANCELLED),
    (LimitError, Kind.LIMIT),
    (DecoderDiedError, Kind.DECODER),
    (OperatorError, Kind.OPERATOR),
    (RequestError, Kind.REQUEST),
)


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that could not be served.

    Attributes:
        kind: why the request failed.
        message: the message for the client.
        operator: the operator that failed, as the user wrote it, e.g. ``penstock.fn.crop``; or an empty string.
        sample: the index of the failing sample in its request, if a sample is at fault.
        fault: who is to blame.
        traceback: the traceback of an internal error, for the log.
    """

    kind: Kind
    message: str
    operator: str = ""
    sample: int | None = None
    fault: Fault = Fault.CLIENT
    traceback: str = field(default="", compare=False)

    @property
    def status(self) -> Status:
        """The error code that the client gets."""
        if self.kind is Kind.CANCELLED:
            return Status.CANCELLED
        if self.kind in (Kind.RESOURCES, Kind.OVERLOAD):
            return Status.UNAVAILABLE
        return Status.INVALID_ARG if self.fault is Fault.CLIENT else Status.INTERNAL


def refusal_of(error: BaseException, start: int = 0) -> Refusal:
    """Return the answer to a request for which ``error`` was raised.

    Args:
        error: the error that was raised.
        start: the index of the request's first sample in the batch.
    """
    fault = fault_of(error)
    kind = _kind_of(error, fault)
    # As text: the error would keep the frames alive through which it passed, and with them the request's memory.
    trace = traceback_text(error) if kind is Kind.INTERNAL else ""
    if isinstance(error, OperatorError):
        sample = None if error.sample is None else error.sample - start
        location = "" if sample is None else f" (sample {sample} of this request)"
        # Some operators name the sample by its index in the batch, which has no meaning for a client, whose request shares the
        # batch with others.
        reason = error.reason if sample is None else re.sub(rf"#{error.sample}\b", f"#{sample}", error.reason)
        return Refusal(kind, f"{error.operator}: {reason}{location}", error.operator, sample, fault, trace)
    text = str(error) if isinstance(error, (PenstockError, RequestError)) else f"{type(error).__name__}: {error}"
    return Refusal(kind, text, fault=fault, traceback=trace)


def _kind_of(error: BaseException, fault: Fault) -> Kind:
    if fault is not Fault.SERVER:
        return next((kind for type_, kind in _KINDS if isinstance(error, type_)), Kind.INTERNAL)
    cause = server_cause(error)
    if isinstance(cause, MemoryShortageError):
        return Kind.OVERLOAD
    return Kind.RESOURCES if cause is not None and is_about_resources(cause) else Kind.INTERNAL
