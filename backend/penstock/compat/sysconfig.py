"""The module ``nvidia.dali.sysconfig``: flags for compiling DALI's plugins in C++.

Build scripts that request these flags run, but Penstock has no C++ interface: its folders contain none of DALI's headers or
libraries, and plugins cannot be loaded (:mod:`penstock.compat.plugin_manager`). Operators are classes in Python, see
:func:`penstock.schema.register_operator`.
"""

from __future__ import annotations

from pathlib import Path

import penstock
from penstock.compat.backend import GetCxx11AbiFlag

__all__ = ["get_compile_flags", "get_include_dir", "get_include_flags", "get_lib_dir", "get_link_flags"]

_FOLDER = str(Path(penstock.__file__).parent)


def get_include_dir() -> str:
    """Return the package's folder."""
    return _FOLDER


def get_lib_dir() -> str:
    """Return the package's folder."""
    return _FOLDER


def get_include_flags() -> list[str]:
    """Return the compiler flags for :func:`get_include_dir`."""
    return [f"-I{get_include_dir()}"]


def get_compile_flags() -> list[str]:
    """Return the flags for the compiler."""
    return [*get_include_flags(), f"-D_GLIBCXX_USE_CXX11_ABI={GetCxx11AbiFlag()}"]


def get_link_flags() -> list[str]:
    """Return the flags for the linker."""
    return [f"-L{get_lib_dir()}", "-ldali"]
