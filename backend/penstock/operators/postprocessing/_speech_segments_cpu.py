"""Kernels that find the segments of a recording with speech, from probabilities."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel


@kernel
def find_segments(
    probabilities: np.ndarray,
    firsts: np.ndarray,
    lengths: np.ndarray,
    step: int,
    threshold: float,
    exit_threshold: float,
    min_speech: float,
    min_silence: float,
    min_split_silence: float,
    max_speech: float,
    pad: float,
    max_joined: float,
    at_longest: bool,
    segment_firsts: np.ndarray,
    begin: int,
    end: int,
    segments: np.ndarray,
    counts: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Find the segments of each recording that contain speech; all lengths are in samples of the recording.

    Args:
        probabilities: the probabilities of all recordings, float32.
        firsts: start of each recording's probabilities, followed by the end of the last.
        lengths: the recordings' lengths, int64.
        step: the distance from one frame to the next.
        threshold: frames with at least this probability are speech.
        exit_threshold: frames below this probability are silence.
        min_speech: segments that are not longer than this are dropped.
        min_silence: the shortest pause that ends a segment.
        min_split_silence: long segments may be split only at pauses that are longer than this.
        max_speech: segments longer than this are split.
        pad: the amount by which segments grow on either side.
        max_joined: neighbouring segments are joined if the result is not longer than this.
        at_longest: whether long segments are split at their longest pause rather than at their last one.
        segment_firsts: start of each recording's segments in the output.
        begin, end: the range of recordings to process.
        segments: output, int32 of shape (n, 2): start and end of each segment.
        counts: output: the number of segments in each recording.
        faults: output: the first frame of each recording whose probability is not between 0 and 1; -1 if there is none.
    """
    for sample in range(begin, end):
        first, length = firsts[sample], lengths[sample]
        counts[sample], faults[sample] = 0, -1
        for frame in range(firsts[sample + 1] - first):
            if not (probabilities[first + frame] >= 0 and probabilities[first + frame] <= 1):
                faults[sample] = frame
                break
        if faults[sample] >= 0:
            continue
        own = segments[segment_firsts[sample] :]
        frames = (length + step - 1) // step
        count = _find(
            probabilities[first : first + frames],
            length,
            step,
            threshold,
            exit_threshold,
            min_speech,
            min_silence,
            min_split_silence,
            max_speech,
            at_longest,
            own,
        )
        _widen(own, count, length, pad)
        counts[sample] = _join(own, count, max_joined)


@inner
def _find(
    probabilities: np.ndarray,
    length: int,
    step: int,
    threshold: float,
    exit_threshold: float,
    min_speech: float,
    min_silence: float,
    min_split_silence: float,
    max_speech: float,
    at_longest: bool,
    segments: np.ndarray,
) -> int:
    """Find the segments before they are widened, and return their number."""
    count, speaking, start = 0, False, 0
    # `pause`: start of the current pause; `longest`, `longest_length`: start and length of the segment's longest pause; `last`,
    # `resumed`: start of the last pause that is long enough to split at, and where speech resumes after it. All are in samples; 0
    # means that there is none, as no pause begins at 0.
    pause, longest, longest_length, last, resumed = 0, 0, 0, 0, 0
    for frame in range(len(probabilities)):
        probability, here = np.float64(probabilities[frame]), frame * step
        if probability >= threshold and pause:
            silence = here - pause
            if silence > min_split_silence and silence > longest_length:
                longest, longest_length = pause, silence
            pause = 0
            if resumed < last:
                resumed = here
        if probability >= threshold and not speaking:
            speaking, start = True, here
            continue
        if speaking and here - start > max_speech:
            segments[count, 0] = start
            if at_longest and longest:
                segments[count, 1] = longest
                start = longest + longest_length
            elif last:
                segments[count, 1] = last
                speaking = resumed >= last
                start = resumed
            else:
                segments[count, 1] = here
                speaking = False
            count += 1
            found_pause = longest if at_longest else last
            pause, longest, longest_length, last, resumed = 0, 0, 0, 0, 0
            if not found_pause:
                continue
        if probability < exit_threshold and speaking:
            if not pause:
                pause = here
            silence = here - pause
            if not at_longest and silence > min_split_silence:
                last = pause
            if silence >= min_silence:
                if pause - start > min_speech:
                    segments[count, 0], segments[count, 1] = start, pause
                    count += 1
                speaking = False
                pause, longest, longest_length, last, resumed = 0, 0, 0, 0, 0
    if speaking and length - start > min_speech:
        segments[count, 0], segments[count, 1] = start, length
        count += 1
    return count


@inner
def _widen(segments: np.ndarray, count: int, length: int, pad: float) -> None:
    """Widen segments by ``pad`` on both sides, but at most to the middle of the pause between two segments."""
    if count:
        segments[0, 0] = np.int32(max(0.0, segments[0, 0] - pad))
    for number in range(count):
        if number + 1 == count:
            segments[number, 1] = np.int32(min(np.float64(length), segments[number, 1] + pad))
            continue
        silence = segments[number + 1, 0] - segments[number, 1]
        if silence < 2 * pad:
            segments[number, 1] += silence // 2
            segments[number + 1, 0] = max(0, segments[number + 1, 0] - silence // 2)
        else:
            segments[number, 1] = np.int32(min(np.float64(length), segments[number, 1] + pad))
            segments[number + 1, 0] = np.int32(max(0.0, segments[number + 1, 0] - pad))


@inner
def _join(segments: np.ndarray, count: int, max_joined: float) -> int:
    """Join neighbouring segments if the result is at most ``max_joined`` long, and return the number of segments."""
    joined = 0
    for number in range(count):
        start, stop = segments[number, 0], segments[number, 1]
        if joined and stop - segments[joined - 1, 0] <= max_joined:
            segments[joined - 1, 1] = stop
        else:
            segments[joined, 0], segments[joined, 1] = start, stop
            joined += 1
    return joined
