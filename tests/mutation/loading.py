"""Loads a changed module of the package if the environment names a mutant; see ``judging.py``."""

from __future__ import annotations

import ast
import builtins
import functools
import json
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

from mutants import REACHED, mutate

MUTANT = "PENSTOCK_MUTANT"
"""The environment variable for a mutant, as JSON: module, function, number, and the path of a file to create when the
function is reached.
"""


def install() -> None:
    """Make later imports load the mutant that the environment describes, if any."""
    if MUTANT in os.environ:
        mutant = json.loads(os.environ[MUTANT])
        setattr(builtins, REACHED, functools.cache(Path(mutant["reached"]).touch))
        sys.meta_path.insert(0, _Finder(functools.partial(_mutated, mutant)))  # type: ignore[arg-type]


def _mutated(mutant: dict[str, Any], name: str, path: str) -> CodeType | None:
    if name != mutant["module"]:
        return None
    tree = mutate(ast.parse(Path(path).read_bytes()), mutant["function"], mutant["number"])
    return compile(tree, path, "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class _Finder:
    """Finds modules of the package, and replaces the code of some.

    Args:
        code_of: takes the name and the source path of a module; returns replacement code, or None to load the module unchanged.
    """

    def __init__(self, code_of: Callable[[str, str], CodeType | None]) -> None:
        self.code_of = code_of

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "penstock":
            return None
        found = PathFinder.find_spec(name, path)
        if found is None or found.origin is None or not found.origin.endswith(".py"):
            return None
        code = self.code_of(name, found.origin)
        if code is None:
            return None
        return spec_from_file_location(
            name,
            loader=_Loader(name, found.origin, code),
            submodule_search_locations=found.submodule_search_locations,
        )
