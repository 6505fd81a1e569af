"""Errors of a lost GPU."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.errors import DeviceLostError, OperatorError
from penstock.tensors.cuda import device_lost


class CUDARuntimeError(RuntimeError):
    """Stands for CuPy's exception of this name."""

    __module__ = "cupy_backends.cuda.api.runtime"

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


def test_only_errors_that_end_all_work_on_a_device_tell_of_a_loss() -> None:
    found = device_lost(CUDARuntimeError(700))
    assert found is not None
    assert "cudaError 700" in str(found)
    assert device_lost(CUDARuntimeError(2)) is None
    assert device_lost(RuntimeError("700")) is None

    class Foreign(RuntimeError):
        status = 700

    assert device_lost(Foreign()) is None


@pytest.mark.parametrize("status", [700, 1])
def test_an_operator_on_a_lost_device_says_so(with_gpu: None, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data = fn.external_source(lambda: [np.ones((4, 5, 3), np.uint8)] * 2, layout="HWC")
        return fn.resize(data.gpu(), size=(3, 3))

    def fail(*_arguments: object) -> None:
        raise CUDARuntimeError(status)

    from penstock.operators.image import _resizing

    monkeypatch.setattr(_resizing, "resample_batch", fail)
    monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "deviceSynchronize", lambda: None, raising=False)
    with pytest.raises(OperatorError) as told:
        pipeline().run()
    assert isinstance(told.value, DeviceLostError) == (status == 700)
    assert "fn.resize" in str(told.value)


def test_waiting_for_a_lost_device_says_so(with_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipeline() -> Any:
        return fn.external_source(lambda: [np.ones((4, 5, 3), np.uint8)] * 2, layout="HWC").gpu()

    def fail(_event: object) -> None:
        raise CUDARuntimeError(719)

    running = pipeline()
    running.run()
    monkeypatch.setattr(sys.modules["cupy"].cuda.Event, "synchronize", fail)
    with pytest.raises(DeviceLostError, match="cudaError 719"):
        running.run()
