"""`decoders.audio`: recordings out of files' bytes."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.levels import from_unit
from penstock.kernels.resampling import lobes_of_quality, resample_signal
from penstock.schema import Alias, Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.libraries import SOUNDFILE
from penstock.types import FLOAT, INT16, INT32, UINT8, dtype_name


@dataclass
class _Recording:
    """An open file, and the scale of the sample rate that is wanted of it (1: its own)."""

    file: Any
    scale: float
    rate: float


@register_operator
class AudioDecoder(Operator):
    """Decodes audio files of any format that libsndfile reads: WAV, FLAC, Ogg, MP3, AIFF and others.

    The first output is (time, channels), or (time) with `downmix`; the second the sample rate in Hz. Files that hold
    floating point numbers are not scaled when integers are asked for.

    >>> audio, rate = fn.decoders.audio(encoded, sample_rate=16000.0, downmix=True)
    """

    schema = Schema(
        name="decoders__Audio",
        devices=("cpu",),
        needs=(SOUNDFILE,),
        inputs=(Input("input", doc="Contents of audio files: 1-D, uint8."),),
        arguments=(
            Argument("downmix", "bool", False, "Replace the channels by their mean."),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output: FLOAT, INT16 or INT32."),
            Argument("quality", "float", 50.0, "Quality of resampling, from 0 to 100."),
            Argument(
                "sample_rate", "float", 0.0, "Sample rate of the output, in Hz; 0: that of the file.", tensor=True
            ),
        ),
        outputs=2,
        aliases=(Alias("AudioDecoder", deprecated_since="1.0"),),
    )

    def setup(self) -> None:
        if self.args["dtype"] not in (FLOAT, INT16, INT32):
            raise RuntimeError(f"Unsupported output type: {dtype_name(self.args['dtype'])}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        encoded = workspace.inputs[0]
        if len(encoded) and encoded.dtype != UINT8:
            raise RuntimeError(f"Encoded files must be uint8 data, got {dtype_name(encoded.dtype)}")
        if len(encoded) and encoded.ndim() != 1:
            raise RuntimeError(f"Encoded files must be 1-D data, got {encoded.ndim()} dimensions")
        return [OutputSpec(self.args["dtype"], ndim=1 if self.args["downmix"] else 2), OutputSpec(FLOAT, ndim=0)]

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        from soundfile import SoundFile, SoundFileError

        try:
            file = SoundFile(io.BytesIO(sample.inputs[0].tobytes()))
        except SoundFileError as error:
            raise ValueError(f"Failed to open encoded data: {getattr(error, 'error_string', error)}") from error
        wanted = sample["sample_rate"]
        if file.samplerate <= 0:
            raise ValueError(f"Damaged recording: its header tells a sample rate of {file.samplerate}")
        scale = wanted / file.samplerate if wanted > 0 else 1.0
        # A rate of 0 that was asked for is also told, though the recording keeps its own.
        sample.plan = _Recording(file, scale, wanted if self.given("sample_rate") else file.samplerate)
        length = math.ceil(file.frames * scale)
        _check_length(max(file.frames, length) * file.channels, sample.shapes[0][0])
        return [(length,) if self.args["downmix"] else (length, file.channels), ()]

    def compute(self, sample: Sample) -> None:
        recording: _Recording = sample.plan
        out, rate = sample.outputs
        rate[...] = recording.rate
        with recording.file as file:
            if recording.scale == 1 and not (self.args["downmix"] and file.channels > 1):
                _read_into(file, out if out.ndim == 2 else out[:, None])
                return
            signal = np.empty((file.frames, file.channels), np.float32)
            _read_into(file, signal)
        if self.args["downmix"]:
            signal = signal.mean(axis=1)
        if recording.scale != 1 and signal.size:
            signal = resample_signal(signal, recording.scale, len(out), lobes_of_quality(self.args["quality"]))
        from_unit(signal, out)


# The densest coding is FLAC's of silence: 65535 samples of each of 8 channels in 42 bytes.
_LARGE, _DENSEST = 1 << 24, 16_384


def _check_length(samples: int, size: int) -> None:
    """Raises ValueError where a file of so many bytes announces more than it can hold: that would be reserved in vain."""
    if samples > _LARGE and samples > _DENSEST * size:
        raise ValueError(f"Damaged recording: {size} bytes cannot hold the {samples} samples that the header tells")


def _read_into(file: Any, out: np.ndarray) -> None:
    """Reads the whole file; what it announces and does not have is silence."""
    from soundfile import SoundFileError

    try:
        read = file.read(out.shape[0], dtype=out.dtype.name, always_2d=True)
    except SoundFileError as error:
        raise ValueError(f"Failed to decode the recording: {getattr(error, 'error_string', error)}") from error
    out[: len(read)] = read
    out[len(read) :] = 0
