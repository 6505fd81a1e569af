"""Trial runs of pipelines with synthetic data, before they are served."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import fn, pipeline_def
from penstock.kernels.cpu.jpeg.files import decode_files
from penstock.serving.probing import multi_run_sources, probe, streams
from penstock.serving.warming import usual
from penstock.types import FLOAT


def test_the_usual_pipeline_is_known_and_warm_after_a_probe() -> None:
    (output,) = probe(usual())
    assert (output.dtype, output.dims) == (FLOAT, (3, 224, 224))
    assert decode_files.signatures


def test_extents_that_depend_on_the_input_are_unknown() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        signal = fn.external_source(name="signal", dtype=FLOAT, ndim=2)
        return (
            signal,
            fn.resize(fn.expand_dims(signal, axes=2), size=(8, 9)),
            fn.python_function(signal, function=_ranks),
        )

    assert [output.dims for output in probe(define())] == [(-1, -1), (8, 9, 1), (-1, -1, -1)]


def _ranks(signal: np.ndarray) -> np.ndarray:
    """Add a dimension to short signals, so that the ranks differ between the two trial runs."""
    return signal[None] if len(signal) < 20 else signal


def test_pipelines_of_video_parts_stream() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define(parts: bool) -> Any:
        other = fn.external_source(name="other", dtype=FLOAT, ndim=1)
        return (fn.experimental.inputs.video(name="video", sequence_length=2), other) if parts else other

    assert streams(define(True)) is True
    assert multi_run_sources(define(True)) == {"video"}
    assert streams(define(False)) is False
