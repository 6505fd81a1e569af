"""Names of border modes."""

from __future__ import annotations

# Named as in OpenCV; replicate: aa|abc, reflect: ba|abc, reflect_101: cb|abc, wrap: bc|abc.
BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")


def check_border(name: str) -> str:
    """Return the name; raise RuntimeError for an unknown one."""
    if name not in BORDERS:
        raise RuntimeError(f"Unknown border_mode '{name}': use one of {', '.join(BORDERS)}")
    return name
