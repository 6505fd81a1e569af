"""`io.file.read` reads files whose paths are its input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def _read(*samples: np.ndarray) -> list[bytes]:
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=None)
    def pipeline() -> object:
        return fn.io.file.read(fn.external_source(lambda: list(samples)))

    (contents,) = pipeline().run()
    assert contents.dtype == types.UINT8
    return [np.asarray(sample).tobytes() for sample in contents]


def _text(path: object) -> np.ndarray:
    return np.frombuffer(str(path).encode(), np.uint8)


def test_contents(tmp_path: Path) -> None:
    (tmp_path / "żółw.txt").write_bytes(b"turtle")
    (tmp_path / "empty").touch()
    assert _read(_text(tmp_path / "żółw.txt"), _text(tmp_path / "empty")) == [b"turtle", b""]


def test_path_ends_at_a_zero(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert _read(_text(f"{tmp_path}/a\0rest")) == [b"1"]


def test_missing_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(FileNotFoundError, match="sample #1"):
        _read(_text(tmp_path / "empty"), _text(tmp_path / "none"))


def test_paths_of_another_type() -> None:
    with pytest.raises(RuntimeError, match="Unexpected input data type"):
        _read(_text("a").astype(np.int32))
