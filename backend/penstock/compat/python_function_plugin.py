"""The module ``nvidia.dali.python_function_plugin``."""

from __future__ import annotations

from penstock.tensors.cuda import require_cupy


def current_dali_stream() -> int:
    """Return the address of the CUDA stream of the pipeline that calls a Python function."""
    return int(require_cupy().cuda.get_current_stream().ptr)
