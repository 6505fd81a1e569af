"""Which models of a repository have changed, for servers in the mode "poll"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_Fingerprint = frozenset[tuple[str, int, int]]


@dataclass(frozen=True)
class Changes:
    """What happened to the models of the repositories since the last look.

    Attributes:
        edited: those that are new or have other files.
        removed: those whose folders are gone.
    """

    edited: list[str]
    removed: list[str]


class Repositories:
    """The folders of models, looked at again and again.

    Args:
        folders: the repositories.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = list(folders)
        self._seen = self._look()

    def changes(self) -> Changes:
        """What has changed since the last call, or since the start."""
        before, self._seen = self._seen, self._look()
        edited = [name for name, files in self._seen.items() if before.get(name) != files]
        return Changes(sorted(edited), sorted(before.keys() - self._seen.keys()))

    def _look(self) -> dict[str, _Fingerprint]:
        return {
            model.name: _fingerprint(model)
            for folder in self._folders
            if folder.is_dir()
            for model in folder.iterdir()
            if model.is_dir() and not model.name.startswith(".")
        }


def _fingerprint(model: Path) -> _Fingerprint:
    files = set()
    for folder, folders, names in os.walk(model):
        # Written by Python when a model is loaded, which is no change of the model.
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths = [os.path.join(folder, name) for name in names + folders]
        for path in paths:
            if os.path.isdir(path) and not os.path.islink(path):
                continue
            try:
                stat = os.stat(path)
            except OSError:
                continue
            files.add((path, stat.st_mtime_ns, stat.st_size))
    return frozenset(files)
