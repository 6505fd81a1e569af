"""Functions compiled by Numba as operators."""

from penstock.plugin.numba.fn import experimental
from penstock.python_function import numba_function

__all__ = ["experimental", "numba_function"]
