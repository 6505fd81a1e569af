"""Configurations for a Triton without GPUs: it rejects a model whose ``instance_group`` asks for one."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.serving.config_text import is_word, tokens_of

_CLOSING = {"{": "}", "[": "]", "<": ">"}


def request_cpu(config: str) -> str:
    """A model's configuration (in protobuf's text format) in which no instance group asks for a GPU.

    >>> request_cpu("instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]")
    'instance_group [ { count: 2 kind: KIND_CPU } ]'
    """
    tokens = tokens_of(config)
    kept: list[str] = []
    opened: list[tuple[str, str]] = []
    field, position = "", 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        in_group = bool(opened) and opened[-1][0] != "[" and {name for _, name in opened} == {"instance_group"}
        if token in _CLOSING:
            # Items of a list belong to the list's field.
            opened.append((token, opened[-1][1] if opened and opened[-1][0] == "[" else field))
        elif token in _CLOSING.values():
            del opened[-1:]
        elif is_word(token):
            if in_group and token == "gpus":
                position = _skip_value(tokens, position)
                continue
            if in_group and field == "kind" and token in ("KIND_GPU", "1"):
                token = "KIND_CPU"
            field = token
        kept.append(token)
    return "".join(kept)


def _skip_value(tokens: Sequence[str], position: int) -> int:
    """The position after a field's value and its separator."""
    depth = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        depth += (token in _CLOSING) - (token in _CLOSING.values())
        if depth == 0 and (token in _CLOSING.values() or is_word(token)):
            break
    while position < len(tokens) and (tokens[position].isspace() or tokens[position] in ",;"):
        position += 1
    return position
