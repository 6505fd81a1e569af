"""Attribution of errors to the client, the model or the server, by the nature of their causes."""

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
    """The party at fault for a failed request, as named in metrics and log lines."""

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
"""Errors of the system that no request can avoid: permission, space, descriptors, memory, a broken device."""

_LIBRARIES = frozenset({"numba", "llvmlite", "cupy", "cupy_backends"})
"""Libraries that compile and start kernels: an error type of theirs is not about a sample."""

_BUGS = (ImportError, AttributeError, NameError, AssertionError, SystemError, RecursionError, DeviceError)
"""Errors of a missing library, a broken one, a lost GPU, or a mistake in Penstock: raised for any sample."""


def fault_of(error: BaseException) -> Fault:
    """Return the party at fault for a request's error."""
    if isinstance(error, (CancelledError, LimitError, DecoderDiedError)):
        return Fault.CLIENT
    if server_cause(error) is not None:
        return Fault.SERVER
    called = next((cause for cause in causes(error) if isinstance(cause, CallFailed)), None)
    if called is not None:
        # With a ValueError, a model's function rejects a sample.
        return Fault.CLIENT if isinstance(called.__cause__, ValueError) else Fault.MODEL
    return Fault.CLIENT if isinstance(error, (OperatorError, RequestError)) else Fault.SERVER


def server_cause(error: BaseException) -> BaseException | None:
    """Return the error, or the cause of it, for which only the server can be blamed; None if there is none."""
    is_bug = _is_bug
    for cause in causes(error):
        if is_about_resources(cause) or is_bug(cause):
            return cause
        if isinstance(cause, CallFailed):
            # From here on, only model code runs: a missing library is the server's fault, other errors are the model's.
            is_bug = _lacks_library
    return None


def is_about_resources(error: BaseException) -> bool:
    """Return whether the machine lacks something, which may be different in a moment."""
    if isinstance(error, OSError):
        return error.errno in _RESOURCE_ERRORS
    return (
        isinstance(error, (MemoryError, MemoryShortageError, WorkerStartError))
        or str(error) == "can't start new thread"
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, outermost first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _is_bug(error: BaseException) -> bool:
    return isinstance(error, _BUGS) or type(error).__module__.partition(".")[0] in _LIBRARIES


def _lacks_library(error: BaseException) -> bool:
    return isinstance(error, ImportError)
