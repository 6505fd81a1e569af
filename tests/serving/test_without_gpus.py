"""Configurations that request GPUs, on a server without GPUs."""

import pytest

from penstock.serving.without_gpus import request_cpu


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
