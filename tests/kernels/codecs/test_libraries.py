"""Messages that libraries print while they are loaded."""

from __future__ import annotations

import os

import pytest

from penstock.kernels.codecs import libraries


def test_advice_on_gpus_is_suppressed_and_all_else_is_written(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "_has_driver", lambda: False)
    with libraries._without_advice_on_gpus():
        os.write(2, b"Failed to load nvjpeg\nanother thread's error\nNote: If using nvImageCodec, install CUDA\n")
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "another thread's error\nafterwards\n"
