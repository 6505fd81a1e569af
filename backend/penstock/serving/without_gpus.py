"""Mirrors of repositories that ask for GPUs, for a Triton without any.

Triton rejects a model whose ``instance_group`` asks for a GPU if there is none. A mirror of the repository has the same
files, as links, and configurations that ask for the CPU instead; it follows the repository's changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

MIRRORS = "PENSTOCK_MIRRORS"
"""The environment variable that tells models their original repositories: JSON, a repository for each mirror."""

_CONFIG = "config.pbtxt"
_EVERY = 0.5
_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}\[\]<>:,;]|[^\s{}\[\]<>:,;"'\#]+|.""", re.DOTALL
)
_CLOSING = {"{": "}", "[": "]", "<": ">"}


class Mirrors:
    """Mirrors of repositories, updated in a thread until they are closed.

    Args:
        repositories: what to mirror.
        folder: for the mirrors.
    """

    def __init__(self, repositories: Sequence[Path], folder: Path) -> None:
        self._originals = {folder / str(number): path.absolute() for number, path in enumerate(repositories)}
        self._over = threading.Event()
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
        """Updates the mirrors."""
        for mirror, original in self._originals.items():
            _mirror(original, mirror)

    def close(self) -> None:
        """Stops updating; the mirrors stay."""
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(_EVERY):
            # A file that disappears meanwhile is gone in the next update as well.
            with contextlib.suppress(OSError):
                self.refresh()


def original_of(path: Path, environment: Mapping[str, str] | None = None) -> Path:
    """The path in its repository, if it is in a mirror."""
    text = (os.environ if environment is None else environment).get(MIRRORS)
    for mirror, repository in json.loads(text).items() if text else ():
        if path.is_relative_to(mirror):
            return Path(repository) / path.relative_to(mirror)
    return path


def request_cpu(config: str) -> str:
    """A model's configuration (in protobuf's text format) in which no instance group asks for a GPU.

    >>> request_cpu("instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]")
    'instance_group [ { count: 2 kind: KIND_CPU } ]'
    """
    tokens = _TOKEN.findall(config)
    kept: list[str] = []
    opened: list[tuple[str, str]] = []
    field, position = "", 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        in_group = bool(opened) and opened[-1][0] != "[" and {name for _, name in opened} == {"instance_group"}
        if token in _CLOSING:
            # Items of a list belong to the list's field.
            opened.append((token, opened[-1][1] if opened and opened[-1][0] == "[" else field))
        elif token in _CLOSING.values():
            del opened[-1:]
        elif _is_word(token):
            if in_group and token == "gpus":
                position = _skip_value(tokens, position)
                continue
            if in_group and field == "kind" and token in ("KIND_GPU", "1"):
                token = "KIND_CPU"
            field = token
        kept.append(token)
    return "".join(kept)


def _is_word(token: str) -> bool:
    return not token.isspace() and token[0] not in "#:,;"


def _skip_value(tokens: Sequence[str], position: int) -> int:
    """The position after a field's value and its separator."""
    depth = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        depth += (token in _CLOSING) - (token in _CLOSING.values())
        if depth == 0 and (token in _CLOSING.values() or _is_word(token)):
            break
    while position < len(tokens) and (tokens[position].isspace() or tokens[position] in ",;"):
        position += 1
    return position


def _mirror(original: Path, mirror: Path) -> None:
    """Makes a folder mirror another: folders, links to files, and amended configurations of models."""
    mirror.mkdir(parents=True, exist_ok=True)
    wanted = dict(_entries(original))
    for path in list(mirror.rglob("*")):
        name = path.relative_to(mirror)
        if name not in wanted or wanted[name].is_dir() != (path.is_dir() and not path.is_symlink()):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for name, source in wanted.items():
        target = mirror / name
        if source.is_dir():
            target.mkdir(exist_ok=True)
        elif name.name == _CONFIG and len(name.parts) == 2:
            _amend(source, target)
        elif not target.is_symlink():
            target.symlink_to(source)


def _entries(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The contents of a folder, recursively, each with its path in it; folders before their contents."""
    for top, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in folders + files:
            path = Path(top) / name
            yield path.relative_to(folder), path


def _amend(source: Path, target: Path) -> None:
    """Writes the amended configuration, unless it exists already."""
    text = request_cpu(source.read_text())
    if not target.is_file() or target.read_text() != text:
        beside = target.with_suffix(".new")
        beside.write_text(text)
        beside.replace(target)
