"""Mirrors of repositories, with amended configurations for Triton.

A mirror consists of links to the files in a repository, and of amended configurations; it is updated when the repository changes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

MIRRORS = "PENSTOCK_MIRRORS"
"""The environment variable from which models learn their original repositories: JSON, a map from mirrors to repositories."""

Amendment = Callable[[str], str]
"""A function that returns a model's configuration with changes."""

_CHECK_INTERVAL_SECONDS = 0.5


class Mirrors:
    """Mirrors of repositories, which a thread updates until they are closed.

    Args:
        repositories: the repositories to mirror.
        folder: the folder for the mirrors.
        amendments: the amendments to each configuration, applied in order.
    """

    def __init__(self, repositories: Sequence[Path], folder: Path, amendments: Sequence[Amendment]) -> None:
        self._amendments = tuple(amendments)
        self._originals = {folder / str(number): path.absolute() for number, path in enumerate(repositories)}
        self._stopped = threading.Event()
        self.refresh()
        self._thread = threading.Thread(target=self._follow, name="penstock-mirrors", daemon=True)
        self._thread.start()

    @property
    def folders(self) -> list[Path]:
        """The mirrors, in the order of the repositories."""
        return list(self._originals)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables from which models learn their original locations."""
        return {MIRRORS: json.dumps({str(mirror): str(path) for mirror, path in self._originals.items()})}

    def refresh(self) -> None:
        """Update the mirrors."""
        for mirror, original in self._originals.items():
            self._mirror(original, mirror)

    def close(self) -> None:
        """Stop updating the mirrors; they are not removed."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL_SECONDS):
            # If a file has disappeared or is half-written now, the next update will find it gone or
            # complete.
            with contextlib.suppress(OSError, ValueError):
                self.refresh()

    def _mirror(self, original: Path, mirror: Path) -> None:
        """Make ``mirror`` a mirror of ``original``: the same folders, links to the files, and amended configurations."""
        mirror.mkdir(parents=True, exist_ok=True)
        wanted = dict(_entries(original))
        for path in list(mirror.rglob("*")):
            name = path.relative_to(mirror)
            if name not in wanted or _is_mirrored(name, wanted[name]) != (path.is_dir() and not path.is_symlink()):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        for name, source in wanted.items():
            target = mirror / name
            if _is_mirrored(name, source):
                target.mkdir(exist_ok=True)
            elif _is_configuration(name):
                self._amend(source, target)
            elif not target.is_symlink():
                target.symlink_to(source)

    def _amend(self, source: Path, target: Path) -> None:
        """Write an amended configuration, unless it exists already."""
        text = functools.reduce(lambda config, amend: amend(config), self._amendments, source.read_text())
        if not target.is_file() or target.read_text() != text:
            beside = target.with_suffix(".new")
            beside.write_text(text)
            beside.replace(target)


def original_of(path: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Return the original of a path in a mirror; return any other path unchanged."""
    text = (os.environ if environment is None else environment).get(MIRRORS)
    for mirror, repository in json.loads(text).items() if text else ():
        if path.is_relative_to(mirror):
            return Path(repository) / path.relative_to(mirror)
    return path


def _entries(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield all files and folders in a repository, each with its path relative to the repository; folders before their contents."""
    for top, folders, files in os.walk(folder, onerror=_raise_shortage, followlinks=True):
        found = [
            (path.relative_to(folder), path)
            for name in folders + files
            if name != "__pycache__"
            for path in [Path(top) / name]
        ]
        yield from found
        folders[:] = [path.name for name, path in found if _is_mirrored(name, path)]


def _raise_shortage(error: OSError) -> None:
    """Raise an error of `os.walk`, such as a lack of descriptors, unless the folder then counts as empty."""
    if not isinstance(error, (PermissionError, FileNotFoundError, NotADirectoryError)):
        raise error


def _is_mirrored(name: Path, source: Path) -> bool:
    """Return whether an entry of a repository becomes a folder with links in the mirror, rather than a link.

    A link to a folder becomes a folder only if it is a model: inside a model, a link may lead anywhere, even to a parent folder.
    """
    return source.is_dir() and (not source.is_symlink() or len(name.parts) == 1)


def _is_configuration(path: Path) -> bool:
    """Return whether a path in a repository is a model's configuration, or an alternative one for ``--model-config-name``."""
    inside = path.parts[1:]
    return inside == ("config.pbtxt",) or (len(inside) == 2 and inside[0] == "configs" and path.suffix == ".pbtxt")
