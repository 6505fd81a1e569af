"""The module ``nvidia.dali.plugin_manager``: DALI's compiled plugins, which Penstock cannot use."""

from __future__ import annotations

from typing import NoReturn


def load_library(library_path: str, global_symbols: bool = False) -> NoReturn:
    """Raises RuntimeError: operators compiled for DALI need DALI."""
    raise RuntimeError(
        f"{library_path}: operators compiled for DALI cannot be loaded by Penstock. Write them as a class, "
        "see `penstock.schema.register_operator`."
    )


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> NoReturn:
    """Raises RuntimeError: operators compiled for DALI need DALI."""
    load_library(plugin_dir_path, global_symbols)
