"""Finds the Triton on this machine, and prepares the backend directory with which it is started."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import PenstockError
from penstock.serving.environment import Environment
from penstock.serving.isolation import stub_backend
from penstock.serving.shim import shim

BACKEND = "penstock"
"""The backend's name in configurations."""

_STANDARD = Path("/opt/tritonserver")
_STUB = "triton_python_backend_stub"
_HELPERS = "triton_python_backend_utils.py"
_LIBRARY = "libtriton_python.so"
_EXCHANGE = "penstock_stub_exchange.py"
_HELPERS_PATCH = """

# Added by `penstock serve`: see penstock/serving/stub_exchange.py.
import penstock_stub_exchange

penstock_stub_exchange.mend()
"""

_PYTHON = "python.txt"  # the file name that the shim looks for


class InstallationError(PenstockError):
    """Raised if Triton or a part of it is missing or cannot be set up; the message says what to do."""


@dataclass(frozen=True)
class Installation:
    """An installation of Triton.

    Attributes:
        binary: the program ``tritonserver``.
        backends: the directory with Triton's backends.
        stub: the program that runs Python models, for the serving environment's version of Python.
        from_wheel: whether Triton comes from the ``nvidia-pytriton`` wheel, which only has the Python backend.
    """

    binary: Path
    backends: Path
    stub: Path
    from_wheel: bool

    @property
    def caches(self) -> Path | None:
        """The directory with implementations of response caches, if there is one."""
        folder = self.binary.parents[1] / "caches"
        return folder if folder.is_dir() else None

    def with_stub_for(self, environment: Environment) -> Installation:
        """Return the same installation with the stub for this environment.

        Raises:
            InstallationError: the installation has no usable stub.
        """
        return _checked(replace(self, stub=_stub_in(self.binary, environment)) if self.from_wheel else self)


@dataclass(frozen=True)
class Hosted:
    """The parts that Triton needs to host Python itself.

    Attributes:
        shim: our library that Triton loads, and that hosts Python.
        library: the shared library of Python: a path, or a name for the system's loader.
        python: the interpreter whose environment models use.
    """

    shim: Path
    library: str
    python: Path


def find_installation(environment: Environment | None, native: bool = False) -> Installation:
    """Return the Triton on ``PATH`` or in ``/opt/tritonserver``, or else the one in the serving environment's wheel.

    Args:
        environment: the serving environment; None if there is none.
        native: whether Triton hosts Python itself, without the stub.

    Raises:
        InstallationError: no Triton was found, or it cannot run Python backends.
    """
    on_path = shutil.which("tritonserver")
    for binary in (Path(on_path).resolve() if on_path else None, _STANDARD / "bin" / "tritonserver"):
        if binary is not None and binary.is_file() and binary != (environment and environment.triton):
            backends = binary.parent.parent / "backends"
            found = Installation(binary, backends, backends / "python" / _STUB, from_wheel=False)
            return found if native else _checked(found)
    if environment is None or environment.triton is None:
        raise InstallationError(
            "tritonserver was not found: not on PATH, not in /opt/tritonserver, and the serving environment has no "
            "nvidia-pytriton wheel. `penstock setup` makes an environment that has it."
        )
    triton = environment.triton
    found = Installation(triton, triton.parents[1] / "backends", _stub_in(triton, environment), from_wheel=True)
    return found if native else _checked(found)


def _stub_in(triton: Path, environment: Environment) -> Path:
    """Return the wheel's stub for the Python version of an environment."""
    version = f"{environment.version[0]}.{environment.version[1]}"
    return triton.parents[1] / "python_backend_stubs" / version / _STUB


def _checked(installation: Installation) -> Installation:
    for path in (installation.stub, installation.backends / "python" / _LIBRARY):
        if not path.is_file():
            raise InstallationError(f"'{installation.binary}' cannot run Python backends: there is no '{path}'")
    return installation


