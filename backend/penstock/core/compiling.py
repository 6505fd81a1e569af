"""Libraries in C++ that ship in the package, or are compiled from its sources on the machine where they are used."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError

_FLAGS = ("-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wl,-z,nodelete")
_COMPILERS = ("c++", "g++", "clang++")
_PACKAGE = Path(__file__).parents[1]


class CompilerError(PenstockError):
    """A library is missing and cannot be built; the message has the reason and the remedy."""


@dataclass(frozen=True)
class NativeLibrary:
    """A library of ours.

    Attributes:
        name: of its file.
        folder: of its sources, in ``backend`` of a checkout, or in ``native`` of an installed package.
        flags: for the compiler.
    """

    name: str
    folder: str
    flags: tuple[str, ...]

    def path(self) -> Path:
        """The library: the one in the package, otherwise the one compiled from its sources, now or earlier.

        Raises:
            CompilerError: there is no C++ compiler, or it fails.
        """
        library = self._place()
        if not library.is_file():
            self._compile(library)
        return library

    def is_built(self) -> bool:
        """Whether it is already compiled."""
        return self._place().is_file()

    def compile_to(self, folder: Path) -> None:
        """Compiles it into a folder, where :meth:`path` finds it if that is ``native`` in the package.

        Raises:
            CompilerError: there is no C++ compiler, or it fails.
        """
        self._compile(folder / self.name)

    def sources(self) -> list[Path]:
        """Its sources and headers: in the package, otherwise in the checkout."""
        for folder in (_PACKAGE / "native" / self.folder, _PACKAGE.parent / self.folder):
            found = sorted(path for path in folder.glob("*") if path.suffix in (".h", ".cc"))
            if found:
                return found
        raise CompilerError(f"this penstock was installed without the sources of {self.name}")

    def _place(self) -> Path:
        """Where it is: in the package if it ships there, otherwise in the cache."""
        shipped = _PACKAGE / "native" / self.name
        return shipped if shipped.is_file() else _cache() / self._fingerprint() / self.name

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.flags, _FLAGS, platform.machine())).encode())
        for path in self.sources():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]

    def _compile(self, library: Path) -> None:
        compiler = _compiler()
        library.parent.mkdir(parents=True, exist_ok=True)
        # Replaced atomically, so that concurrent builds don't see each other's partial file.
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder) / self.name
            files = [str(path) for path in self.sources() if path.suffix == ".cc"]
            command = [*compiler, *self.flags, *_FLAGS, "-o", str(made), *files, "-ldl"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            except (OSError, subprocess.SubprocessError) as error:
                raise CompilerError(f"`{' '.join(compiler)}` does not work: {error}") from error
            if done.returncode:
                raise CompilerError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
            made.replace(library)


def has_compiler() -> bool:
    """Whether there is a C++ compiler on this machine, or in this environment."""
    try:
        _compiler()
    except CompilerError:
        return False
    return True


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "native"


def _compiler() -> list[str]:
    """The command of a C++ compiler: the machine's, or the one in the wheel ``ziglang``."""
    named = os.environ.get("CXX")
    if named:
        return named.split()
    for name in _COMPILERS:
        if shutil.which(name):
            return [name]
    probe = [sys.executable, "-m", "ziglang"]
    if subprocess.run([*probe, "version"], capture_output=True, check=False).returncode == 0:
        return [*probe, "c++"]
    raise CompilerError("there is no C++ compiler: install g++ or clang, or `pip install ziglang`")
