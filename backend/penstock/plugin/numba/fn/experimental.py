"""DALI's first location of :func:`numba_function`."""

from penstock.python_function import numba_function

__all__ = ["numba_function"]
