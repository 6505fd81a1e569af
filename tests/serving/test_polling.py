"""Changed models are detected by their files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.serving.polling import Changes, Repositories

NOTHING = Changes([], [])
UNDER_WAY = Changes([], [], under_way=True)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_tells_what_was_edited_added_and_removed(tmp_path: Path) -> None:
    for model in ("same", "edited", "removed"):
        write(tmp_path / model / "1" / "pipeline.py", "1")
    seen = Repositories([tmp_path, tmp_path / "nowhere"])
    assert seen.changes() == NOTHING
    write(tmp_path / "edited" / "1" / "pipeline.py", "22")
    write(tmp_path / "added" / "1" / "pipeline.py", "1")
    shutil.rmtree(tmp_path / "removed")
    assert seen.changes() == UNDER_WAY
    assert seen.changes() == Changes(["added", "edited"], ["removed"])
    assert seen.changes() == NOTHING


def test_what_is_still_being_written_is_not_told(tmp_path: Path) -> None:
    seen = Repositories([tmp_path])
    write(tmp_path / "added" / "config.pbtxt", "1")
    assert seen.changes() == UNDER_WAY
    write(tmp_path / "added" / "1" / "pipeline.py", "1")
    assert seen.changes() == UNDER_WAY
    assert seen.changes() == Changes(["added"], [])
    assert seen.changes() == NOTHING


def test_a_model_that_is_replaced_was_never_gone(tmp_path: Path) -> None:
    write(tmp_path / "model" / "1" / "pipeline.py", "1")
    seen = Repositories([tmp_path])
    shutil.rmtree(tmp_path / "model")
    assert seen.changes() == UNDER_WAY
    write(tmp_path / "model" / "1" / "pipeline.py", "22")
    assert seen.changes() == UNDER_WAY
    assert seen.changes() == Changes(["model"], [])


def test_what_python_writes_itself_is_no_change(tmp_path: Path) -> None:
    write(tmp_path / "model" / "1" / "pipeline.py", "1")
    seen = Repositories([tmp_path])
    write(tmp_path / "model" / "1" / "__pycache__" / "pipeline.cpython-311.pyc", "1")
    write(tmp_path / ".git" / "config", "1")
    assert seen.changes() == NOTHING


def test_a_link_to_another_file_is_a_change(tmp_path: Path) -> None:
    # Links as in a ConfigMap that Kubernetes mounts.
    for version in ("old", "new"):
        write(tmp_path / "kept" / version / "config.pbtxt", version)
        os.utime(tmp_path / "kept" / version / "config.pbtxt", (len(version), 5 if version == "old" else 6))
    model = tmp_path / "models" / "model"
    model.mkdir(parents=True)
    (model / "config.pbtxt").symlink_to(tmp_path / "kept" / "old" / "config.pbtxt")
    seen = Repositories([tmp_path / "models"])
    (model / "config.pbtxt").unlink()
    (model / "config.pbtxt").symlink_to(tmp_path / "kept" / "new" / "config.pbtxt")
    assert seen.changes() == UNDER_WAY
    assert seen.changes() == Changes(["model"], [])
