"""Sums of separable filters on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, TypeVar

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, blocks_for, launch, scratch
from penstock.kernels.cuda.structs import Address, Int32, Int64, Pointer, Repeated, cuda_type, records
from penstock.kernels.cuda.tiles import STRETCH, Tiles, Tiling, tile_source, tiles_of, tiling_for

_MAX_TERMS = 3
_Number = TypeVar("_Number", int, float)
_Pointers = Annotated[Sequence[int], Repeated(Address(), _MAX_TERMS)]
_Integers = Annotated[Sequence[int], Repeated(np.int32, _MAX_TERMS)]
_Floats = Annotated[Sequence[float], Repeated(np.float32, _MAX_TERMS)]


class _Lines(NamedTuple):
    """The descriptor of one sample, viewed as (outer, n, inner) and filtered along the middle axis.

    Attributes:
        windows: offset of each term's window in the table of windows.
    """

    sources: _Pointers
    target: Pointer
    outer: Int64
    size: Int64
    inner: Int64
    windows: _Integers
    diameters: _Integers
    scales: _Floats
    terms: Int32


class _Planes(NamedTuple):
    """The descriptor of one sample, filtered along height and width.

    Attributes:
        weights, weight_count: offset of the sample's windows in the table of windows, and their total number of elements.
        windows_y, windows_x: offset of each term's vertical and horizontal window among the sample's windows.
    """

    tiles: Tiles
    weights: Int32
    weight_count: Int32
    windows_y: _Integers
    windows_x: _Integers
    heights: _Integers
    widths: _Integers
    scales: _Floats
    terms: Int32


SOURCE = tile_source(__file__, _Lines, _Planes, MAX_TERMS=_MAX_TERMS)
# The window of an axis that is not filtered: it leaves values unchanged.
_NOTHING = np.ones(1, np.float32)


@dataclass(frozen=True)
class Term:
    """A separable filter that is one term of a sum.

    Attributes:
        scale: the factor of the filter's result in the sum.
        windows: the windows by axis, float32 and of odd length; an axis without one is not filtered.
    """

    scale: float
    windows: dict[int, np.ndarray]

    def window(self, axis: int) -> np.ndarray:
        """Return the window for an axis."""
        return self.windows.get(axis, _NOTHING)


@dataclass(frozen=True)
class Filters:
    """The work for one sample: a sum of filters."""

    source: Located
    target: Located
    terms: Sequence[Term]


def convolve(jobs: Sequence[Filters], axes: Sequence[int]) -> None:
    """Fill all targets. ``axes`` must be consecutive; filters run along the last of them first."""
    jobs = [job for job in jobs if job.target.size]
    tiles = [_tiling(job, axes) for job in jobs] if len(axes) <= 2 else [None] * len(jobs)
    by_planes = [(job, tiling) for job, tiling in zip(jobs, tiles) if tiling]
    if by_planes:
        _convolve_planes(by_planes, axes)
    by_lines = [job for job, tiling in zip(jobs, tiles) if not tiling]
    if by_lines:
        _convolve_lines(_filtered_along_other_axes(by_lines, axes), axes[0])


def _filtered_along_other_axes(jobs: Sequence[Filters], axes: Sequence[int]) -> list[tuple[Filters, list[Located]]]:
    """Filter each term along all axes except the first; return each job with the terms' results, to be filtered along the first axis."""
    if len(axes) == 1:
        return [(job, [job.source] * len(job.terms)) for job in jobs]
    shapes = [job.source.shape for job in jobs for _ in job.terms]
    parts = iter(scratch(shapes, np.float32))
    filtered = [(job, [next(parts) for _ in job.terms]) for job in jobs]
    inner = [
        Filters(job.source, part, [replace(term, scale=1.0)])
        for job, parts in filtered
        for term, part in zip(job.terms, parts)
    ]
    convolve(inner, axes[1:])
    return filtered


