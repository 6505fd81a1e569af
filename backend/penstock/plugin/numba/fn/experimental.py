"""The place where :func:`numba_function` was at first."""

from penstock.python_function import numba_function

__all__ = ["numba_function"]
