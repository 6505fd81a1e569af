"""DALI's first location of :class:`NumbaFunction`."""

from penstock.python_function import NumbaFunction

__all__ = ["NumbaFunction"]
