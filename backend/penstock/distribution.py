"""The package's metadata: its name, the versions of Python that it runs on, and the libraries that are left out for new versions.

``requires-python`` in ``pyproject.toml`` is the only definition of the supported versions.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
import tomllib
from typing import Any

from penstock.core.compiling import checkout

DISTRIBUTION = "penstock-triton"
"""The name of this package on PyPI, where the name `penstock` belongs to another project."""


@functools.cache
def python_bounds() -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the oldest supported version of Python, and the first version that is too new."""
    return _parse_bounds(_requires_python())


def supports(version: tuple[int, int]) -> bool:
    """Return whether a version of Python is supported."""
    oldest, too_new = python_bounds()
    return oldest <= version < too_new


def described_pythons() -> str:
    """Return the supported versions of Python, for messages: e.g. ``3.11 to 3.15``."""
    oldest, too_new = python_bounds()
    return f"{oldest[0]}.{oldest[1]} to {too_new[0]}.{too_new[1] - 1}"


def first_python_without(package: str) -> str | None:
    """Return the first version of Python for which our requirements leave out a package, because it has no wheels; None if
    there is none.
    """
    bounds = re.compile(rf"""{re.escape(package)}(?![\w-]).*;.*python_version < ["'](\d+\.\d+)["']""")
    return next((found[1] for requirement in _requirements() if (found := bounds.match(requirement))), None)


def is_left_out(package: str) -> bool:
    """Return whether our requirements leave out a package for this version of Python."""
    first = first_python_without(package)
    return first is not None and sys.version_info[:2] >= tuple(map(int, first.split(".")))


def _requires_python() -> str:
    project = _project()
    return (
        importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"] if project is None else project["requires-python"]
    )


def _requirements() -> list[str]:
    project = _project()
    if project is None:
        return importlib.metadata.requires(DISTRIBUTION) or []
    return [requirement for extra in project["optional-dependencies"].values() for requirement in extra]


def _project() -> dict[str, Any] | None:
    """Return the project table of `pyproject.toml` in a checkout, as an editable installation's metadata may be outdated; else None."""
    folder = checkout()
    return None if folder is None else tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def _parse_bounds(requirement: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Parse a lower and an upper bound, in either order: a wheel's metadata may reorder them."""
    found = {sign: (int(major), int(minor)) for sign, major, minor in re.findall(r"(>=|<)\s*(\d+)\.(\d+)", requirement)}
    return found[">="], found["<"]
