"""The original location of :class:`NumbaFunction` in DALI."""

from penstock.python_function import NumbaFunction

__all__ = ["NumbaFunction"]
