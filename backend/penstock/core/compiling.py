"""C++ libraries that ship with the package, or are compiled from their sources on the machine on which they are used."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError
from penstock.private_folders import existing_private_folder, private_folder, users_cache

_FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden", "-pthread")
_LINKER_FLAGS = ("-shared", "-Wl,-z,nodelete", "-ldl")
_MAX_COMPILER_SECONDS = 1800
"""The time after which a run of the compiler has failed. ziglang's first run also compiles the C++ library: with the core, it took 139 s on an
idle machine.
"""
_COMPILERS = ("c++", "g++", "clang++")
_ZIG = (sys.executable, "-m", "ziglang")
GLIBC_OF_WHEELS = "2.28"
"""The oldest glibc that wheels support: wheels are for manylinux_2_28, like NumPy's."""
_PACKAGE = Path(__file__).parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_IS_CHECKOUT = (_CHECKOUT / "pyproject.toml").is_file()


class CompilerError(PenstockError):
    """A library is missing and cannot be built; the message states the reason and the remedy."""


@dataclass(frozen=True)
class NativeLibrary:
    """One of Penstock's C++ libraries.

    Attributes:
        name: the name of the library's file.
        folder: the name of the sources' folder: in ``backend`` of a checkout, or in ``native`` of an installed package.
        flags: the compiler flags in addition to those for all libraries.
    """

    name: str
    folder: str
    flags: tuple[str, ...]

    def path(self) -> Path:
        """Return the path of the library in the package; if there is none, of one that is compiled from the sources, now if necessary.

        Raises:
            CompilerError: there is no C++ compiler, or it fails; or there is no folder for the library.
        """
        return self._built() or self._build()

    def is_built(self) -> bool:
        """Return whether the library is already compiled."""
        return self._built() is not None

    def compile_to(self, folder: Path, command: Sequence[str] = ()) -> None:
        """Compile the library into a folder; :meth:`path` finds it there if the folder is ``native`` in an installed package.

        Args:
            folder: the folder for the library.
            command: a compiler's command; by default, the result of :func:`compiler`.

        Raises:
            CompilerError: there is no C++ compiler, or it fails.
        """
        with tempfile.TemporaryDirectory() as scratch:
            self._install(self._compile(Path(scratch), command or compiler()), folder)

    def folder_in_checkout(self) -> Path:
        """Return the folder into which an editable installation puts the library."""
        return _CHECKOUT / "build" / "native" / self._fingerprint()

    def sources(self) -> list[Path]:
        """Return the library's sources and headers: in the checkout if there is one, otherwise in the package."""
        for folder in (_PACKAGE.parent / self.folder, _PACKAGE / "native" / self.folder):
            found = sorted(path for path in folder.glob("*") if path.suffix in (".h", ".cc"))
            if found:
                return found
        raise CompilerError(f"this penstock was installed without the sources of {self.name}")

    def _built(self) -> Path | None:
        """Return the path of the compiled library in the package, in the checkout or in a cache; None if it is in none of them."""
        shipped = _PACKAGE / "native" / self.name
        if shipped.is_file():
            return shipped
        checkouts = [self.folder_in_checkout()] if _IS_CHECKOUT else []
        folders = itertools.chain(checkouts, self._caches(existing_private_folder))
        return next((folder / self.name for folder in folders if (folder / self.name).is_file()), None)

    def _build(self) -> Path:
        with tempfile.TemporaryDirectory() as scratch:
            made = self._compile(Path(scratch), compiler())
            refusals = []
            for folder in self._caches(private_folder):
                try:
                    return self._install(made, folder)
                except OSError as error:
                    refusals.append(f"'{folder}' ({error.strerror})")
        raise CompilerError(
            f"{self.name} cannot be saved in {' or '.join(refusals) or 'any folder'}: free space there, or set HOME"
        )

    def _caches(self, find_private: Callable[[str], Path | None]) -> Iterator[Path]:
        """Yield the folders that may contain the library: first in the user's cache, then in a private temporary folder."""
        for find in (users_cache, find_private):
            if (folder := find("native")) is not None:
                yield folder / self._fingerprint()

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.flags, _FLAGS, _LINKER_FLAGS, platform.machine())).encode())
        for path in self.sources():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]

    def _compile(self, folder: Path, command: Sequence[str]) -> Path:
        """Compile the library into a folder with a compiler's command, one file on each core; return the library's path."""
        sources = [path for path in self.sources() if path.suffix == ".cc"]
        objects, made = [folder / f"{path.stem}.o" for path in sources], folder / self.name
        flags = [*_FLAGS, *self.flags]

        def compile_file(source: Path, compiled: Path) -> None:
            _run(command, [*flags, "-c", "-o", str(compiled), str(source)])

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(compile_file, sources, objects))
        _run(command, [*flags, "-o", str(made), *map(str, objects), *_LINKER_FLAGS])
        return made

    def _install(self, library: Path, folder: Path) -> Path:
        """Move the library into a folder atomically, so that concurrent builds do not see each other's incomplete files."""
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            copy = shutil.copy(library, scratch)
            return Path(copy).replace(folder / self.name)


def _run(command: Sequence[str], arguments: Sequence[str]) -> None:
    """Run a compiler's command with arguments.

    Raises:
        CompilerError: the command cannot be started, takes too long, or fails.
    """
    whole = [*command, *arguments]
    try:
        done = subprocess.run(whole, capture_output=True, text=True, timeout=_MAX_COMPILER_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise CompilerError(f"`{' '.join(command)}` does not work: {error}") from error
    if done.returncode:
        raise CompilerError(f"`{' '.join(whole)}` failed:\n{done.stderr.strip()[-2000:]}")


def checkout() -> Path | None:
    """Return the folder of the checkout to which this package belongs; None if it is installed."""
    return _CHECKOUT if _IS_CHECKOUT else None


def has_compiler() -> bool:
    """Return whether there is a C++ compiler on this machine, or in this environment."""
    try:
        compiler()
    except CompilerError:
        return False
    return True


def compiler() -> list[str]:
    """Return the command of a C++ compiler: one that is installed on this machine, or the one in the wheel ``ziglang``.

    Raises:
        CompilerError: no compiler was found.
    """
    named = os.environ.get("CXX")
    if named:
        return named.split()
    for name in _COMPILERS:
        if shutil.which(name):
            return [name]
    if _has_zig():
        return [*_ZIG, "c++"]
    raise CompilerError("there is no C++ compiler: install g++ or clang, or `pip install ziglang`")


def compiler_for_wheels(architecture: str) -> list[str]:
    """Return the command of a C++ compiler with which to build a wheel, whose architecture need not be this machine's.

    Args:
        architecture: the wheel's architecture: ``x86_64`` or ``aarch64``.

    Raises:
        CompilerError: the wheel ``ziglang``, which contains the system libraries of both architectures, is not installed.
    """
    if not _has_zig():
        raise CompilerError("wheels are compiled by the compiler in the wheel ziglang: `pip install ziglang`")
    return [*_ZIG, "c++", "-target", f"{architecture}-linux-gnu.{GLIBC_OF_WHEELS}", "-Wl,-s"]


def _has_zig() -> bool:
    return subprocess.run([*_ZIG, "version"], capture_output=True, check=False).returncode == 0
