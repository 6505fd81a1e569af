"""Attributes errors to the client, the model or the server, depending on their causes."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from enum import Enum

from penstock.errors import (
    CallFailed,
    CancelledError,
    DecoderDiedError,
    DeviceError,
    LimitError,
    MemoryShortageError,
    OperatorError,
)
from penstock.kernels.codecs.worker_pool import WorkerStartError
from penstock.serving.requests import RequestError


class Fault(Enum):
    """Who is to blame for a failed request, by the name in metrics and log lines."""

    CLIENT = "client"
    MODEL = "model"
    SERVER = "server"


_RESOURCE_ERRORS = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS),
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
        *(errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE),
    }
)
"""The numbers of system errors that are not a request's fault: permissions, space, descriptors, memory, broken devices."""

_LIBRARIES = frozenset({"numba", "llvmlite", "cupy", "cupy_backends"})
"""Libraries that compile and launch kernels: errors of their own types are not a sample's fault."""

_BUGS = (ImportError, AttributeError, NameError, AssertionError, SystemError, RecursionError, DeviceError)
"""Errors that any sample would cause: a missing or broken library, a lost GPU, or a bug in Penstock."""


def fault_of(error: BaseException) -> Fault:
    """Return who is to blame for a request's error."""
    if isinstance(error, (CancelledError, LimitError, DecoderDiedError)):
        return Fault.CLIENT
    if server_cause(error) is not None:
        return Fault.SERVER
    called = next((cause for cause in causes(error) if isinstance(cause, CallFailed)), None)
    if called is not None:
        # A function of the model raises ValueError to reject a sample; other errors are mistakes in the function.
        return Fault.CLIENT if isinstance(called.__cause__, ValueError) else Fault.MODEL
    return Fault.CLIENT if isinstance(error, (OperatorError, RequestError)) else Fault.SERVER


def server_cause(error: BaseException) -> BaseException | None:
    """Return the first error, among ``error`` and its causes, for which only the server can be blamed; None if there is none."""
    is_bug = _is_bug
    for cause in causes(error):
        if is_about_resources(cause) or is_bug(cause):
            return cause
        if isinstance(cause, CallFailed):
            # The causes of this error come from model code: a missing library is the server's fault, other errors are the model's.
            is_bug = _lacks_library
    return None


def is_about_resources(error: BaseException) -> bool:
    """Return whether an error means that the machine lacks a resource, which may soon be available again."""
    if isinstance(error, OSError):
        return error.errno in _RESOURCE_ERRORS
    return (
        isinstance(error, (MemoryError, MemoryShortageError, WorkerStartError))
        or str(error) == "can't start new thread"
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its cause, the cause of that, and so on."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _is_bug(error: BaseException) -> bool:
    return isinstance(error, _BUGS) or type(error).__module__.partition(".")[0] in _LIBRARIES


def _lacks_library(error: BaseException) -> bool:
    return isinstance(error, ImportError)
