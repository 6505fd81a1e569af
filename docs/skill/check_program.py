"""Say which of DALI's names a program uses, and whether Penstock has them: `python check_program.py PROGRAM.py ...`.

Reads the source alone: neither DALI nor the program is imported. Exits with 1 if a name is missing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.compat.finder import counterpart

_DALI = "nvidia.dali"
_FACADE = "penstock.compat.dali"
_PLUGINS = "penstock.plugin."


def names_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything that a program takes from DALI, such as `nvidia.dali.fn.resize`."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for entry in node.names:
                if _is_dali(entry.name):
                    yield node.lineno, entry.name
                    aliases[entry.asname or entry.name.partition(".")[0]] = entry.name if entry.asname else "nvidia"
        elif isinstance(node, ast.ImportFrom) and node.module and (_is_dali(node.module) or node.module == "nvidia"):
            for entry in node.names:
                name = node.module if entry.name == "*" else f"{node.module}.{entry.name}"
                if _is_dali(name):
                    yield node.lineno, name
                    aliases[entry.asname or entry.name] = name
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            path: list[str] = []
            value: ast.expr = node
            while isinstance(value, ast.Attribute):
                path.insert(0, value.attr)
                value = value.value
            if isinstance(value, ast.Name) and value.id in aliases:
                name = ".".join([aliases[value.id], *path])
                if _is_dali(name):
                    yield node.lineno, name


def _is_dali(name: str) -> bool:
    return name == _DALI or name.startswith(f"{_DALI}.")


def in_penstock(name: str) -> tuple[str, bool]:
    """Return the name in Penstock of a name in DALI, and whether it exists."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        module_name = counterpart(".".join(parts[:end]))
        rest = parts[end:]
        if module_name.startswith(_PLUGINS):
            # Modules that import a framework: whether that is installed here says nothing about the program.
            if _has_module(module_name):
                return ".".join([module_name, *rest]), True
            continue
        try:
            value: object = importlib.import_module(module_name)
        except ModuleNotFoundError:
            continue
        if module_name == _FACADE:
            module_name = "penstock"
        return ".".join([module_name, *rest]), _has_names(value, rest)
    return name.replace(_DALI, "penstock"), False


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(".".join(name.split(".")[:3])) is not None
    except ModuleNotFoundError:
        return False


def _has_names(value: object, names: list[str]) -> bool:
    for name in names:
        if isinstance(value, type):
            return True  # members of classes are checked in the run
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


def main() -> None:
    """Check the programs that the command line names."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    missing = 0
    for program in map(Path, sys.argv[1:]):
        for line, name in sorted(set(names_of(program.read_text(encoding="utf-8")))):
            ours, exists = in_penstock(name)
            missing += not exists
            print(f"{program}:{line}: {name} -> {ours if exists else f'MISSING: {ours}'}")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
