"""Interfaces of DALI's that may still change there."""

from penstock.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]
