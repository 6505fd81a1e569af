"""Transcribes recordings: sends each to Triton, and prints its text, with the seconds of each sentence.

    penstock examples add speech
    penstock serve model_repository
    python client_examples/transcribe.py recording.wav

Recordings may be WAV, FLAC, Ogg, MP3 and others, of any length, sample rate and channels; the network knows English.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http
from tritonclient.utils import InferenceServerException


@dataclass(frozen=True)
class Segment:
    """A part of a recording in which somebody speaks.

    Attributes:
        start, end: the times, in seconds.
        text: the spoken text.
        score: the probability of the text.
    """

    start: float
    end: float
    text: str
    score: float


def transcribe(client: Any, content: bytes) -> list[Segment]:
    """Return the segments of a recording, in order; none if nobody speaks.

    Args:
        client: a Triton client.
        content: the recording's file.
    """
    recording = tritonclient.http.InferInput("encoded_audio", [1, 1], "BYTES")
    recording.set_data_from_numpy(np.array([[content]], np.object_))
    answer = client.infer("speech", [recording])
    texts, scores, seconds = (answer.as_numpy(name) for name in ("text", "scores", "seconds"))
    return [
        Segment(float(start), float(end), text.decode(), float(score))
        for (start, end), text, score in zip(seconds, texts.ravel(), scores.ravel())
    ]


def main() -> None:
    """Transcribe the recordings that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    parser.add_argument("--url", default="localhost:8000")
    options = parser.parse_args()
    client = tritonclient.http.InferenceServerClient(options.url)
    for recording in options.recordings:
        for segment in transcribe(client, recording.read_bytes()):
            print(f"{recording}: {segment.start:.2f}-{segment.end:.2f} {segment.text} ({segment.score:.2f})")


if __name__ == "__main__":
    try:
        main()
    except InferenceServerException as error:
        sys.exit(f"the server refused: {error.message()}")
    except OSError as error:
        sys.exit(f"cannot read {error.filename}: {error.strerror}")
