"""The text of a model's ``config.pbtxt`` (protobuf's text format), cut into tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}\[\]<>:,;]|[^\s{}\[\]<>:,;"'\#]+|.""", re.DOTALL
)
CLOSING = {"{": "}", "[": "]", "<": ">"}
"""The opening brackets of messages and lists, with the closing ones."""


def tokens_of(config: str) -> list[str]:
    """Return all tokens of a text in order: names, values, brackets, punctuation, comments and whitespace.

    >>> tokens_of('backend: "penstock" # ours')
    ['backend', ':', ' ', '"penstock"', ' ', '# ours']
    """
    return _TOKEN.findall(config)


def is_word(token: str) -> bool:
    """Return whether a token is a name, a value or a bracket."""
    return not token.isspace() and token[0] not in "#:,;"


def values(config: str, field: str) -> Iterator[str]:
    """Return the values of all fields with this name, wherever they occur.

    >>> list(values('backend: "penstock"', "backend"))
    ['penstock']
    """
    return (plain(value) for name, value in pairwise(_words(config)) if name == field)


def parameter_values(config: str, key: str) -> Iterator[str]:
    """Yield the values of a model's parameter. If the parameter's fields are in unusual order, it is not found, and
    callers must refuse the model.

    >>> list(parameter_values('parameters { key: "isolation" value { string_value: "process" } }', "isolation"))
    ['process']
    """
    words = _words(config)
    for start in range(len(words) - 5):
        name, text, value, opening, kind, value_text = words[start : start + 6]
        if (name, plain(text), value, kind) == ("key", key, "value", "string_value") and opening in "{<":
            yield plain(value_text)


def plain(text: str) -> str:
    """Return a value without its quotes."""
    return text.strip("\"'")


def quoted(text: str) -> str:
    """Return a text as a value."""
    return json.dumps(text, ensure_ascii=False)


def without_field(config: str, field: str, within: str | None = None) -> str:
    """Return the text without a field of the model, or of its messages in the field ``within``.

    >>> without_field('name: "a"  max_batch_size: 8', "name")
    'max_batch_size: 8'
    >>> without_field("dynamic_batching { max_queue_delay_microseconds: 5 }", "max_queue_delay_microseconds", "dynamic_batching")
    'dynamic_batching { }'
    """
    tokens = tokens_of(config)
    fields = list(_fields(tokens, 0, len(tokens)))
    if within is not None:
        messages = (item for outer in fields if outer.name == within for item in _messages(tokens, outer))
        fields = [inner for message in messages for inner in _fields(tokens, message.start + 1, message.end - 1)]
    return _without(tokens, [(found.start, found.end) for found in fields if found.name == field])


def without_parameter(config: str, key: str) -> str:
    """Return the text without a parameter of the model.

    >>> without_parameter('parameters { key: "a" value { string_value: "1" } } max_batch_size: 8', "a")
    'max_batch_size: 8'
    """
    tokens = tokens_of(config)
    removed = []
    for field in _fields(tokens, 0, len(tokens)):
        if field.name != "parameters":
            continue
        messages = list(_messages(tokens, field))
        matching = [message for message in messages if _key(tokens, message) == key]
        if len(matching) == len(messages):
            removed.append((field.start, field.end))
        else:
            removed += [_with_comma(tokens, message) for message in matching]
    return _without(tokens, removed)


def end_of_value(tokens: Sequence[str], position: int) -> int:
    """Return the position after the value of a field; the value begins at ``position`` or later."""
    depth = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        depth += (token in CLOSING) - (token in CLOSING.values())
        if depth == 0 and is_word(token):
            break
    return position


def end_of_separator(tokens: Sequence[str], position: int) -> int:
    """Return the position after whitespace, commas and semicolons."""
    while position < len(tokens) and (tokens[position].isspace() or tokens[position] in ",;"):
        position += 1
    return position


@dataclass(frozen=True)
class _Field:
    """A field, or a message in a list, at some positions of the tokens.

    Attributes:
        name: the field's name.
        start: the position of the field's name, or of the message's opening bracket.
        value: the position at which the value begins.
        end: the position after the value.
    """

    name: str
    start: int
    value: int
    end: int


def _fields(tokens: Sequence[str], start: int, end: int) -> Iterator[_Field]:
    while start < end:
        if is_word(tokens[start]):
            value = start + 1
            while value < end and not is_word(tokens[value]):
                value += 1
            found = _Field(tokens[start], start, value, min(end_of_value(tokens, value), end))
            yield found
            start = found.end
        else:
            start += 1


def _messages(tokens: Sequence[str], field: _Field) -> Iterator[_Field]:
    """Yield the messages in the value of a field, which is a message or a list of messages."""
    if field.value >= len(tokens) or tokens[field.value] not in CLOSING:
        return
    if tokens[field.value] != "[":
        yield _Field(field.name, field.value, field.value, field.end)
        return
    position = field.value + 1
    while position < field.end - 1:
        if tokens[position] in CLOSING:
            yield _Field(field.name, position, position, end_of_value(tokens, position))
            position = end_of_value(tokens, position)
        else:
            position += 1


def _key(tokens: Sequence[str], message: _Field) -> str:
    inner = _fields(tokens, message.start + 1, message.end - 1)
    return next((plain(tokens[field.value]) for field in inner if field.name == "key"), "")


def _with_comma(tokens: Sequence[str], message: _Field) -> tuple[int, int]:
    """Return the range of a message in a list, including the comma after it, or, if there is none, the comma before it."""
    end = end_of_separator(tokens, message.end)
    if "," in tokens[message.end : end]:
        return message.start, end
    start = message.start
    while start > 0 and tokens[start] != ",":
        start -= 1
    return start, message.end


def _without(tokens: Sequence[str], ranges: Sequence[tuple[int, int]]) -> str:
    """Return the text without the tokens in these ranges, and without the whitespace that follows each range."""
    removed = {position for start, end in ranges for position in range(start, end)}
    for _, end in ranges:
        removed.update(range(end, end_of_separator(tokens, end)))
    return "".join(token for position, token in enumerate(tokens) if position not in removed)


def _words(config: str) -> list[str]:
    return [token for token in tokens_of(config) if is_word(token)]
