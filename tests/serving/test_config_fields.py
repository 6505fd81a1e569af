"""Fields are removed from the text of a configuration, and everything else does not change."""

from __future__ import annotations

import pytest

from penstock.serving.config_text import without_field, without_parameter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: 'a'\ninstance_group [ { count: 2 } ]\n# end\n", "name: 'a'\n# end\n"),
        ("instance_group { count: 2 } instance_group { count: 1 }", ""),
        ("instance_group: [ { count: 2 }, { gpus: [ 0, 1 ] } ], name: 'a'", "name: 'a'"),
        ("optimization { instance_group: 1 }", "optimization { instance_group: 1 }"),
        ("name: 'instance_group { count: 1 }'", "name: 'instance_group { count: 1 }'"),
        ("# instance_group { }\nname: 'a'", "# instance_group { }\nname: 'a'"),
        ("instance_group # why\n [ { count: 2 } ]; name: 'a'", "name: 'a'"),
        ("instance_group [ { count: 2 ", ""),
        ("", ""),
    ],
)
def test_without_a_field(text: str, expected: str) -> None:
    assert without_field(text, "instance_group") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "dynamic_batching { max_queue_delay_microseconds: 5, preserve_ordering: true }",
            "dynamic_batching { preserve_ordering: true }",
        ),
        ("dynamic_batching < max_queue_delay_microseconds: 5 >", "dynamic_batching < >"),
        (
            "sequence_batching { max_queue_delay_microseconds: 5 }",
            "sequence_batching { max_queue_delay_microseconds: 5 }",
        ),
        ("max_queue_delay_microseconds: 5", "max_queue_delay_microseconds: 5"),
        ("dynamic_batching: 1", "dynamic_batching: 1"),
    ],
)
def test_without_a_field_of_a_message(text: str, expected: str) -> None:
    assert without_field(text, "max_queue_delay_microseconds", "dynamic_batching") == expected


_A, _B = "{ key: 'a' value { string_value: '1' } }", "{ key: \"b\" value: { string_value: '{' } }"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"parameters {_A} parameters {_B}", f"parameters {_A} "),
        (f"parameters {_B}\nname: 'n'", "name: 'n'"),
        (f"parameters [ {_B}, {_A} ]", f"parameters [ {_A} ]"),
        (f"parameters [ {_A}, {_B} ]", f"parameters [ {_A}]"),
        (f"parameters: [ {_B} ]", ""),
        (f"parameters {_A}", f"parameters {_A}"),
        ("key: 'b'", "key: 'b'"),
    ],
)
def test_without_a_parameter(text: str, expected: str) -> None:
    assert without_parameter(text, "b") == expected
