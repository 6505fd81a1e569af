"""Weighted sums along one axis of a spectrogram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import OutputSpec, PlanColumns, Workspace

if TYPE_CHECKING:
    from penstock.operators.audio._weighted_sums_cuda import Bands


def spectral_spec(workspace: Workspace) -> OutputSpec:
    """Return the output's type, layout and rank for an operator on spectra: the same as the input's.

    Raises:
        RuntimeError: the input is not float32.
    """
    batch = workspace.inputs[0]
    if len(batch) and batch.dtype != FLOAT:
        raise RuntimeError(f"Unsupported data type: {dtype_name(batch.dtype)}; float32 is expected")
    return OutputSpec(FLOAT, batch.layout(), batch.ndim())


class WeightedSums(NamedTuple):
    """Weighted sums of consecutive elements.

    Attributes:
        starts: the index of each sum's first element, int64.
        weights: one row of weights for each sum, float32.
        gains: the factor by which each sum is multiplied, float32; None: the sums are not multiplied.
    """

    starts: np.ndarray
    weights: np.ndarray
    gains: np.ndarray | None = None


class KnownSums:
    """A cache of an operator's weighted sums. Samples with the same key share their sums.

    Args:
        make: computes the sums for a key, whose integers are the function's arguments.
    """

    def __init__(self, make: Callable[..., WeightedSums]) -> None:
        self._make = make
        self._kinds: dict[tuple[int, ...], int] = {}
        self._sums: list[WeightedSums] = []
        self._bands: list[Bands] = []

    def __getitem__(self, kind: int) -> WeightedSums:
        return self._sums[kind]

    def plans(self, forms: np.ndarray) -> SumPlans:
        """Return the plans of the samples with these keys; ``forms``: int64, the key of each sample in a row."""
        if (forms == forms[:1]).all():
            kinds = np.full(len(forms), self._kind_of(tuple(forms[0].tolist())))
        else:
            kinds = np.array([self._kind_of(form) for form in map(tuple, forms.tolist())])
        return SumPlans(kinds, self)

    def _kind_of(self, form: tuple[int, ...]) -> int:
        kind = self._kinds.get(form)
        if kind is None:
            sums = self._make(*form)
            kind = self._kinds[form] = len(self._sums)
            self._sums.append(sums)
        return kind

    def bands(self) -> list[Bands]:
        """Return all sums in the form that the GPU's kernel needs, with the gains multiplied into the weights."""
        from penstock.operators.audio._weighted_sums_cuda import Bands

        for starts, weights, gains in self._sums[len(self._bands) :]:
            scaled = weights if gains is None else weights * gains[:, None]
            self._bands.append(Bands(starts.astype(np.int32), scaled))
        return self._bands


@dataclass(eq=False)
class SumPlans(PlanColumns[WeightedSums]):
    """The weighted sums of many samples.

    Attributes:
        kinds: the index of each sample's sums in ``known``.
        known: the cached sums.
    """

    kinds: np.ndarray
    known: KnownSums

    def __len__(self) -> int:
        return len(self.kinds)

    def row(self, number: int) -> WeightedSums:
        return self.known[self.kinds[number]]


def combine_along(axis: int, source: np.ndarray, combination: WeightedSums, out: np.ndarray) -> None:
    """Fill ``out`` with weighted sums of ``source`` along ``axis``; see :func:`penstock.kernels.cpu.audio.weighted_rows`."""
    from penstock.kernels.cpu import audio

    starts, weights, gains = combination
    if not source.size:
        out[...] = 0
        return
    rows = np.ascontiguousarray(np.moveaxis(source, axis, 0))
    columns = rows.reshape(len(rows), -1)
    direct = axis == 0
    sums = out.reshape(len(out), -1) if direct else np.empty((len(weights), columns.shape[1]), np.float32)
    audio.weighted_rows(columns, starts, weights, sums)
    if gains is not None:
        sums *= gains[:, None]
    if direct:
        return
    out[...] = np.moveaxis(sums.reshape(len(weights), *rows.shape[1:]), 0, axis)


def combine_batch(axis: int, workspace: Workspace[Any, WeightedSums, SumPlans]) -> None:
    """Fill the batch's outputs, on the GPU, with weighted sums of the inputs along ``axis``."""
    from penstock.kernels.cuda.launch import columns_of
    from penstock.operators.audio._weighted_sums_cuda import sum_along

    indices, plans = workspace.live_indices, workspace.plans
    sources, targets = columns_of(workspace.inputs[0], indices), columns_of(workspace.outputs[0], indices)
    sum_along(axis, sources, targets, plans.kinds, plans.known.bands())
