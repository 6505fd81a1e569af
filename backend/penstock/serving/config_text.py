"""The text of a model's ``config.pbtxt`` (protobuf's text format), cut into tokens."""

from __future__ import annotations

import re

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
