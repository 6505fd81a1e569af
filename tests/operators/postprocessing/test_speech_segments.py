"""`speech_segments` finds the same segments as Silero's function, and joins neighbours."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import PenstockError

sys.path.insert(0, str(Path(__file__).parent))

from speech_segment_cases import CASES, OUTPUT, length, probabilities, settings


def segments(*given: np.ndarray, **arguments: Any) -> list[list[list[int]]]:
    (found,) = outputs(
        lambda: fn.speech_segments(fn.external_source(name="given", ndim=1), **arguments),
        given=[np.asarray(own, np.float32) for own in given],
    )
    assert all(own.dtype == np.int32 and own.shape[1:] == (2,) for own in found)
    return [own.tolist() for own in found]


def test_segments_are_those_of_silero() -> None:
    expected = json.loads(OUTPUT.read_text())
    assert len(expected) == CASES
    for seed in range(CASES):
        given, chosen = probabilities(seed), settings(seed)
        samples = length(seed, len(given), chosen.get("frame_step", 512))
        assert segments(given, length=samples, **chosen) == [expected[seed]], (seed, chosen)
    # The cases include recordings with many segments, and some without any.
    assert sum(map(len, expected)) > 500
    assert any(not own for own in expected)


def test_many_recordings_are_as_each_alone() -> None:
    given = [probabilities(seed) for seed in range(0, 24, 6)]
    assert segments(*given) == [segments(own)[0] for own in given]


def test_silence_and_single_frames() -> None:
    speech, silence = [1.0], [0.0]
    assert segments([], silence * 100, speech * 7, speech * 8, speech * 9 + silence * 20, speech_pad_ms=0) == [
        [],
        [],
        [],
        [[0, 4096]],
        [[0, 4608]],
    ]
    # The recording ends within the last frame, or before the last frames, which are then ignored.
    assert segments(speech * 10, length=5000, speech_pad_ms=0) == [[[0, 5000]]]
    assert segments(silence * 10 + speech * 10, length=5120) == [[]]
    assert segments(speech * 10, length=0) == [[]]


def test_neighbours_are_joined_to_a_limit() -> None:
    # Three seconds of speech, then one of silence, four times over.
    second = 31
    given = ([1.0] * 3 * second + [0.0] * second) * 4
    apart = segments(given, speech_pad_ms=0)[0]
    assert len(apart) == 4
    assert segments(given, speech_pad_ms=0, max_joined_seconds=7.0)[0] == [
        [apart[0][0], apart[1][1]],
        [apart[2][0], apart[3][1]],
    ]
    assert segments(given, speech_pad_ms=0, max_joined_seconds=6.9)[0] == apart
    assert segments(given, speech_pad_ms=0, max_joined_seconds=60.0)[0] == [[apart[0][0], apart[-1][1]]]


def test_no_segment_is_longer_than_the_limit() -> None:
    for seed in range(20):
        given = np.maximum(probabilities(seed), np.float32(0.4))
        found = segments(np.tile(given, 5), max_speech_seconds=2.0, max_joined_seconds=2.0, min_speech_ms=0)[0]
        assert all(0 < end - start <= 32000 for start, end in found)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(found))


def test_what_is_no_probability_fails_alone() -> None:
    good = probabilities(0)
    for bad, reason in (
        (np.nan, "probability nan of frame 3"),
        (1.5, r"1\.5 of frame 3 is not between 0 and 1"),
        (-0.1, "frame 3"),
    ):
        given = good.copy()
        given[3] = bad
        (found,), failures = isolated(
            lambda: (fn.speech_segments(fn.external_source(name="given", ndim=1)),), given=[good, given, good]
        )
        assert list(failures) == [1]
        with pytest.raises(PenstockError, match=reason):
            raise failures[1]
        assert [found[0].tolist()] == segments(good)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"threshold": 1.5}, "must be probabilities"),
        ({"exit_threshold": 0.6}, "the first at most the second"),
        ({"frame_step": 0}, "`frame_step` and `sample_rate` must be positive"),
        ({"sample_rate": float("nan")}, "`frame_step` and `sample_rate` must be positive"),
        ({"min_silence_ms": -1.0}, "`min_silence_ms` must be 0 or more"),
        ({"max_speech_seconds": 0.05}, "longer than a frame and twice `speech_pad_ms`"),
        ({"split_at": "first_silence"}, "`split_at` must be one of longest_silence, last_silence"),
        ({"length": 513}, "`length` must be from 0 to 512, the length of all frames. Got: 513"),
        ({"length": -1}, "`length` must be from 0 to 512"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises((PenstockError, ValueError), match=reason):
        segments([0.5], **arguments)
