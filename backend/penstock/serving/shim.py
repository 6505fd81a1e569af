"""The shim: the library with which Triton hosts Python in its own process, compiled on the serving machine.

It uses only stable interfaces of CPython and Triton, without their headers: one build serves every Python from 3.10 and
every Triton from 2.51, so it is cached by its sources alone.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock.errors import PenstockError
from penstock.private_folders import private_folder, users_cache

_NAME = "libtriton_penstock.so"
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wl,-z,nodelete")
_COMPILERS = ("c++", "g++", "clang++")


class ShimError(PenstockError):
    """The shim is missing and cannot be built; the message has the reason and the remedy."""


def shim() -> Path:
    """The library: the one in the package, otherwise the one compiled from its sources, now or earlier.

    Raises:
        ShimError: there is no C++ compiler, it fails, or there is no folder for the library.
    """
    return _built() or _build()


def preloaded_shim(variables: Mapping[str, str], report: Callable[[str], object]) -> dict[str, str]:
    """The environment variable with which Triton refuses uploaded files, see ``native/uploads.cc``.

    Args:
        variables: the other environment variables.
        report: called with the reason if there is no library.
    """
    try:
        libraries = [str(shim()), *filter(None, [variables.get("LD_PRELOAD")])]
    except ShimError as error:
        report(
            f"clients that load models can upload native libraries, which Triton runs; only uploaded Python is refused: {error}"
        )
        return {}
    return {"LD_PRELOAD": ":".join(libraries)}


def is_built() -> bool:
    """Whether the library is already compiled."""
    return _built() is not None


def has_compiler() -> bool:
    """Whether there is a C++ compiler on this machine, or in this environment."""
    try:
        _compiler()
    except ShimError:
        return False
    return True


def compile_to(folder: Path) -> None:
    """Compiles the shim into a folder, where :func:`shim` finds it if that is ``native`` in the package.

    Raises:
        ShimError: there is no C++ compiler, or it fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        _install(_compile(_sources(), Path(scratch)), folder)


def _built() -> Path | None:
    """The library, if it exists: in the package if it ships there, otherwise in a cache."""
    folders = [Path(__file__).parents[1] / "native", *_caches()]
    return next((folder / _NAME for folder in folders if (folder / _NAME).is_file()), None)


def _build() -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        made = _compile(_sources(), Path(scratch))
        refusals = []
        for folder in _caches():
            try:
                return _install(made, folder)
            except OSError as error:
                refusals.append(f"'{folder}' ({error.strerror})")
    raise ShimError(
        f"the backend's library cannot be saved in {' or '.join(refusals) or 'any folder'}: free space there, or set HOME"
    )


def _caches() -> list[Path]:
    """Where the library may be: in the user's cache; in a temporary folder if that cannot be written."""
    folders = users_cache("native"), private_folder("native")
    return [folder / _fingerprint(_sources()) for folder in folders if folder is not None]


def _sources() -> list[Path]:
    """The shim's sources: in the package, otherwise in the checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "native", package.parent / "native"):
        found = sorted(path for path in folder.glob("*") if path.suffix in (".h", ".cc"))
        if found:
            return found
    raise ShimError("this penstock was installed without the sources of its backend library")


def _fingerprint(sources: Sequence[Path]) -> str:
    digest = hashlib.sha256(repr((_FLAGS, platform.machine())).encode())
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(sources: Sequence[Path], folder: Path) -> Path:
    """Compile the library into a folder."""
    made = folder / _NAME
    compiler = _compiler()
    command = [*compiler, *_FLAGS, "-o", str(made), *(str(path) for path in sources if path.suffix == ".cc"), "-ldl"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise ShimError(f"`{' '.join(compiler)}` does not work: {error}") from error
    if done.returncode:
        raise ShimError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
    return made


def _install(library: Path, folder: Path) -> Path:
    """Put the library into a folder at once, so that concurrent builds do not see each other's partial file."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        copy = shutil.copy(library, scratch)
        return Path(copy).replace(folder / _NAME)


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
    raise ShimError("there is no C++ compiler: install g++ or clang, or `pip install ziglang`")
