"""Why a request gets no answer: the message for its client, and what is logged and counted."""

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
from penstock.serving.requests import RequestError


class Fault(Enum):
    """The reason why a request failed, as named in metrics and log lines."""

    REQUEST = "bad_request"
    LIMIT = "limit"
    DECODER = "decoder_died"
    OPERATOR = "operator"
    CANCELLED = "cancelled"
    OVERLOAD = "overload"
    INTERNAL = "internal"


# The first match gives the fault; anything else is an internal error.
_FAULTS: tuple[tuple[type[BaseException], Fault], ...] = (
    (CancelledError, Fault.CANCELLED),
    (MemoryShortageError, Fault.OVERLOAD),
    (LimitError, Fault.LIMIT),
    (DecoderDiedError, Fault.DECODER),
    (OperatorError, Fault.OPERATOR),
    (RequestError, Fault.REQUEST),
)


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that could not be served.

    Attributes:
        fault: the reason.
        message: for the client.
        operator: the operator that failed, as the user wrote it, e.g. ``penstock.fn.crop``; or empty.
        sample: index of the failing sample in its request, if a sample is at fault.
        traceback: of an internal error, for the log.
    """

    fault: Fault
    message: str
    operator: str = ""
    sample: int | None = None
    traceback: str = field(default="", compare=False)


def refusal_of(error: BaseException, start: int = 0) -> Refusal:
    """The answer to a request for which ``error`` was raised.

    Args:
        error: the reason.
        start: index of the request's first sample in its batch.
    """
    fault = next((fault for kind, fault in _FAULTS if isinstance(error, kind)), Fault.INTERNAL)
    if isinstance(error, OperatorError):
        sample = None if error.sample is None else error.sample - start
        place = "" if sample is None else f" (sample {sample} of this request)"
        # Some operators name the sample by its index in the batch, which means nothing to a client that shares the
        # batch.
        reason = error.reason if sample is None else re.sub(rf"#{error.sample}\b", f"#{sample}", error.reason)
        return Refusal(fault, f"{error.operator}: {reason}{place}", error.operator, sample)
    # As text: the error itself would refer to the frames that hold the refusal, and keep the request's memory alive.
    trace = traceback_text(error) if fault is Fault.INTERNAL else ""
    text = str(error) if isinstance(error, (PenstockError, RequestError)) else f"{type(error).__name__}: {error}"
    return Refusal(fault, text, traceback=trace)
