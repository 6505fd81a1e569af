"""Runs code that computes with PyTorch in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class _InDouble(TorchFunctionMode):
    """Converts all tensors that PyTorch's functions take or return, and the types that callers request, to double precision."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = tree_map(_wider, kwargs or {})
        if func is torch.randn:
            # In double precision, the generator would draw other numbers.
            keywords["dtype"] = torch.float32
        return tree_map(_wider, func(*tree_map(_wider, args), **keywords))


def _wider(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype in _WIDER:
        # Otherwise, the conversion would call `__torch_function__` again.
        with torch._C.DisableTorchFunction():
            return value.to(_WIDER[value.dtype])
    return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value


@contextmanager
def in_double() -> Iterator[None]:
    """Inside the context, make PyTorch compute in double precision, even in code written for single precision."""
    torch.set_default_dtype(torch.float64)
    try:
        with _InDouble():
            yield
    finally:
        torch.set_default_dtype(torch.float32)
