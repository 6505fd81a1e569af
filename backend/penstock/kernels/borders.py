"""Names of border modes."""

from __future__ import annotations

# The names are OpenCV's. What precedes a row "abc": aa for replicate, ba for reflect, cb for reflect_101, bc for wrap.
BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")


def check_border(name: str) -> str:
    """Return the name of a border mode; raise RuntimeError if it is unknown."""
    if name not in BORDERS:
        raise RuntimeError(f"Unknown border_mode '{name}': use one of {', '.join(BORDERS)}")
    return name
