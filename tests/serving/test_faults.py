"""To whom errors are attributed, the messages that clients get, and the effects of errors on loaded models."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.errors import CallFailed, CancelledError, DeviceLostError, LimitError, OperatorError, operator_error
from penstock.graph import DataNode
from penstock.pipeline import Pipeline
from penstock.serving.pipeline_runner import MixUpError
from penstock.serving.probing import TrialRunError, probe
from penstock.serving.refusals import refusal_of
from penstock.serving.requests import RequestError


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def in_operator(cause: BaseException) -> OperatorError:
    return operator_error(cause, "penstock.fn.resize", "cpu", 0, ())


def in_users_function(cause: BaseException) -> OperatorError:
    return in_operator(caused(CallFailed(str(cause)), cause))


def refused_by_system(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "fault", "kind", "status"),
    [
        (RequestError("an input is missing"), "client", "bad_request", "INVALID_ARG"),
        (in_operator(ValueError("not an image")), "client", "operator", "INVALID_ARG"),
        (in_operator(FileNotFoundError(errno.ENOENT, "no file")), "client", "operator", "INVALID_ARG"),
        (in_operator(LimitError("too large")), "client", "limit", "INVALID_ARG"),
        (CancelledError(), "client", "cancelled", "CANCELLED"),
        (in_users_function(ValueError("no face in it")), "client", "operator", "INVALID_ARG"),
        (in_users_function(ZeroDivisionError("division by zero")), "model", "operator", "INTERNAL"),
        (in_users_function(AttributeError("no attribute")), "model", "operator", "INTERNAL"),
        (in_users_function(refused_by_system(errno.ENOSPC)), "server", "resources", "UNAVAILABLE"),
        (in_users_function(ImportError("no module")), "server", "internal", "INTERNAL"),
        *(
            (in_operator(refused_by_system(number)), "server", "resources", "UNAVAILABLE")
            for number in (errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EMFILE, errno.ENOMEM, errno.EIO)
        ),
        (in_operator(MemoryError()), "server", "resources", "UNAVAILABLE"),
        (caused(ValueError("no index"), refused_by_system(errno.EROFS)), "server", "resources", "UNAVAILABLE"),
        (in_operator(RuntimeError("can't start new thread")), "server", "resources", "UNAVAILABLE"),
        (in_operator(ImportError("no module")), "server", "internal", "INTERNAL"),
        (in_operator(DeviceLostError("the GPU is gone")), "server", "internal", "INTERNAL"),
        (in_operator(AttributeError("no attribute")), "server", "internal", "INTERNAL"),
        (MixUpError("another batch"), "server", "internal", "INTERNAL"),
        (KeyError("a mistake outside of operators"), "server", "internal", "INTERNAL"),
    ],
)
def test_each_error_is_someones_fault(error: BaseException, fault: str, kind: str, status: str) -> None:
    refusal = refusal_of(error)
    assert (refusal.fault.value, refusal.kind.value, refusal.status.name) == (fault, kind, status)
    assert bool(refusal.traceback) == (kind == "internal")


def test_errors_of_numbas_own_are_the_servers() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def added(value: object) -> object:
        return value + "text"

    with pytest.raises(numba.core.errors.NumbaError) as raised:
        added(1)
    assert refusal_of(in_operator(raised.value)).fault.value == "server"


def pipeline_with(function: Callable[[np.ndarray], np.ndarray]) -> Pipeline:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def definition() -> DataNode:
        x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
        return fn.python_function(x, function=function)

    pipeline: Pipeline = definition()
    return pipeline


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (refused_by_system(errno.EROFS), "Read-only file system"),
        (refused_by_system(errno.ENOSPC), "No space left on device"),
        (MemoryError("all of it"), "all of it"),
        (ImportError("No module named 'soundfile'"), "No module named 'soundfile'"),
    ],
)
def test_a_trial_run_that_fails_for_a_reason_of_the_server_is_an_error(error: Exception, reason: str) -> None:
    def function(_: np.ndarray) -> np.ndarray:
        raise error

    with pytest.raises(TrialRunError, match=f"the model cannot answer any request here: .*{reason}"):
        probe(pipeline_with(function))


def test_a_trial_run_whose_input_does_not_suit_the_pipeline_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: np.ndarray) -> np.ndarray:
        raise ValueError(f"{x.size} values are no sample")

    with caplog.at_level(logging.INFO):
        assert probe(pipeline_with(function)) is None
    assert "the trial run failed for every generated input, so nothing is known about the outputs" in caplog.text
    assert "16 values are no sample" in caplog.text
