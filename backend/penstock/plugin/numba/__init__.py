"""Numba: compiled functions as operators."""

from penstock.plugin.numba import experimental, fn
from penstock.python_function import NumbaFunction

__all__ = ["NumbaFunction", "experimental", "fn"]
