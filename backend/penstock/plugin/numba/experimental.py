"""The place where :class:`NumbaFunction` was at first."""

from penstock.python_function import NumbaFunction

__all__ = ["NumbaFunction"]
