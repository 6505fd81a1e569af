"""The module ``nvidia.dali.plugin_manager``: DALI's compiled plugins, which Penstock cannot use."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn


def load_library(library_path: str, global_symbols: bool = False) -> NoReturn:
    """Raise RuntimeError: operators compiled for DALI need DALI."""
    if not isinstance(library_path, str):
        raise TypeError(f"The path of a library must be a string, got {library_path!r}")
    raise RuntimeError(
        f"Failed to load library {library_path}: operators compiled for DALI cannot be loaded by Penstock. "
        "Write them as a class, see `penstock.schema.register_operator`."
    )


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> None:
    """Raise RuntimeError if a subfolder contains a plugin; otherwise do nothing."""
    for library in sorted(Path(plugin_dir_path).glob("*/libdali_*.so")):
        load_library(str(library), global_symbols)
