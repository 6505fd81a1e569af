"""The original location of :class:`NumbaFunction`."""

from penstock.python_function import NumbaFunction

__all__ = ["NumbaFunction"]
