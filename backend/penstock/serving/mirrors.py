"""Mirrors of repositories, with amended configurations for Triton.

A mirror has the same files as its repository, as links, and amended configurations; it follows the repository's changes.
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
"""The environment variable that tells models their original repositories: JSON, from mirror to repository."""

Amendment = Callable[[str], str]
"""Amends a model's configuration."""

_CHECK_INTERVAL_SECONDS = 0.5


class Mirrors:
    """Mirrors of repositories, updated in a thread until they are closed.

    Args:
        repositories: the repositories to mirror.
        folder: the folder for the mirrors.
        amendments: applied in order to each configuration.
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
        """The environment variables that tell models their original locations."""
        return {MIRRORS: json.dumps({str(mirror): str(path) for mirror, path in self._originals.items()})}

    def refresh(self) -> None:
        """Update the mirrors."""
        for mirror, original in self._originals.items():
            self._mirror(original, mirror)

    def close(self) -> None:
        """Stop updating; the mirrors stay."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL_SECONDS):
            # A file that disappears in the meantime is gone in the next update as well; one that is half-written is
            # complete then.
            with contextlib.suppress(OSError, ValueError):
                self.refresh()

    def _mirror(self, original: Path, mirror: Path) -> None:
        """Make a folder mirror another: folders, links to files, and amended configurations of models."""
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
        """Write the amended configuration, unless it exists already."""
        text = functools.reduce(lambda config, amend: amend(config), self._amendments, source.read_text())
        if not target.is_file() or target.read_text() != text:
            beside = target.with_suffix(".new")
            beside.write_text(text)
            beside.replace(target)


def original_of(path: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Return the original path of a path in a mirror; any other path unchanged."""
    text = (os.environ if environment is None else environment).get(MIRRORS)
    for mirror, repository in json.loads(text).items() if text else ():
        if path.is_relative_to(mirror):
            return Path(repository) / path.relative_to(mirror)
    return path


def _entries(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the contents of a repository, recursively, each with its path in it; folders before their contents."""
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
    """Raise errors that do not mean an empty folder, such as a lack of descriptors."""
    if not isinstance(error, (PermissionError, FileNotFoundError, NotADirectoryError)):
        raise error


def _is_mirrored(name: Path, source: Path) -> bool:
    """Return whether a path in a repository becomes a folder with links, rather than a link.

    A folder that is a link does only if it is a model: inside a model, a link may lead anywhere, even back to a folder around it.
    """
    return source.is_dir() and (not source.is_symlink() or len(name.parts) == 1)


def _is_configuration(path: Path) -> bool:
    """Return whether a path in a repository is a model's configuration, or an alternative one for ``--model-config-name``."""
    inside = path.parts[1:]
    return inside == ("config.pbtxt",) or (len(inside) == 2 and inside[0] == "configs" and path.suffix == ".pbtxt")
