"""Where models run: in Triton's process, or each instance in a separate process, Triton's Python stub."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.schema.libraries import ONNX_RUNTIME
from penstock.serving.config_text import tokens_of
from penstock.serving.control import ServerError
from penstock.serving.environment import Environment, describe, find_environment, installed_triton
from penstock.serving.installation import Installation, find_installation
from penstock.serving.shim import shim

MODEL_HOSTS = ("native", "stub")
"""The hosts of models: ``native``, which is Triton's process, and ``stub``, which is Triton's Python stub."""

MODEL_HOST_VARIABLE = "PENSTOCK_BACKEND"
"""The environment variable that selects the default host."""

# By default, glibc's malloc retains much freed memory: it has an arena for each thread, and once a large block has been freed, it no longer
# returns blocks of up to that size to the system. These settings limit both. If models run inside the server, malloc also allocates the
# tensors of answers: tensors of up to 32 MiB, the most that malloc allows, come from retained memory, whose pages need not be cleared
# again, and malloc retains up to 128 MiB of free memory, which is enough for the answers of several batches.
#
# OpenBLAS gets a single thread, because operators have their own threads: while loading a model, a server once hung when numpy inverted a
# matrix of 3 x 3, because OpenBLAS waited for its threads.
# ONNX Runtime's variables are also for Python models, which load it themselves.
DEFAULT_VARIABLES = {
    "stub": {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": str(128 << 10), **dict(ONNX_RUNTIME.variables)},
    "native": {
        **dict(ONNX_RUNTIME.variables),
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
        "OPENBLAS_NUM_THREADS": "1",
    },
}


class ModelHost(NamedTuple):
    """A host of models: its name, which is one of :data:`MODEL_HOSTS`, and the environment and the Triton that it needs."""

    name: str
    environment: Environment
    installation: Installation


def find_host(
    name: str | None, environment: Environment | str | Path | None, report: Callable[[str], object]
) -> ModelHost:
    """Return the requested host of models, or the first one that works.

    Args:
        name: the name of the requested host; None: any.
        environment: the serving environment, or its folder; None: search for one.
        report: called with the reason if models cannot run in Triton's process.

    Raises:
        PenstockError: there is no environment, no Triton, or no library for hosting Python.
    """
    if name is not None:
        return _host(name, environment)
    refusals: list[PenstockError] = []
    for each in MODEL_HOSTS:
        try:
            found = _host(each, environment)
            if each == "native":
                shim()
        except PenstockError as error:
            refusals.append(error)
            continue
        if refusals:
            report(f"models run by '{each}': {refusals[0]}")
        return found
    raise refusals[0]


def _host(name: str, requested: Environment | str | Path | None) -> ModelHost:
    native = name == "native"
    if isinstance(requested, Environment):
        environment = requested
    elif not installed_triton():
        environment = find_environment(requested, native)
    else:
        # The stub of an installed Triton only works with the machine's Python; hosting works with any Python.
        environment = describe(requested or (sys.executable if native else shutil.which("python3") or "python3"))
        if native and not environment.has_library():
            raise ServerError(
                f"'{environment.python}' has no shared library ({environment.library}) that Triton could load"
            )
    return ModelHost(name, environment, find_installation(environment, native))


def host_variables(name: str, environment: Environment) -> dict[str, str]:
    """Return the environment variables of a server whose models use the Python of an environment."""
    variables = DEFAULT_VARIABLES[name] | dict(os.environ)
    for inherited in ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__", "PYENV_VERSION"):
        variables.pop(inherited, None)
    variables["PATH"] = os.pathsep.join([str(environment.programs), variables.get("PATH", os.defpath)])
    variables["VIRTUAL_ENV"] = str(environment.programs.parent)
    if environment.libraries is not None:
        known = [variables["LD_LIBRARY_PATH"]] if variables.get("LD_LIBRARY_PATH") else []
        variables["LD_LIBRARY_PATH"] = os.pathsep.join([str(environment.libraries), *known])
    return variables


def with_stub(host: ModelHost, isolated: list[str]) -> ModelHost:
    """Return a host in Triton's process that can also start the stub for isolated models, because its environment has a NumPy that
    can exchange data with the stub.

    Raises:
        ServerError: there is no suitable environment.
    """
    environment = host.environment
    try:
        if host.installation.from_wheel and not environment.exchanges_with_stub:
            environment = find_environment()
        return ModelHost(host.name, environment, host.installation.with_stub_for(environment))
    except PenstockError as error:
        raise ServerError(
            f"{', '.join(isolated)}: a separate process (isolation) needs Triton's Python stub, which cannot be started: {error}"
        ) from error


def strings_in_stub(host: ModelHost, repositories: list[Path]) -> Iterator[str]:
    """Yield a warning for each plain Python model that uses strings, if the stub cannot exchange byte strings: plain models always
    run in the stub.
    """
    if not host.installation.from_wheel or host.environment.exchanges_with_stub:
        return
    for repository in repositories:
        for config in sorted(repository.glob("*/config.pbtxt")):
            if any(config.parent.glob("*/model.py")) and "TYPE_STRING" in tokens_of(config.read_text(errors="replace")):
                yield (
                    f"{config.parent.name}: with numpy {host.environment.numpy}, models in this Triton's Python stub cannot exchange byte "
                    "strings (TYPE_STRING): serve from an environment with numpy 1.26 (`penstock setup --stub`)"
                )
