"""What the package's metadata says: its name, and the versions of Python that it runs on.

``requires-python`` in ``pyproject.toml`` is the only place that says which versions those are.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import tomllib

from penstock.core.compiling import checkout

DISTRIBUTION = "penstock-triton"
"""What pip calls this package: on PyPI, `penstock` is somebody else's."""


@functools.cache
def python_bounds() -> tuple[tuple[int, int], tuple[int, int]]:
    """The oldest supported version of Python, and the first one that is too new."""
    return _parse_bounds(_requires_python())


def supports(version: tuple[int, int]) -> bool:
    """Whether a version of Python is a supported one."""
    oldest, too_new = python_bounds()
    return oldest <= version < too_new


def described_pythons() -> str:
    """The supported versions of Python, for messages: e.g. ``3.11 to 3.15``."""
    oldest, too_new = python_bounds()
    return f"{oldest[0]}.{oldest[1]} to {too_new[0]}.{too_new[1] - 1}"


def _requires_python() -> str:
    folder = checkout()
    if folder is None:
        return importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"]
    # The metadata of an editable installation is from when it was installed.
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]["requires-python"]


def _parse_bounds(requirement: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Parse a lower and an upper bound, in either order, as the metadata of a wheel has them sorted."""
    found = {sign: (int(major), int(minor)) for sign, major, minor in re.findall(r"(>=|<)\s*(\d+)\.(\d+)", requirement)}
    return found[">="], found["<"]
