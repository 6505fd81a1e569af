"""Sources may return various kinds of data, and operators pass on samples' source information."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name in "ab":
        (tmp_path / name).write_bytes(b"123456")
    return [str(tmp_path / name) for name in "ab"]


def _sources(define: Any) -> list[str]:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline() -> Any:
        return define()

    return [sample.source_info() for sample in pipeline().run()[0]]


def test_outputs_have_the_source_of_their_input(files: list[str]) -> None:
    assert _sources(lambda: fn.cast(fn.readers.file(files=files)[0] + 1, dtype=types.FLOAT)[:2]) == files
    assert _sources(lambda: types.Constant(np.zeros(6, np.uint8)) + fn.readers.file(files=files)[0]) == files


def test_inputs_of_different_sources(files: list[str]) -> None:
    assert _sources(lambda: fn.readers.file(files=files)[0] + fn.readers.file(files=files[::-1])[0]) == ["", ""]


def test_arguments_are_no_sources(files: list[str]) -> None:
    data = types.Constant(np.zeros((4, 4, 1), np.uint8))
    position = lambda: fn.cast(fn.readers.file(files=files)[0][0], dtype=types.FLOAT) * 0.0  # noqa: E731
    assert _sources(lambda: fn.crop(data, crop=(2, 2), crop_pos_x=position())) == ["", ""]


_STRIDED = np.zeros((2, 4), np.float32)[:, ::2]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([1, 2], RuntimeError),
        ([[1, 2], [3, 4]], RuntimeError),
        ([(1.0,), (2.0,)], RuntimeError),
        (range(2), RuntimeError),
        (3, RuntimeError),
        (np.float32(3), IndexError),
        (np.array(3), IndexError),
        (_STRIDED, RuntimeError),
        ([_STRIDED, _STRIDED], RuntimeError),
        (np.zeros((2, 3), np.float32)[::-1], RuntimeError),
    ],
)
def test_what_is_no_batch(data: object, error: type[Exception]) -> None:
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: data))
    with pytest.raises(error):
        pipe.run()


def test_a_batch_without_samples_has_no_type() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: np.zeros((0, 3), np.float32), dtype=types.FLOAT))
    (batch,) = pipe.run()
    assert len(batch) == 0
    assert batch.dtype == types.NO_TYPE
