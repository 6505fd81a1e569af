"""How kernels are compiled."""

from __future__ import annotations

from typing import Literal, TypedDict


class _Options(TypedDict):
    nogil: bool
    cache: bool
    error_model: Literal["numpy"]


# Kernels release the GIL, and division by zero gives infinity, as in C.
OPTIONS: _Options = {"nogil": True, "cache": True, "error_model": "numpy"}
