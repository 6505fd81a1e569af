"""Finds changed models in repositories, for servers in the mode "poll"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_Fingerprint = frozenset[tuple[str, int, int]]


@dataclass(frozen=True)
class Changes:
    """Changes to the models of the repositories.

    Attributes:
        edited: new models, and models with changed files.
        removed: models whose folders are gone.
        under_way: whether there are further changes, to files that may still be being written.
    """

    edited: list[str]
    removed: list[str]
    under_way: bool = False


class Repositories:
    """Repositories that are scanned repeatedly for changes.

    Args:
        folders: the repositories.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = list(folders)
        self._last = self._fingerprints()
        self._known = dict(self._last)

    def changes(self) -> Changes:
        """Scan the repositories, and return the changes since the last report. Changes that the previous scan did not find yet are
        reported later, as models may be half-written."""
        last, self._last = self._last, self._fingerprints()
        names = sorted(self._last.keys() | self._known.keys())
        changed = [name for name in names if self._last.get(name) != self._known.get(name)]
        settled = [name for name in changed if self._last.get(name) == last.get(name)]
        for name in settled:
            if name in self._last:
                self._known[name] = self._last[name]
            else:
                del self._known[name]
        return Changes(
            [name for name in settled if name in self._last],
            [name for name in settled if name not in self._last],
            len(settled) < len(changed),
        )

    def _fingerprints(self) -> dict[str, _Fingerprint]:
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
        # Python writes this folder when a model is loaded, so it is no change of the model.
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
