"""Mirrored repositories with amended configurations, for servers without GPUs or with models in the stub."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.serving.mirrors import MIRRORS, Mirrors, original_of
from penstock.serving.without_gpus import request_cpu


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_mirror_follows_its_repository(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    model = repository / "resize"
    (model / "1" / "sub").mkdir(parents=True)
    (model / "config.pbtxt").write_text("instance_group { kind: KIND_GPU }")
    (model / "configs").mkdir()
    (model / "configs" / "gpu.pbtxt").write_text("instance_group { kind: KIND_GPU }")
    (model / "1" / "model.dali").write_text("one")
    (model / "1" / "sub" / "labels.txt").write_text("labels")
    (model / "1" / "config.pbtxt").write_text("instance_group { kind: KIND_GPU }")
    mirrors = Mirrors([repository], tmp_path / "mirrors", [request_cpu, lambda text: f"{text} # ours"])
    try:
        (mirror,) = mirrors.folders
        copy = mirror / "resize"
        assert (copy / "config.pbtxt").read_text() == "instance_group { kind: KIND_CPU } # ours"
        assert (copy / "configs" / "gpu.pbtxt").read_text() == "instance_group { kind: KIND_CPU } # ours"
        assert (copy / "1" / "model.dali").resolve() == model / "1" / "model.dali"
        assert (copy / "1" / "sub" / "labels.txt").read_text() == "labels"
        assert (copy / "1" / "config.pbtxt").is_symlink()  # not a model's configuration
        (model / "config.pbtxt").write_text("max_batch_size: 2 instance_group { kind: KIND_GPU }")
        (model / "2").mkdir()
        (model / "2" / "model.dali").write_text("two")
        (model / "1" / "model.dali").unlink()
        (repository / "other").mkdir()
        _wait_for(lambda: (mirror / "other").is_dir() and (copy / "2" / "model.dali").is_file())
        assert (copy / "config.pbtxt").read_text() == "max_batch_size: 2 instance_group { kind: KIND_CPU } # ours"
        assert not (copy / "1" / "model.dali").is_symlink()
    finally:
        mirrors.close()
    variables = mirrors.variables
    assert json.loads(variables[MIRRORS]) == {str(mirror): str(repository)}
    assert original_of(copy / "1", variables) == model / "1"
    assert original_of(model / "1", variables) == model / "1"
    assert original_of(model / "1", {}) == model / "1"


def test_links_to_folders_are_followed_to_models_only(tmp_path: Path) -> None:
    repository, model = tmp_path / "repository", tmp_path / "elsewhere"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text("a")
    (model / "1" / "around").symlink_to(model)
    (model / "1" / "again").symlink_to(model)
    (model / "1" / "machine").symlink_to("/")
    repository.mkdir()
    (repository / "linked").symlink_to(model)
    mirrors = Mirrors([repository], tmp_path / "mirrors", [lambda text: text + "b"])
    mirrors.close()
    (copy,) = (folder / "linked" for folder in mirrors.folders)
    assert (copy / "config.pbtxt").read_text() == "ab"
    assert sorted(path.name for path in (copy / "1").iterdir() if path.is_symlink()) == ["again", "around", "machine"]


@pytest.mark.parametrize(("code", "stays"), [(errno.EMFILE, True), (errno.ENOMEM, True), (errno.EACCES, False)])
def test_a_folder_that_cannot_be_listed_just_now_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, stays: bool
) -> None:
    (tmp_path / "models" / "resize" / "1").mkdir(parents=True)
    mirrors = Mirrors([tmp_path / "models"], tmp_path / "mirrors", [])
    mirrors.close()
    copy = tmp_path / "mirrors" / "0" / "resize"
    assert copy.is_dir()
    real = os.scandir

    def failing(path: Any) -> Any:
        if str(path) == str(tmp_path / "models"):
            raise OSError(code, os.strerror(code), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", failing)
    with pytest.raises(OSError, match=os.strerror(code)) if stays else contextlib.nullcontext():
        mirrors.refresh()
    assert copy.is_dir() is stays
