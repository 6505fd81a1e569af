"""Parsing while other threads parse."""

from __future__ import annotations

import ast

import pytest

from penstock.graph.parsing import parse


@pytest.mark.parametrize("failures", [0, 3])
def test_sources_are_parsed_again_where_the_interpreter_lost_count(
    failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, own = [failures], ast.parse

    def losing_count(source: str) -> ast.Module:
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch")
        return own(source)

    monkeypatch.setattr(ast, "parse", losing_count)
    assert ast.dump(parse("a = 1")) == ast.dump(own("a = 1"))


def test_what_is_wrong_with_a_source_is_told() -> None:
    with pytest.raises(SyntaxError):
        parse("a =")


def test_what_the_interpreter_cannot_do_at_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_source: str) -> ast.Module:
        raise SystemError("broken")

    monkeypatch.setattr(ast, "parse", never)
    with pytest.raises(SystemError, match="broken"):
        parse("a = 1")
