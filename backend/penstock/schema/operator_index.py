"""An index of the modules that declare the operators of a package, so that each module is loaded on first use.

The index is a file in the package. Like the type stubs, it is derived from the operators' declarations when the package is built or set up.
It is used only as long as all files of the package have the sizes that they had at that time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.schema.declaration import Schema

FILE_NAME = "index.json"


class Entry(NamedTuple):
    """An operator in the index.

    Args:
        name: the name of the operator's schema.
        module: the module that declares the operator.
        fn_path: the operator's path in ``fn``.
        class_path: the operator's path in ``ops``.
        is_unlisted: the schema's ``is_unlisted``.
        fuses: whether the operator is a fused one.
    """

    name: str
    module: str
    fn_path: str
    class_path: str
    is_unlisted: bool
    fuses: bool


def entry_of(schema: Schema, module: str) -> Entry:
    """Return the entry for an operator that a module declares."""
    return Entry(schema.name, module, schema.fn_path, schema.class_path, schema.is_unlisted, schema.fuses is not None)


def index_text(folder: Path, entries: Iterable[Entry]) -> str:
    """Return the text of the index for the package in ``folder``, with entries for its operators."""
    lines = [
        f'{{"fields": {json.dumps(Entry._fields)},',
        f'"sizes": {json.dumps(_sizes(str(folder)), sort_keys=True)},',
        '"operators": [',
        ",\n".join(json.dumps(entry) for entry in entries),
        "]}",
    ]
    return "\n".join(lines) + "\n"


def read_index(folder: str) -> list[Entry] | None:
    """Return the operators of the package in ``folder``, or None if the index is missing or outdated."""
    try:
        with open(os.path.join(folder, FILE_NAME), encoding="utf-8") as file:
            index = json.load(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # an interrupted build may leave such remains
        return None
    if index.get("fields") != list(Entry._fields) or index["sizes"] != _sizes(folder):
        return None
    return [Entry(*entry) for entry in index["operators"]]


def _sizes(folder: str, below: str = "") -> dict[str, int]:
    """Return the sizes of all modules in a folder in bytes, by path."""
    sizes: dict[str, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                sizes[below + entry.name] = entry.stat().st_size
            elif entry.name != "__pycache__" and entry.is_dir():
                sizes |= _sizes(entry.path, f"{below}{entry.name}/")
    return sizes
