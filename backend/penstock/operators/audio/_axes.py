"""Operations along any one axis of a spectrogram."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import OutputSpec, Workspace


def spectral_spec(workspace: Workspace) -> OutputSpec:
    """Return the output of an operator on float32 spectra that keeps their layout; raise RuntimeError for other types."""
    batch = workspace.inputs[0]
    if len(batch) and batch.dtype != FLOAT:
        raise RuntimeError(f"Unsupported data type: {dtype_name(batch.dtype)}; float32 is expected")
    return OutputSpec(FLOAT, batch.layout(), batch.ndim())


class WeightedSums(NamedTuple):
    """Weighted sums of consecutive elements.

    Attributes:
        starts: each sum's first element, int64.
        weights: a row for each sum, float32.
        gains: factors of the sums, float32; None for no factors.
    """

    starts: np.ndarray
    weights: np.ndarray
    gains: np.ndarray | None = None


def combine_along(axis: int, source: np.ndarray, combination: WeightedSums, out: np.ndarray) -> None:
    """Fill ``out`` with weighted sums along ``axis``: see :func:`penstock.kernels.cpu.audio.weighted_rows`."""
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


def combine_batch(axis: int, workspace: Workspace) -> None:
    """Fill the outputs on GPU with weighted sums along ``axis``; the samples' plans are :class:`WeightedSums`."""
    from penstock.kernels.cuda.launch import locate_all
    from penstock.operators.audio._weighted_sums_cuda import sum_along

    samples = workspace.live
    sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
    jobs = []
    for source, sample, target in zip(sources, samples, targets):
        starts, weights, gains = sample.plan
        jobs.append((source, starts, weights if gains is None else weights * gains[:, None], target))
    sum_along(axis, jobs)
