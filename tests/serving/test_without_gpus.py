"""Repositories that ask for GPUs, mirrored for a server that has none."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.serving.without_gpus import MIRRORS, Mirrors, original_of, request_cpu


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("instance_group [ { kind: KIND_GPU } ]", "instance_group [ { kind: KIND_CPU } ]"),
        ("instance_group { kind: KIND_GPU }", "instance_group { kind: KIND_CPU }"),
        ("instance_group: [{kind:KIND_GPU,gpus:[0],count:2}]", "instance_group: [{kind:KIND_CPU,count:2}]"),
        ("instance_group < kind: 1; gpus: 0; gpus: 1; count: 2 >", "instance_group < kind: KIND_CPU; count: 2 >"),
        ("instance_group [{count: 1}, {gpus: [0, 1]}]", "instance_group [{count: 1}, {}]"),
        ("instance_group [ { gpus # one\n : [ 0 ] # two\n } ]", "instance_group [ { # two\n } ]"),
        ("instance_group [ { kind: KIND_CPU } ]", "instance_group [ { kind: KIND_CPU } ]"),
        ('name: "instance_group [ { kind: KIND_GPU } ]"', 'name: "instance_group [ { kind: KIND_GPU } ]"'),
        ("# instance_group { kind: KIND_GPU }\nname: 'a'", "# instance_group { kind: KIND_GPU }\nname: 'a'"),
        (
            'parameters { key: "kind" value: { string_value: "KIND_GPU" } }',
            'parameters { key: "kind" value: { string_value: "KIND_GPU" } }',
        ),
        (
            'instance_group { name: "kind" kind: KIND_GPU profile: "\\"gpus: [0]" }',
            'instance_group { name: "kind" kind: KIND_CPU profile: "\\"gpus: [0]" }',
        ),
        ("optimization { gpus: 1 } instance_group [", "optimization { gpus: 1 } instance_group ["),
    ],
)
def test_configurations(given: str, expected: str) -> None:
    assert request_cpu(given) == expected


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
    (model / "1" / "model.dali").write_text("one")
    (model / "1" / "sub" / "labels.txt").write_text("labels")
    (model / "1" / "config.pbtxt").write_text("instance_group { kind: KIND_GPU }")
    mirrors = Mirrors([repository], tmp_path / "mirrors")
    try:
        (mirror,) = mirrors.folders
        copy = mirror / "resize"
        assert (copy / "config.pbtxt").read_text() == "instance_group { kind: KIND_CPU }"
        assert (copy / "1" / "model.dali").resolve() == model / "1" / "model.dali"
        assert (copy / "1" / "sub" / "labels.txt").read_text() == "labels"
        assert (copy / "1" / "config.pbtxt").is_symlink()  # no model's
        (model / "config.pbtxt").write_text("max_batch_size: 2 instance_group { kind: KIND_GPU }")
        (model / "2").mkdir()
        (model / "2" / "model.dali").write_text("two")
        (model / "1" / "model.dali").unlink()
        (repository / "other").mkdir()
        _wait_for(lambda: (mirror / "other").is_dir() and (copy / "2" / "model.dali").is_file())
        assert (copy / "config.pbtxt").read_text() == "max_batch_size: 2 instance_group { kind: KIND_CPU }"
        assert not (copy / "1" / "model.dali").is_symlink()
    finally:
        mirrors.close()
    variables = mirrors.variables
    assert json.loads(variables[MIRRORS]) == {str(mirror): str(repository)}
    assert original_of(copy / "1", variables) == model / "1"
    assert original_of(model / "1", variables) == model / "1"
    assert original_of(model / "1", {}) == model / "1"
