"""The shim: the library with which Triton hosts Python in its process, compiled on the serving machine.

It uses only stable interfaces of CPython and Triton, without their headers: one build serves every Python from 3.11 and
every Triton from 2.51, so it is cached by its sources alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.core.compiling import CompilerError, NativeLibrary

SHIM = NativeLibrary("libtriton_penstock.so", "native", ("-std=c++17",))


def shim() -> Path:
    """Return the shim's path; compile it unless that was done before.

    Raises:
        CompilerError: there is no C++ compiler, it fails, or there is no folder for the library.
    """
    return SHIM.path()


def preloaded_shim(variables: Mapping[str, str], report: Callable[[str], object]) -> dict[str, str]:
    """Return the environment variable with which Triton refuses uploaded files, see ``native/uploads.cc``.

    Args:
        variables: the other environment variables.
        report: called with the reason if there is no library.
    """
    try:
        libraries = [str(shim()), *filter(None, [variables.get("LD_PRELOAD")])]
    except CompilerError as error:
        report(
            f"clients that load models can upload native libraries, which Triton runs; only uploaded Python is refused: {error}"
        )
        return {}
    return {"LD_PRELOAD": ":".join(libraries)}
