"""Filter tables that are computed on the GPU equal the host's bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cuda.launch import Located, launch_all
from penstock.kernels.cuda.taps import FilterTables
from penstock.kernels.filters import Taps, nearest, taps
from penstock.kernels.resize_shapes import AxisPlan, AxisPlans
from penstock.types import INTERP_NN, DALIInterpType

RNG = np.random.default_rng(5)


def plans(count: int, kind: DALIInterpType, antialias: bool, mirrored: bool) -> AxisPlans:
    """Return plans of random sizes. Regions lie in the input, extend beyond it, or are reversed; only a part of the output is computed."""
    size_in, size_out = RNG.integers(1, 90, count), RNG.integers(1, 60, count)
    edges = RNG.uniform(-0.2, 1.2, (2, count)) * size_in
    edges[:, ::3] = np.stack([np.zeros(count), size_in])[:, ::3]
    start, end = edges.astype(np.float32).astype(np.float64)
    first = RNG.integers(0, size_out)
    kinds = np.full(count, int(kind))
    rest = size_out - first
    return AxisPlans(size_in, size_out, start, end, kinds, antialias, first, rest, np.full(count, mirrored))


def expected(axis: AxisPlans, index: int, kind: DALIInterpType, last: bool) -> Taps:
    plan = AxisPlan(*(axis.__getattribute__(n)[index].item() for n in ("size_in", "size_out", "start", "end")))
    outputs = range(plan.size_out)[axis.first[index] :]
    if kind == INTERP_NN:
        starts = nearest(plan, last, outputs)
        table = Taps(starts, np.ones((len(starts), 1), np.float32))
    else:
        table = taps(plan, kind, axis.antialias, outputs)
    return Taps(*(array[::-1] for array in table)) if axis.mirrored[index] else table


def placed(table: Taps) -> dict[tuple[int, int], bytes]:
    """Return each weight other than 0, by output and input position."""
    return {
        (row, int(table.starts[row]) + int(tap)): table.weights[row, tap].tobytes()
        for row, tap in np.argwhere(table.weights)
    }


def memory(located: Located) -> np.ndarray:
    return np.asarray(located.array().get())


def found(starts: np.ndarray, weights: np.ndarray, tables: np.ndarray, index: int, count: int, last: bool) -> Taps:
    first, place, width = (int(tables[name][index]) for name in ("starts", "weights", "used"))
    values = weights[place : place + count * width]
    return Taps(starts[first : first + count], values.reshape(width, count).T if last else values.reshape(count, width))


def filled(vertical: AxisPlans, horizontal: AxisPlans, copied: np.ndarray) -> tuple[Located, Located, FilterTables]:
    tables = FilterTables.planned(vertical, horizontal, len(copied))
    starts, weights = tables.memory()
    launch_all([tables.filling(starts, weights, copied)])
    return starts, weights, tables


@pytest.mark.parametrize("kind", list(DALIInterpType.__members__.values()))
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("mirrored", [True, False])
def test_tables_are_those_of_the_host(kind: DALIInterpType, antialias: bool, mirrored: bool) -> None:
    axes = [plans(40, kind, antialias, mirrored) for _ in range(2)]
    copied = np.float32([1.5, 2.5, 3.5])
    starts, weights, tables = filled(*axes, copied)
    np.testing.assert_array_equal(tables.rows, np.concatenate([tables.down, tables.across]))
    np.testing.assert_array_equal(memory(weights)[:3], copied)
    for last, (axis, own) in enumerate(zip(axes, (tables.down, tables.across))):
        for index in range(40):
            count = int(axis.count[index])
            table = found(memory(starts), memory(weights), own, index, count, bool(last))
            assert table.starts.min() >= 0
            assert table.starts.max() + table.weights.shape[1] <= axis.size_in[index]
            assert placed(table) == placed(expected(axis, index, kind, bool(last)))


def test_images_that_are_alike_share_their_tables() -> None:
    one = plans(1, DALIInterpType.INTERP_LINEAR, True, False)
    three = AxisPlans(
        *(
            np.repeat(v, 3) if isinstance(v, np.ndarray) else v
            for v in map(one.__getattribute__, one.__dataclass_fields__)
        )
    )
    _, weights, tables = filled(three, three, np.zeros(0, np.float32))
    assert tables.down["weights"].tolist() == [0]
    assert weights.size == 2 * tables.down["used"][0] * one.count[0]
