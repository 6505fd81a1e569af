"""Numba: functions that it compiles, as operators."""

from penstock.plugin.numba import fn
from penstock.python_function import NumbaFunction

__all__ = ["NumbaFunction", "fn"]
