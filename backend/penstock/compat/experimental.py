"""The module ``nvidia.dali.experimental``: dynamic mode."""

from __future__ import annotations

from penstock import dynamic

__all__ = ["dynamic"]
__path__: list[str] = []
