"""NVTX ranges of operators and their samples, for NVIDIA's profilers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

from penstock.runtime.trace import Kind, Trace

NVTX_VARIABLE = "PENSTOCK_NVTX"
_DOMAIN = "penstock"


def is_nvtx_enabled() -> bool:
    """Return whether the environment variable ``PENSTOCK_NVTX`` requests ranges.

    Raises:
        ValueError: the variable's value is neither empty, 0 nor 1.
    """
    value = os.environ.get(NVTX_VARIABLE, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{NVTX_VARIABLE} must be 1 (NVTX ranges) or 0. Got: {value!r}")
    return value == "1"


class NvtxTrace(Trace):
    """Marks a pipeline's work as NVTX ranges in the domain `penstock`.

    Args:
        num_threads, depth, titles: see :class:`Trace`.
        keeps_spans: whether to also record spans, as with `Pipeline(trace=True)`.

    Raises:
        ImportError: the package `nvtx` is missing.
    """

    def __init__(self, num_threads: int, depth: int, titles: Mapping[str, str], keeps_spans: bool) -> None:
        super().__init__(num_threads, depth, titles)
        self._keeps_spans = keeps_spans
        self._nvtx = _nvtx()

    @contextmanager
    def span(self, name: str, kind: Kind) -> Iterator[None]:
        with self._nvtx.annotate(self._titles.get(name, name), domain=_DOMAIN, category=kind.value):
            if not self._keeps_spans:
                yield
                return
            with super().span(name, kind):
                yield

    @contextmanager
    def operator(self, name: str, stream: object | None) -> Iterator[None]:
        # Without spans, no stream is needed: profilers measure the GPU's work themselves.
        with super().operator(name, stream if self._keeps_spans else None):
            yield

    def consumed(self, fill: int) -> None:
        if self._keeps_spans:
            super().consumed(fill)


def _nvtx() -> ModuleType:
    try:
        import nvtx
    except ImportError as error:
        raise ImportError(f"{NVTX_VARIABLE}=1 needs the package nvtx: install penstock-triton[nvtx]") from error
    return nvtx
