"""Changes configurations for a Triton without GPUs, which rejects models whose ``instance_group`` requests a GPU."""

from __future__ import annotations

from penstock.serving.config_text import CLOSING, end_of_separator, end_of_value, is_word, tokens_of


def request_cpu(config: str) -> str:
    """Return a model's configuration (in protobuf's text format) with the CPU instead of GPUs in its instance groups.

    >>> request_cpu("instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]")
    'instance_group [ { count: 2 kind: KIND_CPU } ]'
    """
    tokens = tokens_of(config)
    output: list[str] = []
    opened: list[tuple[str, str]] = []
    field, position = "", 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        in_group = bool(opened) and opened[-1][0] != "[" and {name for _, name in opened} == {"instance_group"}
        if token in CLOSING:
            # An item of a list belongs to the field whose value is the list.
            opened.append((token, opened[-1][1] if opened and opened[-1][0] == "[" else field))
        elif token in CLOSING.values():
            del opened[-1:]
        elif is_word(token):
            if in_group and token == "gpus":
                position = end_of_separator(tokens, end_of_value(tokens, position))
                continue
            if in_group and field == "kind" and token in ("KIND_GPU", "1"):
                token = "KIND_CPU"
            field = token
        output.append(token)
    return "".join(output)
