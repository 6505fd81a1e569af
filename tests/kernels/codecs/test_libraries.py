"""Messages that libraries print while they are loaded."""

from __future__ import annotations

import os
import subprocess
import sys

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


WITHOUT_FOLDERS = """
import tempfile


def refuse():
    raise FileNotFoundError("no folder can be written to")


tempfile._get_default_tempdir = refuse
"""
DECODE = """
import io

import numpy as np
from PIL import Image

from penstock import fn, pipeline_def


def saved(kind, **options):
    stream = io.BytesIO()
    Image.fromarray(np.arange(6000, dtype=np.uint8).reshape(40, 50, 3)).save(stream, kind, **options)
    return np.frombuffer(stream.getvalue(), np.uint8)


files = [saved("JPEG"), saved("PNG"), saved("TIFF", compression="tiff_lzw"), saved("WEBP"), saved("JPEG")[:-100]]


@pipeline_def(batch_size=5, num_threads=1, device_id=None, prefetch_queue_depth=1, on_error="skip")
def pipe():
    return fn.decoders.image(fn.external_source(lambda: files))


with pipe() as pipeline:
    print([tuple(sample.shape()) for sample in pipeline.run()[0]], *(sample.reason for sample in pipeline.skipped))
"""


def check_decoded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(40, 50, 3)") == 4
    assert "Premature end of JPEG file" in done.stdout


def test_images_are_decoded_where_no_folder_can_be_written_to() -> None:
    command = [sys.executable, "-c", WITHOUT_FOLDERS + DECODE]
    check_decoded(subprocess.run(command, capture_output=True, text=True, timeout=120, check=False))


def test_images_are_decoded_without_stderr() -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", DECODE]
    check_decoded(subprocess.run(command, capture_output=True, text=True, timeout=120, check=False))
