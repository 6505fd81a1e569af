"""Gives a Python that is started with ``PENSTOCK_MUTANT`` one module with a change; see ``mutation.py``.

Being on ``PYTHONPATH``, it also reaches the processes that tests start.
"""

from __future__ import annotations

import ast
import builtins
import functools
import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from mutants import REACHED, mutate


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_bytes())
        return compile(mutate(tree, _MUTANT["function"], _MUTANT["number"]), self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the mutated module."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _MUTANT["module"]:
            return None
        found = PathFinder.find_spec(name, path)
        assert found is not None
        assert found.origin is not None
        return spec_from_file_location(
            name, loader=_Loader(name, found.origin), submodule_search_locations=found.submodule_search_locations
        )


@functools.cache
def _note_reached() -> None:
    Path(_MUTANT["reached"]).touch()


if "PENSTOCK_MUTANT" in os.environ:
    _MUTANT = json.loads(os.environ["PENSTOCK_MUTANT"])
    setattr(builtins, REACHED, _note_reached)
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
