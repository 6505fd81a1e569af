"""The base of the sound encoders."""

from __future__ import annotations

import io
from typing import ClassVar

import numpy as np

from penstock.data_types import FLOAT, INT16, UINT8, dtype_name
from penstock.operators.encoders._files import FileEncoder
from penstock.operators.postprocessing._rows import Rows, Tables
from penstock.schema import Argument, Input, OutputSpec, Sample, Workspace
from penstock.schema.example_data import signals

SOUNDS = Input(
    "audio",
    doc="FLOAT, from -1 to 1, or INT16, of shape (samples,) or (samples, channels).",
    example=signals,
)
SAMPLE_RATE = Argument("sample_rate", "int32", None, "In Hz.", required=True, tensor=True, example=16000)
_MAX_CHANNELS, _MAX_RATE = 8, 655350


class SoundEncoder(FileEncoder):
    """Base class of operators that encode each recording with libsndfile.

    Attributes:
        container: libsndfile's name of the format.
        subtypes: libsndfile's name of each value of the argument `encoding`.
        min_length: the least number of samples.
    """

    container: ClassVar[str]
    subtypes: ClassVar[dict[str, str]]
    min_length: ClassVar[int] = 0

    def setup(self) -> None:
        if self.args["encoding"] not in self.subtypes:
            raise ValueError(f"`encoding` must be one of {', '.join(self.subtypes)}. Got: {self.args['encoding']!r}")

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype not in (FLOAT, INT16):
            raise RuntimeError(f"Sounds must be FLOAT or INT16, got {dtype_name(batch.dtype)}")
        return [OutputSpec(UINT8, "", 1)]

    def encode(self, sample: Sample) -> np.ndarray:
        """Return the file of a recording.

        Raises:
            ValueError: the shape or sample rate is invalid, or values are out of range for an integer encoding.
        """
        import soundfile

        sound, rate, subtype = sample.inputs[0], sample["sample_rate"], self.subtypes[self.args["encoding"]]
        if sound.ndim not in (1, 2) or (sound.ndim == 2 and not 1 <= sound.shape[1] <= _MAX_CHANNELS):
            raise ValueError(
                f"Sounds must have the shape (samples,), or (samples, channels) with up to {_MAX_CHANNELS} channels. Got: {list(sound.shape)}"
            )
        if len(sound) < self.min_length:
            raise ValueError(f"A {self.container} file must have at least {self.min_length} sample")
        if not 1 <= rate <= _MAX_RATE:
            raise ValueError(f"`sample_rate` must be from 1 to {_MAX_RATE}. Got: {rate}")
        # Written so that NaN, too, is out of bounds.
        if sound.dtype == np.float32 and subtype != "FLOAT" and not (np.abs(sound) <= 1).all():
            raise ValueError(f"Values must be from -1 to 1. Got up to {np.abs(sound).max():g}: scale or clamp them")
        file = io.BytesIO()
        soundfile.write(file, sound, rate, subtype, format=self.container)
        return np.frombuffer(file.getbuffer(), np.uint8)
