"""The original location of :func:`numba_function` in DALI."""

from penstock.python_function import numba_function

__all__ = ["numba_function"]
