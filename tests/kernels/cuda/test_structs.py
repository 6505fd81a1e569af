"""Structs are declared once, in Python, and have the same memory layout as in C."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pytest
from struct_layouts import check_layouts

from penstock.kernels.cuda.launch import Extra, Located
from penstock.kernels.cuda.recording import DESCRIPTORS, SCRATCH, TABLES, CannotRecord, Recorder, Relative
from penstock.kernels.cuda.structs import (
    Address,
    Float,
    Int32,
    Pointer,
    Repeated,
    UInt64,
    declarations,
    layout_of,
    records,
)


class _Part(NamedTuple):
    scale: Float
    weights: Pointer


class _Whole(NamedTuple):
    flag: Int32
    parts: Annotated[list[_Part], Repeated(_Part, 2)]
    seed: UInt64
    sources: Annotated[Sequence[int], Repeated(Address(), 3)]
    last: Annotated[int, np.uint8]


class _Number(NamedTuple):
    seed: UInt64


def test_as_compiled(tmp_path: Path) -> None:
    check_layouts(sys.modules["cupy"], tmp_path)


def test_c_is_written_parts_first() -> None:
    assert declarations([_Whole]) == (
        "struct Part {\n    float scale;\n    uint64 weights;\n};\n"
        "struct Whole {\n    int32 flag;\n    Part parts[2];\n    uint64 seed;\n    uint64 sources[3];\n    uint8 last;\n};\n"
    )


def test_pointers_are_known_in_parts_and_arrays() -> None:
    layout = layout_of(_Whole)
    assert layout.dtype.itemsize == 80
    assert layout.pointers == (16, 32, 48, 56, 64)


def test_fields_that_kernels_do_not_have_are_refused() -> None:
    class Odd(NamedTuple):
        name: str

    with pytest.raises(TypeError, match="'name' has a type that kernels do not support"):
        layout_of(Odd)


class _NoKernel:
    max_dynamic_shared_size_bytes = 0

    def __call__(self, *_: object, **__: object) -> None:
        raise AssertionError("nothing runs while launches are recorded")


def launch(recorder: Recorder, row: tuple[object, ...], *extra: Extra, once: bool = False) -> None:
    recorder.launch(_NoKernel(), np.zeros(1, np.int64), records(type(row), [row]), extra, 0, 1, once)


def test_numbers_are_never_taken_for_addresses() -> None:
    """Check that only members that are declared as pointers change for other batches, however large other numbers are."""
    recorder = Recorder()
    place = recorder.scratch(64)
    launch(recorder, _Whole(1, [_Part(0.5, place + 8), _Part(0.5, 0)], place, [0, 0, place], 7))
    recorded = recorder.recording()
    places, which, offsets = recorded.relocations
    assert recorded.launches[0].arguments[1] == Relative(DESCRIPTORS, 0)
    assert places.tolist() == [2, 8]
    assert which.tolist() == [SCRATCH, SCRATCH]
    assert offsets.tolist() == [8, 0]
    launch(recorder, _Number(place))
    assert isinstance(argument := recorder.recording().launches[1].arguments[1], Relative)
    assert argument.base == TABLES


def test_pointers_to_memory_that_is_not_of_the_batch_are_noticed() -> None:
    with pytest.raises(CannotRecord, match="memory at 0x10"):
        launch(Recorder(), _Part(1.0, 0x10))
    with pytest.raises(CannotRecord, match="memory at 0x20"):
        launch(Recorder(), _Number(1), Located(0x20, (1,), np.dtype(np.uint8)))


def test_a_launch_for_all_batches_may_not_depend_on_one() -> None:
    recorder = Recorder()

    def filled(address: int) -> Located:
        return Located(address, (64,), np.dtype(np.uint8))

    launch(recorder, _Number(7), filled(recorder.kept(64)), once=True)
    with pytest.raises(CannotRecord, match="depends on a batch"):
        launch(recorder, _Number(7), filled(recorder.scratch(64)), once=True)
    assert len(recorder.recording().once) == 1
