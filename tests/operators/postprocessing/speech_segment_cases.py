"""Probabilities of speech and arguments of `speech_segments`; Silero's results for them are in `speech_segments.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

OUTPUT = Path(__file__).with_name("speech_segments.json")
CASES = 200


def probabilities(seed: int) -> np.ndarray:
    """Return probabilities of speech, pauses and uncertain parts, of random lengths."""
    rng = np.random.default_rng(seed)
    runs = rng.integers(1, 30, int(rng.integers(1, 40)))
    levels = np.repeat(rng.choice([0.05, 0.2, 0.42, 0.6, 0.95], len(runs)), runs)
    return np.clip(levels + rng.normal(0, rng.choice([0.0, 0.05, 0.3]), len(levels)), 0, 1).astype(np.float32)


def settings(seed: int) -> dict[str, Any]:
    """Return random arguments of :func:`fn.speech_segments`; for the first seed, no arguments."""
    rng = np.random.default_rng([seed, 1])
    if seed % 6 == 0:
        return {}
    chosen: dict[str, Any] = {
        "threshold": float(rng.choice([0.3, 0.5, 0.7])),
        "min_speech_ms": float(rng.choice([0, 50, 250])),
        "min_silence_ms": float(rng.choice([0, 33, 100, 500])),
        "speech_pad_ms": float(rng.choice([0, 30, 45.7, 200])),
        "min_split_silence_ms": float(rng.choice([20, 98])),
    }
    if rng.random() < 0.7:
        chosen["max_speech_seconds"] = float(rng.choice([0.7, 2.0, 5.5]))
    if rng.random() < 0.5:
        chosen["split_at"] = "last_silence"
    if rng.random() < 0.3:
        chosen["exit_threshold"] = chosen["threshold"] - float(rng.choice([0.0, 0.25]))
    if rng.random() < 0.3:
        chosen |= {"sample_rate": 8000.0, "frame_step": 256}
    return chosen


def length(seed: int, frames: int, frame_step: int) -> int:
    """Return the length, in samples, of a recording of this number of frames, of which the last may be incomplete."""
    return frames * frame_step - int(np.random.default_rng([seed, 2]).integers(0, frame_step))
