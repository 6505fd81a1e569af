from __future__ import annotations

from dataclasses import dataclass, field

from penstock.schema import Schema


@dataclass(frozen=True)
class DrawnExamples:
    markdown: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


def drawn_examples(schema: Schema) -> DrawnExamples:
    return DrawnExamples()
