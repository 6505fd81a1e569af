"""``penstock trace`` and ``penstock bench`` report measurements."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from penstock.cli._group import penstock

FED = """
from penstock import fn, pipeline_def, types

@pipeline_def
def resized():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return fn.resize(fn.decoders.image(encoded), size=(16, 16))
"""

READING = """
from penstock import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def read():
    return fn.readers.file(file_root="{folder}")[0]
"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        cv2.imwrite(str(folder / f"{number}.jpg"), np.full((20, 30, 3), 40 * number, np.uint8))
    return folder


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(penstock, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_trace_shows_operators_threads_and_advice(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FED)
    written = tmp_path / "trace.json"
    text = invoke(
        "trace", str(tmp_path / "pipeline.py"), "--data", str(photos), "--seconds", "0.2", "--threads", "1",
        "--batch-size", "4", "--output", str(written),
    )  # fmt: skip
    assert "batches of 4, threads: 1" in text
    for word in ("decoders.image + resize", "fn.external_source", "penstock-prefetch", "samples/s", "\n- "):
        assert word in text
    assert json.loads(written.read_text())["traceEvents"]


def test_bench_compares_settings(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FED)
    text = invoke(
        "bench", str(tmp_path / "pipeline.py"), "--data", f"encoded={photos}", "--seconds", "0.1",
        "--batch-size", "1", "--batch-size", "4", "--threads", "1", "--threads", "2",
    )  # fmt: skip
    rows = [line.split()[:2] for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert rows == [["1", "1"], ["1", "2"], ["4", "1"], ["4", "2"]]


def test_readers_need_no_data_and_start_over(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(READING.format(folder=photos.parent))
    assert "fn.readers.file" in invoke("trace", str(tmp_path / "pipeline.py"), "--seconds", "0.1")


def test_missing_data_is_told_with_the_input(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FED)
    result = CliRunner().invoke(penstock, ["bench", str(tmp_path / "pipeline.py")])
    assert result.exit_code == 2
    assert "--data: No file is given for 'encoded': add encoded=FILE" in result.output


def test_files_in_subfolders_are_data(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FED)
    for name in ("cats", "dogs", ".thumbnails"):
        (tmp_path / "data" / name).mkdir(parents=True)
    arguments = ["bench", str(tmp_path / "pipeline.py"), "--data", str(tmp_path / "data"), "--seconds", "0.1"]
    (tmp_path / "data" / ".thumbnails" / "cat.txt").write_text("not an image")
    result = CliRunner().invoke(penstock, arguments)
    assert result.exit_code == 2
    assert f"There is no file in '{tmp_path / 'data'}' or its subfolders" in result.output
    photo = next(iter(photos.iterdir()))
    for name in ("cats", "dogs"):
        shutil.copy(photo, tmp_path / "data" / name)
    assert "samples/s" in invoke(*arguments)


def test_a_video_input_cannot_be_measured(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(
        "from penstock import fn, pipeline_def\n"
        "@pipeline_def(batch_size=1, num_threads=1, device_id=None)\n"
        "def frames():\n"
        "    return fn.experimental.inputs.video(name='video', sequence_length=2)\n"
    )
    result = CliRunner().invoke(penstock, ["trace", str(tmp_path / "pipeline.py"), "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "lasts for several runs" in result.output
