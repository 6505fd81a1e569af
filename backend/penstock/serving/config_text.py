"""The text of a model's ``config.pbtxt`` (protobuf's text format), cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}\[\]<>:,;]|[^\s{}\[\]<>:,;"'\#]+|.""", re.DOTALL
)


def tokens_of(config: str) -> list[str]:
    """All tokens of a text in order: names, values, brackets, punctuation, comments and whitespace.

    >>> tokens_of('backend: "penstock" # ours')
    ['backend', ':', ' ', '"penstock"', ' ', '# ours']
    """
    return _TOKEN.findall(config)


def is_word(token: str) -> bool:
    """Whether it is a name, a value or a bracket."""
    return not token.isspace() and token[0] not in "#:,;"


def values(config: str, field: str) -> Iterator[str]:
    """The values of a field, wherever it occurs.

    >>> list(values('backend: "penstock"', "backend"))
    ['penstock']
    """
    return (plain(value) for name, value in pairwise(_words(config)) if name == field)


def parameter_values(config: str, key: str) -> Iterator[str]:
    """The values of a model's parameter. Fields in unusual order are not recognized: callers must refuse the model then.

    >>> list(parameter_values('parameters { key: "isolation" value { string_value: "process" } }', "isolation"))
    ['process']
    """
    words = _words(config)
    for start in range(len(words) - 5):
        name, text, value, opening, kind, given = words[start : start + 6]
        if (name, plain(text), value, kind) == ("key", key, "value", "string_value") and opening in "{<":
            yield plain(given)


def plain(text: str) -> str:
    """A value without its quotes."""
    return text.strip("\"'")


def _words(config: str) -> list[str]:
    return [token for token in tokens_of(config) if is_word(token)]
