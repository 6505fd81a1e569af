"""The serving environment: the Python installation in which models in Triton run.

Triton hosts this Python in its own process. Any environment with a shared Python library, penstock and Triton works; by
default, it is the environment of the command ``penstock``.

If models run in Triton's Python stub instead, the stub uses the environment whose ``bin`` comes first on ``PATH``. The stub
in the ``nvidia-pytriton`` wheel was built before numpy 2 and exchanges wrong data with it, so that environment must have
numpy 1.26.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.compiling import has_compiler
from penstock.distribution import DISTRIBUTION, described_pythons, supports
from penstock.errors import PenstockError
from penstock.private_folders import users_cache
from penstock.serving.shim import SHIM, shim

VARIABLE = "PENSTOCK_SERVE_ENV"
"""The environment variable with the path of the serving environment's folder, or of its interpreter."""

OLD_NUMPY = ((3, 11), (3, 12))
"""The versions of Python for which numpy 1.26 has wheels; for others, it is built from source with a C compiler."""

STUBS = (*OLD_NUMPY, (3, 13))
"""The versions of Python for which the nvidia-pytriton wheel has a stub."""

Report = Callable[[str], None]


class ServingEnvironmentError(PenstockError):
    """Raised if there is no usable serving environment; the message says what to do."""


@dataclass(frozen=True)
class Environment:
    """A Python environment, as described by its interpreter.

    Attributes:
        python: the path of the interpreter.
        version: the version of Python, e.g. ``(3, 11)``.
        packages: the folder ``site-packages``.
        libraries: the folder of ``libpythonX.Y.so.1.0``; None if the system's loader finds the library, or there is none.
        numpy: the version of numpy; None if it is not installed.
        penstock: the folder of the package ``penstock`` in this environment; None if it is not installed.
        triton: the program ``tritonserver`` of the wheel ``nvidia-pytriton``; None if the wheel is not installed.
        abi: ``"t"`` for a free-threaded Python, otherwise an empty string.
    """

    python: Path
    version: tuple[int, int]
    packages: Path
    libraries: Path | None
    numpy: str | None
    penstock: Path | None
    triton: Path | None
    abi: str = ""

    @property
    def programs(self) -> Path:
        """The folder of the environment's programs, which must come first on ``PATH``."""
        return self.python.parent

    @property
    def library(self) -> str:
        """The shared library of this Python: a path, or a name for the system's loader."""
        name = f"libpython{_dotted(self.version)}{self.abi}.so.1.0"
        return name if self.libraries is None else str(self.libraries / name)

    def has_library(self) -> bool:
        """Return whether this Python has a shared library, which Triton needs to host it."""
        if self.libraries is not None:
            return True
        try:
            ctypes.CDLL(self.library)
        except OSError:
            return False
        return True

    @property
    def exchanges_with_stub(self) -> bool:
        """Whether this environment's NumPy is compatible with the wheel's stub."""
        return self.numpy is not None and int(self.numpy.split(".")[0]) < 2

    def problems(self, native: bool = False) -> list[str]:
        """Return why models cannot be served from this environment with the wheel's Triton; an empty list if they can.

        Args:
            native: whether Triton hosts this Python itself, without the stub.
        """
        found = []
        if not supports(self.version):
            found.append(f"Python {_dotted(self.version)} is outside {described_pythons()}")
        elif not native and (self.version not in STUBS or self.abi):
            found.append(f"this Triton has no stub for Python {_dotted(self.version)}{self.abi}")
        if self.numpy is None:
            found.append("numpy is missing")
        elif not native and not self.exchanges_with_stub:
            found.append(f"numpy {self.numpy} exchanges wrong data with this Triton, which needs numpy 1.26")
        if self.penstock is None:
            found.append("penstock is missing")
        if self.triton is None:
            found.append("nvidia-pytriton is missing")
        if native and not self.has_library():
            found.append(f"its Python has no shared library ({self.library}) that Triton could load")
        return found


