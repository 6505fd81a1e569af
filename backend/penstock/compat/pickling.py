"""The module ``nvidia.dali.pickling``: :mod:`penstock.pickling`, and the class through which programs call its
functions.
"""

from __future__ import annotations

from penstock.pickling import dumps, loads, pickle_by_value

__all__ = ["dumps", "loads", "pickle_by_value"]


class _DaliPickle:
    dumps = staticmethod(dumps)
    loads = staticmethod(loads)
