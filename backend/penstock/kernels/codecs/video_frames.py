"""Selection of video frames: by time or at a rate, and replacements for frames outside the video."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

# The frame rate to assume for a file that does not state one, in frames per second.
USUAL_RATE = 25

# In seconds: times that differ by less than this are treated as equal, as they may have been computed in different ways.
_SAME_TIME = 1e-6


def frames_at(times: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the numbers of the frames shown at the wanted times, int64: the first frame before the video begins, the last one after it
    ends.

    Args:
        times: when frames are shown, in seconds, ascending: float64.
        wanted: the wanted times in seconds: float64.

    >>> frames_at(np.array([0.0, 0.5, 2.0]), np.array([0.4, 0.5, 1.9, 7.0])).tolist()
    [0, 1, 1, 2]
    """
    return np.clip(np.searchsorted(times, wanted + _SAME_TIME, "right") - 1, 0, len(times) - 1)


def frames_at_rate(times: np.ndarray, rate: float) -> np.ndarray:
    """Return the numbers of the frames shown at times that are 1 / ``rate`` seconds apart, int64; the last frame is shown as long as the
    one before it.

    Args:
        times: as for :func:`frames_at`.
        rate: the frame rate, in frames per second.

    >>> frames_at_rate(np.arange(4) / 30, 15).tolist()
    [0, 2]
    >>> frames_at_rate(np.array([0.0, 0.5, 2.0, 2.5]), 2).tolist()
    [0, 1, 1, 1, 2, 3]
    """
    if len(times) < 2:
        return np.arange(len(times))
    length = times[-1] - times[0] + (times[-1] - times[-2])
    count = max(int(np.ceil((length - _SAME_TIME) * rate)), 1)
    return frames_at(times, times[0] + np.arange(count) / rate)


def span_of(times: np.ndarray, frames: Iterable[int]) -> tuple[float, float]:
    """Return the times at which the first of some frames appears and the last one disappears, in seconds; the last frame of a video is
    shown as long as the one before it.

    Args:
        times: when frames are shown, in seconds, ascending: float64.
        frames: the numbers of the frames, in any order; frames filled with a colour do not count.

    >>> span_of(np.array([0.0, 0.5, 2.0, 2.5]), [2, 1])
    (0.5, 2.5)
    """
    shown = [frame for frame in frames if frame != _FILL]
    if not shown:
        return 0.0, 0.0
    first, last = min(shown), max(shown)
    if last + 1 < len(times):
        end = times[last + 1]
    else:
        end = times[last] + (times[last] - times[last - 1] if len(times) > 1 else 1 / USUAL_RATE)
    return float(times[first]), float(end)


# The number that stands for a frame filled with the fill value.
_FILL = -1


def _mirrored_with_edge(index: int, count: int) -> int:
    index %= 2 * count
    return index if index < count else 2 * count - 1 - index


def _mirrored_at_edge(index: int, count: int) -> int:
    if count == 1:
        return 0
    index %= 2 * count - 2
    return index if index < count else 2 * count - 2 - index


# Functions that replace frames outside the video, given a frame's number and the number of frames in the video.
PADDINGS: dict[str, Callable[[int, int], int] | None] = {
    "none": None,
    "": None,
    "constant": lambda index, count: _FILL,
    "edge": lambda index, count: min(max(index, 0), count - 1),
    "symmetric": _mirrored_with_edge,
    "reflect_1001": _mirrored_with_edge,
    "reflect": _mirrored_at_edge,
    "reflect_101": _mirrored_at_edge,
}


def padded(frames: Sequence[int], count: int, mode: str) -> list[int]:
    """Return frame numbers for a video of ``count`` frames, in which those outside the video are replaced according to the mode."""
    outside = PADDINGS[mode]
    if outside is None:
        return [frame for frame in frames if 0 <= frame < count]
    return [frame if 0 <= frame < count else outside(frame, count) for frame in frames]


def sides(frames: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the positions of frames that are in the video, and of frames filled with the fill value."""
    outside = [place for place, frame in enumerate(frames) if frame == _FILL]
    return [place for place, frame in enumerate(frames) if frame != _FILL], outside