# Describes the environment of the interpreter that runs it. Must run in any environment, so it does not import penstock.
_DESCRIBE = """
import importlib.metadata, importlib.util, json, os, sys, sysconfig
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
def file_of(name, ending):
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(f.locate()) for f in files if str(f).endswith(ending)), None)
def folder_of(name):
    spec = importlib.util.find_spec(name)
    return os.path.dirname(spec.origin) if spec and spec.origin else None
abi = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
library = "libpython%d.%d%s.so.1.0" % (*sys.version_info[:2], abi)
folders = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib")]
print(json.dumps({
    "version": sys.version_info[:2],
    "packages": sysconfig.get_path("purelib"),
    "libraries": next((f for f in folders if os.path.isfile(os.path.join(f, library))), None),
    "numpy": version("numpy"),
    "penstock": folder_of("penstock"),
    "triton": file_of("nvidia-pytriton", "tritonserver/bin/tritonserver"),
    "abi": abi,
}))
"""


def describe(location: str | Path) -> Environment:
    """Return the environment in a folder, or the environment of an interpreter.

    Args:
        location: the path of the folder or the interpreter, e.g. ``.venv-serve`` or ``.venv-serve/bin/python``.

    Raises:
        ServingEnvironmentError: there is no working Python at this path.
    """
    location = Path(location).expanduser()
    python = location / "bin" / "python" if location.is_dir() else location
    # The link is not resolved: the interpreter of a virtual environment is a link, whose location identifies the environment.
    python = Path(os.path.abspath(python))
    if not python.exists():
        raise ServingEnvironmentError(f"there is no Python environment at '{location}' (no '{python}')")
    try:
        # Isolated (-I), because the stub ignores PYTHONPATH, too.
        output = subprocess.run(
            [str(python), "-I", "-c", _DESCRIBE], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        facts = json.loads(output)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        detail = getattr(error, "stderr", None) or str(error)
        raise ServingEnvironmentError(f"'{python}' does not work: {detail.strip().splitlines()[-1]}") from error
    return Environment(
        python=python,
        version=(facts["version"][0], facts["version"][1]),
        packages=Path(facts["packages"]),
        libraries=_path(facts["libraries"]),
        numpy=facts["numpy"],
        penstock=_path(facts["penstock"]),
        triton=_path(facts["triton"]),
        abi=facts["abi"],
    )


def find_environment(explicit: str | Path | None = None, native: bool = False) -> Environment:
    """Return the environment to serve from.

    Args:
        explicit: the path of the environment's folder or its interpreter, if the user has set one.
        native: whether Triton hosts Python itself, without the stub.

    Searched in this order: ``explicit``; the variable ``PENSTOCK_SERVE_ENV``; the current interpreter's environment;
    ``.venv-serve`` and ``.venv`` in the working folder; the environment that :func:`create_environment` makes in the cache.
    An unusable environment is an error if one of the first two names it; otherwise, it is skipped.

    Raises:
        ServingEnvironmentError: no environment is usable; the message says what each lacks and how to fix that.
    """
    named = explicit or os.environ.get(VARIABLE)
    if named:
        environment = describe(named)
        problems = environment.problems(native)
        if problems:
            raise ServingEnvironmentError(
                f"cannot serve from '{named}': {'; '.join(problems)}.\n{remedy(native, Path(named))}"
            )
        return environment
    refusals = []
    for location in (sys.executable, ".venv-serve", ".venv", default_folder()):
        try:
            environment = describe(location)
        except ServingEnvironmentError:
            continue
        problems = environment.problems(native)
        if not problems:
            return environment
        refusals.append(f"  {location}: {'; '.join(problems)}")
    raise ServingEnvironmentError(
        "there is no environment to serve from:\n" + "\n".join(refusals) + f"\n{remedy(native)}"
    )


def remedy(native: bool, folder: Path | None = None) -> str:
    """Return instructions for making a serving environment; ``native``: for hosting Python in Triton, rather than for the stub."""
    where = f" --stub {folder}" if folder else "" if native else " --stub"
    return f"Make one with `penstock setup{where}`, or name one with --python-env or {VARIABLE}."


def default_folder() -> Path:
    """Return the default folder for a new serving environment."""
    return users_cache("serve") or Path(tempfile.gettempdir()) / "penstock-serve"


def complete_environment(report: Report = print) -> Environment:
    """Install what the current environment lacks for serving natively: Triton, and a compiler if there is none.

    Raises:
        ServingEnvironmentError: this Python cannot be hosted, or a package could not be installed.
        CompilerError: the library that hosts Python cannot be built.
    """
    if describe(sys.executable).triton is None and not installed_triton():
        _install_triton(Path(sys.prefix), report)
    if not SHIM.is_built() and not has_compiler():
        report("installing a C++ compiler (the ziglang wheel)")
        _install(Path(sys.prefix), ["ziglang"])
    environment = describe(sys.executable)
    if not environment.has_library():
        raise ServingEnvironmentError(
            f"'{environment.python}' has no shared library ({environment.library}) that Triton could load. Install the package "
            f"{environment.library.split('.so')[0].rpartition('/')[2]}, use a Python that has it, or make an environment for "
            "Triton's Python stub with `penstock setup --stub`"
        )
    shim()
    _warm(environment, report)
    return environment


def create_environment(
    folder: str | Path,
    python: str | Path | None = None,
    gpu: bool | None = None,
    packages: Sequence[str] = (),
    report: Report = print,
) -> Environment:
    """Make (or complete) an environment for the stub: penstock, numpy 1.26, and Triton from the ``nvidia-pytriton``
    wheel.

    Args:
        folder: the folder of the virtual environment.
        python: the interpreter to use; by default the most suitable one on this machine.
        gpu: whether to include the packages for NVIDIA GPUs; by default if there is a GPU.
        packages: further requirements for pip, e.g. ``onnxruntime``.
        report: called with a line of text for each step.

    Raises:
        ServingEnvironmentError: there is no suitable interpreter, or a package could not be installed.
    """
    folder = Path(folder).expanduser().absolute()
    if not (folder / "bin" / "python").exists():
        base = describe(python) if python else suitable_python(report)
        if base.version not in STUBS:
            raise ServingEnvironmentError(
                f"'{base.python}' is Python {_dotted(base.version)}, for which Triton has no stub"
            )
        report(f"making '{folder}' with Python {_dotted(base.version)} ({base.python})")
        _run([str(base.python), "-m", "venv", "--without-pip", str(folder)])
    version = describe(folder).version
    if version not in OLD_NUMPY:
        report("building numpy 1.26 from source, as there is no wheel for this Python (takes some minutes)")
    extras = ["server", "image", "audio", "video"] + (["gpu"] if (gpu if gpu is not None else count_gpus() > 0) else [])
    report(f"installing penstock [{', '.join(extras)}] and numpy 1.26")
    _install(folder, [*_penstock_requirement(extras), "numpy>=1.26,<2", *packages])
    _install_triton(folder, report)
    environment = describe(folder)
    _refuse_problems(environment, native=False)
    _warm(environment, report)
    return environment


def _install_triton(folder: Path, report: Report) -> None:
    report("installing Triton (the nvidia-pytriton wheel)")
    # Without its requirements: these are another NumPy, and libraries for its Python interface only.
    _install(folder, ["--no-deps", "nvidia-pytriton>=0.7,<0.8"])


def _refuse_problems(environment: Environment, native: bool) -> None:
    problems = environment.problems(native)
    if problems:
        raise ServingEnvironmentError(f"'{environment.python}' cannot be used: {'; '.join(problems)}")


def _warm(environment: Environment, report: Report) -> None:
    report("compiling the kernels that most images need")
    _run([str(environment.python), "-m", "penstock.serving.warming"])


def suitable_python(report: Report = print) -> Environment:
    """Return the environment of the most suitable interpreter on this machine for the stub.

    The order of preference: the current interpreter, if numpy 1.26 has a wheel for it; the newest other such interpreter on ``PATH``
    or in the usual locations; one that ``uv`` can download; the current one, for which numpy 1.26 is built from source.

    Raises:
        ServingEnvironmentError: there is no suitable Python.
    """
    seen: list[Environment] = []
    for candidate in _interpreters():
        try:
            environment = describe(candidate)
        except ServingEnvironmentError:
            continue
        seen.append(environment)
        if environment.version in OLD_NUMPY and environment.has_library():
            return environment
    fetched = _fetch_with_uv(report)
    if fetched is not None:
        return fetched
    if shutil.which("cc") or shutil.which("gcc"):
        for environment in seen:
            if environment.version in STUBS:
                return environment
    listed = ", ".join(f"{e.python} ({_dotted(e.version)})" for e in seen) or "none"
    raise ServingEnvironmentError(
        f"Triton's Python stub needs Python {_listed(OLD_NUMPY)} with its shared library (libpythonX.Y.so.1.0), or Python "
        f"{_dotted(STUBS[-1])} with a C compiler. Seen here: {listed}. Install one (for example the packages python3.12-venv and libpython3.12, or "
        "`pip install uv && uv python install 3.12`) and try again."
    )


def installed_triton() -> bool:
    """Return whether Triton is installed on this machine, as in NVIDIA's images; if so, it is used rather than the wheel."""
    return shutil.which("tritonserver") is not None or Path("/opt/tritonserver/bin/tritonserver").is_file()


def count_gpus() -> int:
    """Return the number of NVIDIA GPUs; 0 if there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def _interpreters() -> Iterator[Path]:
    """Yield paths at which this machine may have Python interpreters, the most likely first."""
    yield Path(sys.executable)
    for version in reversed(OLD_NUMPY):
        name = f"python{_dotted(version)}"
        folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
        yield from (folder / name for folder in [*folders, Path("/usr/bin"), Path("/usr/local/bin")])
        home = Path.home()
        pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
        yield from sorted(pyenv.glob(f"{_dotted(version)}.*/bin/python"), reverse=True)
        yield from sorted(
            (home / ".local/share/uv/python").glob(f"cpython-{_dotted(version)}.*/bin/python3"), reverse=True
        )


def _fetch_with_uv(report: Report) -> Environment | None:
    """Return the environment of a Python 3.12 that ``uv`` has installed or downloads; None without ``uv``."""
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if uv is None:
        return None
    report("fetching Python 3.12 with uv")
    try:
        subprocess.run([uv, "python", "install", "3.12"], check=True, capture_output=True, text=True, timeout=600)
        found = subprocess.run(
            [uv, "python", "find", "--managed-python", "3.12"], check=True, capture_output=True, text=True, timeout=60
        )
        return describe(found.stdout.strip())
    except (OSError, subprocess.SubprocessError, ServingEnvironmentError) as error:
        detail = (getattr(error, "stderr", None) or str(error)).strip()
        report(f"uv could not: {detail.splitlines()[-1] if detail else error}")
        return None


def _penstock_requirement(extras: Sequence[str]) -> list[str]:
    """Return the pip requirement that installs this copy of penstock."""
    suffix = f"[{','.join(extras)}]"
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        return ["-e", f"{checkout}{suffix}"]
    origin = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    if origin is not None:
        return [f"{DISTRIBUTION}{suffix} @ {json.loads(origin)['url']}"]
    return [f"{DISTRIBUTION}{suffix}=={importlib.metadata.version(DISTRIBUTION)}"]


def _install(folder: Path, packages: Sequence[str]) -> None:
    """Install packages with the current environment's pip, so that the folder needs no pip."""
    _run([sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", *packages])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        tail = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-12:])
        raise ServingEnvironmentError(f"`{' '.join(command)}` failed:\n{tail}")


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _listed(versions: Sequence[tuple[int, int]]) -> str:
    return " or ".join(map(_dotted, versions))


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
