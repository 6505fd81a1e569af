"""Counterparts of DALI's experimental interfaces, which may still change."""

from penstock.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]