class _Table:
    """Windows packed end to end, each padded so that the kernel can read four elements at once."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, ...], int] = {}
        self._parts: list[np.ndarray] = []
        self._size = 0

    def add(self, windows: Sequence[np.ndarray]) -> int:
        """Add consecutive windows unless they are in the table already; return the offset of the first."""
        key = tuple(map(id, windows))
        if key not in self._places:
            self._places[key] = self._size
            for window in windows:
                part = np.zeros(_padded(len(window)), np.float32)
                part[: len(window)] = window
                self._parts.append(part)
                self._size += len(part)
        return self._places[key]

    def array(self) -> np.ndarray:
        return np.concatenate(self._parts)


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _filled(values: Sequence[_Number]) -> Sequence[_Number]:
    """Return the values, padded with zeros for unused terms."""
    nothing: list[_Number] = [0] * (_MAX_TERMS - len(values))
    return list(values) + nothing


# -- along one axis ----------------------------------------------------------------------------------------------------


def _convolve_lines(jobs: Sequence[tuple[Filters, list[Located]]], axis: int) -> None:
    table, entries, counts = _Table(), [], []
    for job, sources in jobs:
        shape, windows = job.target.shape, [term.window(axis) for term in job.terms]
        outer, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        entries.append(
            _Lines(
                _filled([source.address for source in sources]),
                job.target.address,
                *(outer, size, inner),
                _filled([table.add([window]) for window in windows]),
                _filled([len(window) for window in windows]),
                _filled([term.scale for term in job.terms]),
                len(job.terms),
            )
        )
        counts.append(blocks_for(outer * -(-size // STRETCH) * inner))
    types = f"{cuda_type(jobs[0][1][0].dtype)}, {cuda_type(jobs[0][0].target.dtype)}"
    function = SOURCE.kernel(f"convolve_lines<{types}>")
    launch(function, records(_Lines, entries), counts, table.array())


# -- along height and width --------------------------------------------------------------------------------------------


def _tiling(job: Filters, axes: Sequence[int]) -> Tiling | None:
    windows = _windows(job, axes)
    heights, widths = ([len(pair[number]) for pair in windows] for number in (0, 1))
    weights = sum(map(_padded, heights + widths))
    return tiling_for(_view(job.target.shape, axes), (max(heights), max(widths)), len(job.terms), weights, 0)


def _view(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the shape viewed as (planes, height, width, inner). With a single axis, the dimensions before it count as the
    height.
    """
    if len(axes) == 2:
        return image_view(shape, axes[0])
    return 1, math.prod(shape[: axes[0]]), shape[axes[0]], math.prod(shape[axes[0] + 1 :])


def _windows(job: Filters, axes: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the windows of each term, (vertical, horizontal)."""
    if len(axes) == 2:
        return [(term.window(axes[0]), term.window(axes[1])) for term in job.terms]
    return [(_NOTHING, term.window(axes[0])) for term in job.terms]


def _convolve_planes(jobs: Sequence[tuple[Filters, Tiling]], axes: Sequence[int]) -> None:
    table, entries = _Table(), []
    for job, tiles in jobs:
        windows = _windows(job, axes)
        before = (tiles.reach[0] // 2, tiles.reach[1] // 2)
        places = np.cumsum([0, *(_padded(len(window)) for pair in windows for window in pair)]).tolist()
        entries.append(
            _Planes(
                tiles_of(job.source, job.target, tiles.view, tiles.view, before, "reflect_101", tiles),
                table.add([window for pair in windows for window in pair]),
                places[-1],
                _filled(places[:-1:2]),
                _filled(places[1:-1:2]),
                _filled([len(vertical) for vertical, _ in windows]),
                _filled([len(horizontal) for _, horizontal in windows]),
                _filled([term.scale for term in job.terms]),
                len(job.terms),
            )
        )
    types = f"{cuda_type(jobs[0][0].source.dtype)}, {cuda_type(jobs[0][0].target.dtype)}"
    function = SOURCE.kernel(f"convolve_planes<{types}>")
    shared = max(tiles.shared for _, tiles in jobs)
    launch(function, records(_Planes, entries), [tiles.blocks for _, tiles in jobs], table.array(), shared=shared)
