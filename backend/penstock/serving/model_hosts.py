"""Where models run: in Triton's process, or each instance in a separate process, Triton's Python stub."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.serving.config_text import tokens_of
from penstock.serving.control import ServerError
from penstock.serving.environment import Environment, describe, find_environment, installed_triton
from penstock.serving.installation import Installation, find_installation
from penstock.serving.shim import shim

MODEL_HOSTS = ("native", "stub")
"""Triton's process, and its Python stub."""

MODEL_HOST_VARIABLE = "PENSTOCK_BACKEND"
"""The environment variable that selects the default."""

# By default, glibc's malloc retains memory that many threads have freed, each in a separate arena, and raises the size
# from which memory returns to the system to that of the largest block seen. If models run inside the server, the
# tensors of answers are allocated there, too: up to 32 MiB, the most that malloc allows, they come from retained
# memory, whose pages need not be cleared again. Up to 128 MiB of free memory, enough for the answers of several batches, are not returned
# to the system. OpenBLAS gets a single thread, as operators have threads of their own: a server that was loading a model once hung while
# numpy inverted a
# matrix of 3 x 3, because OpenBLAS waited for its threads.
DEFAULT_VARIABLES = {
    "stub": {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": str(128 << 10)},
    "native": {
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
        "OPENBLAS_NUM_THREADS": "1",
    },
}


class ModelHost(NamedTuple):
    """A host of models, one of :data:`MODEL_HOSTS`, with the environment and the Triton that it needs."""

    name: str
    environment: Environment
    installation: Installation


def find_host(
    name: str | None, environment: Environment | str | Path | None, report: Callable[[str], object]
) -> ModelHost:
    """Return the requested host of models, or the first that works.

    Args:
        name: the host's name; None: any.
        environment: the environment to serve from, or its folder; None: to be found.
        report: called with the reason if models run elsewhere than in Triton's process.

    Raises:
        PenstockError: there is no environment, no Triton, or no library to host models with.
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
        # An installed Triton's stub only works with the machine's Python, but hosting works with any.
        environment = describe(requested or (sys.executable if native else shutil.which("python3") or "python3"))
        if native and not environment.has_library():
            raise ServerError(
                f"'{environment.python}' has no shared library ({environment.library}) that Triton could load"
            )
    return ModelHost(name, environment, find_installation(environment, native))


def host_variables(name: str, environment: Environment) -> dict[str, str]:
    """Return the environment variables of a server that uses an environment's Python."""
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
    """Return a host in Triton's process that can also start the stub, for isolated models: its environment has a NumPy that
    exchanges data with the stub.

    Raises:
        ServerError: there is no such environment.
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
    """Return warnings about plain Python models, which always run in the stub, if that cannot exchange their byte
    strings.
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
