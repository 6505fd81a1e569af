"""The shim: the library with which Triton hosts Python in its process, compiled on the serving machine.

The shim uses only stable interfaces of CPython and Triton, without their headers: one build works with each Python from 3.11 on and
each Triton from 2.51 on. So the build is cached by the shim's sources alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.core.compiling import CompilerError, NativeLibrary

SHIM = NativeLibrary("libtriton_penstock.so", "native", ("-std=c++17",))


def shim() -> Path:
    """Return the path of the shim; compile it if necessary.

    Raises:
        CompilerError: there is no C++ compiler, the compiler fails, or there is no folder for the library.
    """
    return SHIM.path()


def preloaded_shim(variables: Mapping[str, str], report: Callable[[str], object]) -> dict[str, str]:
    """Return the environment variable that makes Triton refuse uploaded files; see ``native/uploads.cc``.

    Args:
        variables: the other environment variables.
        report: called with the reason if the shim cannot be compiled.
    """
    try:
        libraries = [str(shim()), *filter(None, [variables.get("LD_PRELOAD")])]
    except CompilerError as error:
        report(
            f"clients that load models can upload native libraries, which Triton runs; only uploaded Python is refused: {error}"
        )
        return {}
    return {"LD_PRELOAD": ":".join(libraries)}
