"""Converting request tensors to samples, and batches to response tensors."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.serving.requests import InputSpec, OutputParts, OutputSpec, RequestError, sample_of, samples_of, to_batch
from penstock.tensors import TensorListCPU
from penstock.types import FLOAT, UINT8


def test_rows_are_samples_without_a_copy() -> None:
    tensor = np.arange(6, dtype=np.float32).reshape(2, 3)
    samples = samples_of(tensor, InputSpec("x", is_bytes=False, ndim=1))
    assert [sample.tolist() for sample in samples] == [[0, 1, 2], [3, 4, 5]]
    assert all(np.shares_memory(sample, tensor) for sample in samples)


def test_scalars_and_bytes() -> None:
    scalars = samples_of(np.array([[1], [2]]), InputSpec("x", is_bytes=False, ndim=0))
    assert [sample.shape for sample in scalars] == [(), ()]
    texts = samples_of(np.array([[b"ab"], [b"c"]], dtype=np.object_), InputSpec("x", is_bytes=True))
    assert [sample.tolist() for sample in texts] == [[97, 98], [99]]


def test_wrong_ranks_and_types() -> None:
    with pytest.raises(RequestError, match="2 dimensions"):
        samples_of(np.zeros((2, 3)), InputSpec("x", is_bytes=False, ndim=2))
    with pytest.raises(RequestError, match="0 dimensions"):
        samples_of(np.zeros((2, 3)), InputSpec("x", is_bytes=False, ndim=0))
    with pytest.raises(RequestError, match="batch dimension"):
        samples_of(np.array(3), InputSpec("x", is_bytes=False))
    with pytest.raises(RequestError, match="bytes are expected"):
        samples_of(np.array([[3]], dtype=np.object_), InputSpec("x", is_bytes=True))


def test_samples_become_a_batch() -> None:
    samples = [np.zeros(3, np.uint8), np.ones(5, np.uint8)]
    batch = to_batch(samples, InputSpec("x", is_bytes=False, layout="X"))
    assert batch.dtype == UINT8
    assert batch.layout() == "X"
    assert np.shares_memory(batch.samples[1], samples[1])


def test_parts_of_a_dense_batch_are_views() -> None:
    batch = TensorListCPU.allocate([(2, 3)] * 4, UINT8)
    part = OutputParts(batch, OutputSpec("y")).of(1, 3)
    assert part.shape == (2, 2, 3)
    assert np.shares_memory(part, batch.elements)
    assert OutputParts(batch, OutputSpec("y")).of(3, 4).shape == (1, 2, 3)


def test_parts_of_scalars_in_one_piece_of_memory_have_their_dimension() -> None:
    scalars = TensorListCPU.allocate([()] * 3, UINT8)
    assert OutputParts(scalars, OutputSpec("y")).of(0, 2).shape == (2, 1)
    assert OutputParts(scalars, OutputSpec("y", ndim=1)).of(1, 2).shape == (1,)


def test_parts_of_other_kinds() -> None:
    ragged = TensorListCPU([np.zeros(3, np.uint8), np.zeros(2, np.uint8)])
    with pytest.raises(RequestError, match="different shapes"):
        OutputParts(ragged, OutputSpec("y")).of(0, 2)
    assert OutputParts(ragged, OutputSpec("y", is_bytes=True)).of(0, 2).tolist() == [[b"\0\0\0"], [b"\0\0"]]
    scalars = TensorListCPU([np.array(1), np.array(2)])
    assert OutputParts(scalars, OutputSpec("y")).of(0, 2).tolist() == [[1], [2]]
    assert OutputParts(scalars, OutputSpec("y", ndim=1)).of(0, 2).tolist() == [1, 2]


@pytest.mark.parametrize("dense", [False, True])
def test_samples_of_any_length_are_split(dense: bool) -> None:
    parts = [np.arange(length * 5, dtype=np.float32).reshape(length, 5) for length in (4, 2, 3)]
    frames = TensorListCPU.allocate([part.shape for part in parts], FLOAT) if dense else TensorListCPU(parts)
    for sample, part in zip(frames.samples, parts):
        sample[...] = part
    spec = OutputSpec("y", split=True, ndim=2)
    np.testing.assert_array_equal(OutputParts(frames, spec).of(0, 3), np.concatenate(parts))
    np.testing.assert_array_equal(OutputParts(frames, spec).of(1, 3), np.concatenate(parts[1:]))
    np.testing.assert_array_equal(OutputParts(frames, spec).of(1, 2), parts[1])
    vectors = TensorListCPU([np.zeros(3), np.zeros(2)])
    assert OutputParts(vectors, spec).of(0, 2).shape == (5, 1)


def test_what_cannot_be_split() -> None:
    spec = OutputSpec("y", split=True)
    with pytest.raises(RequestError, match="no outer axis"):
        OutputParts(TensorListCPU([np.array(1), np.array(2)]), spec).of(0, 2)
    with pytest.raises(RequestError, match="different shapes"):
        OutputParts(TensorListCPU([np.zeros((4, 5)), np.zeros((4, 6))]), spec).of(0, 2)


def test_single_values_become_samples() -> None:
    number = InputSpec("x", is_bytes=False, dtype=np.float32, ndim=0)
    assert sample_of(3, number) == np.float32(3)
    assert sample_of(3, number).dtype == np.float32
    row = InputSpec("x", is_bytes=False, dtype=np.int32, ndim=1)
    assert sample_of(3, row).tolist() == [3]
    assert sample_of([3, 4], row).tolist() == [3, 4]
    assert sample_of("[3, 4]", row).tolist() == [3, 4]
    assert sample_of("2.5", number) == 2.5
    assert sample_of("ab", InputSpec("x", is_bytes=True)).tolist() == [97, 98]


@pytest.mark.parametrize("value", [3.5, [[1]], "3.5", [1, "x"], {"a": 1}, "{}"])
def test_single_values_that_are_no_samples(value: object) -> None:
    with pytest.raises(ValueError, match="'x'"):
        sample_of(value, InputSpec("x", is_bytes=False, dtype=np.int32, ndim=1))


def test_strings_that_are_all_empty() -> None:
    batch = TensorListCPU([np.zeros((2, 0), np.uint8)])
    assert OutputParts(batch, OutputSpec("y", is_bytes=True)).of(0, 1).tolist() == [[b"", b""]]
