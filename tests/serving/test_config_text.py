"""Configuration texts are split into tokens without loss, and fields are found in any surroundings."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.serving.config_text import parameter_values, tokens_of, values

words = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True)
# Separators of tokens; some contain text that looks like a field.
gaps = st.lists(st.sampled_from([" ", "\n", "# backend: 'other'\n", "\t"]), min_size=1, max_size=3).map("".join)
texts = st.text("abc:{}[]<>,; #\"'\\\n", max_size=60)


@settings(derandomize=True, deadline=None)
@given(st.text() | texts)
def test_no_character_is_lost(text: str) -> None:
    assert "".join(tokens_of(text)) == text


@settings(derandomize=True, deadline=None)
@given(words, gaps, gaps, gaps)
def test_a_field_is_found_between_comments_and_spaces(value: str, before: str, between: str, after: str) -> None:
    text = f'{before}backend{between}:{between}"{value}"{after}name: "x"'
    assert list(values(text, "backend")) == [value]


@settings(derandomize=True, deadline=None)
@given(words, words, gaps, st.sampled_from(["{}", "<>"]))
def test_a_parameter_is_found_in_both_kinds_of_brackets(key: str, value: str, gap: str, brackets: str) -> None:
    opening, closing = brackets
    inner = f'key: "{key}"{gap}value {opening} string_value: "{value}" {closing}'
    text = f"parameters {opening} {inner} {closing}"
    assert list(parameter_values(text, key)) == [value]
    assert list(parameter_values(text, f"{key}_")) == []
