"""`cut_segments` turns each segment into a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import PenstockError

RECORDINGS = [np.arange(count, dtype=np.float32) for count in (10, 4, 7)]
SEGMENTS = [np.array([[0, 3], [2, 10]]), np.zeros((0, 2), np.int64), np.array([[6, 7]])]


def cut(ndim: int = 1, **arguments: Any) -> Any:
    recordings = fn.external_source(name="recordings", ndim=ndim)
    return fn.cut_segments(recordings, fn.external_source(name="segments", ndim=2), **arguments)


def test_clips_are_slices() -> None:
    clips, counts = outputs(cut, recordings=RECORDINGS, segments=SEGMENTS)
    assert [int(count) for count in counts] == [2, 0, 1]
    assert [clip.tolist() for clip in clips] == [[0, 1, 2], [2, 3, 4, 5, 6, 7, 8, 9], [6]]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_each_dimension(axis: int) -> None:
    spectrogram = np.random.default_rng(0).random((6, 9)).astype(np.float32)
    clips, counts = outputs(
        lambda: cut(2, axis=axis), recordings=[spectrogram], segments=[np.array([[1, 4], [0, 6]], np.int32)]
    )
    assert int(counts[0]) == 2
    for clip, (start, stop) in zip(clips, ((1, 4), (0, 6)), strict=True):
        np.testing.assert_array_equal(clip, spectrogram.take(range(start, stop), axis))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ([[2, 2]], "Segment 0, from 2 to 2, is empty or reaches outside"),
        ([[0, 1], [3, 5]], "Segment 1, from 3 to 5, .* outside of its recording of 4 samples"),
        ([[-1, 2]], "Segment 0, from -1 to 2"),
        ([[0, 1, 2]], r"shape \(segments, 2\). Got: \[1, 3\]"),
        ([[0.0, 1.0]], "Segments must be whole numbers"),
    ],
)
def test_a_bad_segment_fails_its_recording_alone(bad: Any, reason: str) -> None:
    dtype = np.float64 if isinstance(bad[0][0], float) else np.int64
    segments = [SEGMENTS[0].astype(dtype), np.array(bad, dtype), SEGMENTS[2].astype(dtype)]
    if dtype is np.float64:
        with pytest.raises(PenstockError, match=reason):
            outputs(cut, recordings=RECORDINGS[:2], segments=segments[:2])
        return
    (clips, _counts), failures = isolated(cut, recordings=RECORDINGS, segments=segments)
    assert list(failures) == [1]
    with pytest.raises(PenstockError, match=reason):
        raise failures[1]
    assert clips[0].tolist() == [0, 1, 2]


def test_the_dimension_must_exist() -> None:
    with pytest.raises(PenstockError, match=r"`axis` must be from -1 to 0 for recordings of 1 dimensions\. Got: 1"):
        outputs(lambda: cut(axis=1), recordings=RECORDINGS, segments=SEGMENTS)