def check_stub(installation: Installation, environment: dict[str, str]) -> None:
    """Raise InstallationError if the stub would not start because a library is missing (Triton itself would hang).

    Args:
        installation: the installation of Triton.
        environment: the server's environment variables.
    """
    ldd = shutil.which("ldd")
    if ldd is None:
        return
    linked = subprocess.run([ldd, str(installation.stub)], capture_output=True, text=True, env=environment, check=False)
    missing = sorted({line.split()[0] for line in linked.stdout.splitlines() if "not found" in line})
    if missing:
        python = next((name for name in missing if name.startswith("libpython")), None)
        hint = f" Install the package {python.split('.so')[0]}, or use a Python that has it." if python else ""
        raise InstallationError(
            f"Triton's Python stub needs libraries that are missing here: {', '.join(missing)}.{hint}"
        )


def lay_out(
    installation: Installation, folder: Path, names: Sequence[str] = (BACKEND,), hosted: Hosted | None = None
) -> Path:
    """Prepare the backend directory with which to start Triton, with its Python backend and ours; return its path.

    For a Triton from a wheel, this is a new directory in ``folder``. An installed Triton has further backends, so our backend is
    copied into Triton's directory; Triton would reject a symbolic link there.

    Args:
        installation: the installation of Triton.
        folder: a folder for files that only this server uses.
        names: the names of our backend in models' configurations.
        hosted: what Triton needs to host Python; None: models run in the stub.

    Raises:
        InstallationError: the directory cannot be written, or contains another backend with one of the names.
    """
    target = folder / "backends" if installation.from_wheel else installation.backends
    try:
        if installation.from_wheel and installation.stub.is_file():
            _lay_out_python(installation, target / "python")
        for name in names:
            _lay_out_ours(target / name, hosted)
            if hosted is not None:
                _lay_out_ours(target / stub_backend(name), None)
    except OSError as error:
        raise InstallationError(
            f"the backend directory '{target}' cannot be written: {error.strerror}. "
            f"Make it writable, or put {names[0]}/model.py there yourself."
        ) from error
    return target


def install_backend(environment: Environment) -> Path | None:
    """Install our backend into this machine's Triton; return Triton's backend directory, or None if there is no Triton.

    Needed for servers that `penstock serve` does not start, and for users who cannot write to Triton's directory.

    Args:
        environment: the environment whose Python Triton hosts.

    Raises:
        InstallationError: the directory cannot be written, or contains another backend with our name.
        CompilerError: the library that hosts Python cannot be built.
    """
    installation = find_installation(environment, native=True)
    if installation.from_wheel:
        return None
    hosted = Hosted(shim(), environment.library, environment.python)
    return lay_out(installation, installation.backends, hosted=hosted)


def _lay_out_python(installation: Installation, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Copied, because Triton does not load a library through a link that leads out of the directory ...
    shutil.copyfile(installation.backends / "python" / _LIBRARY, folder / _LIBRARY)
    # ... and linked, because the stub finds its libraries relative to its real location.
    link = folder / installation.stub.name
    link.unlink(missing_ok=True)
    os.symlink(installation.stub, link)
    helpers = (installation.backends / "python" / _HELPERS).read_text(encoding="utf-8")
    _write(folder / _HELPERS, (helpers + _HELPERS_PATCH).encode())
    _write(folder / _EXCHANGE, (Path(__file__).parent / "stub_exchange.py").read_bytes())


def _lay_out_ours(folder: Path, hosted: Hosted | None) -> None:
    library, python = folder / f"libtriton_{folder.name}.so", folder / _PYTHON
    if library.exists() and not python.exists():
        # Triton prefers this library to our backend, and the user who put it there probably expects that.
        raise InstallationError(
            f"'{folder}' is another backend of that name: move it out of '{folder.parent}' for Penstock to take its place"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if hosted is None:
        # Remove the library that hosts Python: Triton would prefer it to the stub.
        library.unlink(missing_ok=True)
        python.unlink(missing_ok=True)
        entry = Path(__file__).parents[1] / "model.py"
        _write(folder / entry.name, entry.read_bytes())
    else:
        _write(python, f"{hosted.library}\n{hosted.python}\n".encode())
        _write(library, hosted.shim.read_bytes())


def _write(path: Path, content: bytes) -> None:
    """Write a file, unless it is up to date, because the folder may be read-only."""
    if not path.is_file() or path.read_bytes() != content:
        # Replaced atomically, because a running server may have mapped the old file.
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_bytes(content)
        beside.replace(path)
