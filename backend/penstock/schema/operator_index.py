"""An index of the modules that declare a package's operators, so that each is loaded on first use.

The index is a file in the package, derived from the operators' declarations when the package is built or set up, as the type stubs
are. It is used only as long as all files of the package have the sizes that they had then.
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
    """One operator.

    Args:
        name: its schema's name.
        module: the module that declares it.
        fn_path: its path in ``fn``.
        class_path: its path in ``ops``.
        is_unlisted: its schema's ``is_unlisted``.
        fuses: whether it replaces others.
    """

    name: str
    module: str
    fn_path: str
    class_path: str
    is_unlisted: bool
    fuses: bool


def entry_of(schema: Schema, module: str) -> Entry:
    """Return the entry of an operator that a module declares."""
    return Entry(schema.name, module, schema.fn_path, schema.class_path, schema.is_unlisted, schema.fuses is not None)


def index_text(folder: Path, entries: Iterable[Entry]) -> str:
    """Return the text of the index of a package in ``folder``, with entries for its operators."""
    lines = [
        f'{{"fields": {json.dumps(Entry._fields)},',
        f'"sizes": {json.dumps(_sizes(str(folder)), sort_keys=True)},',
        '"operators": [',
        ",\n".join(json.dumps(entry) for entry in entries),
        "]}",
    ]
    return "\n".join(lines) + "\n"


def read_index(folder: str) -> list[Entry] | None:
    """Return the operators of the package in ``folder``, or None if there is no index, or an outdated one."""
    try:
        with open(os.path.join(folder, FILE_NAME), encoding="utf-8") as file:
            index = json.load(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # remains of an interrupted build
        return None
    if index.get("fields") != list(Entry._fields) or index["sizes"] != _sizes(folder):
        return None
    return [Entry(*entry) for entry in index["operators"]]


def _sizes(folder: str, below: str = "") -> dict[str, int]:
    """Return the sizes in bytes of all modules in a folder, by their paths."""
    sizes: dict[str, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                sizes[below + entry.name] = entry.stat().st_size
            elif entry.name != "__pycache__" and entry.is_dir():
                sizes |= _sizes(entry.path, f"{below}{entry.name}/")
    return sizes
