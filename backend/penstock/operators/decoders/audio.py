"""`decoders.audio`: decodes recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.arrays import addresses
from penstock.data_types import FLOAT, INT16, INT32, UINT8, dtype_name, numpy_dtype
from penstock.kernels.codecs.audio import Pcm, Recording, convert_pcm, open_recording
from penstock.kernels.codecs.decoder_memory import recording_bytes
from penstock.kernels.codecs.headers.audio import check_length
from penstock.kernels.levels import from_unit
from penstock.kernels.resampling import lobes_of_quality, resample_signal
from penstock.operators.decoders._examples import encoded_sounds
from penstock.schema import (
    Alias,
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.libraries import SOUNDFILE
from penstock.schema.operator import Shape
from penstock.schema.tolerance import ON_ERROR

# Batches of at most so many samples are read by one thread.
_FEW = 1 << 20
_FLOAT_BYTES = 4


@dataclass
class _Request:
    """A recording, and the factor to its requested sample rate (1: its own)."""

    recording: Recording
    scale: float
    rate: float


@register_operator
class AudioDecoder(Operator[None, _Request]):
    """Decodes audio files of any format that libsndfile reads: WAV, FLAC, Ogg, MP3, AIFF and others.

    The first output is (time, channels), or (time) with `downmix`; the second the sample rate in Hz. Floating-point
    files are not scaled for integer outputs.

    >>> audio, rate = fn.decoders.audio(encoded, sample_rate=16000.0, downmix=True)
    """

    schema = Schema(
        name="decoders__Audio",
        devices=("cpu",),
        needs=(SOUNDFILE,),
        inputs=(Input("input", doc="Contents of audio files: 1-D, uint8.", example=encoded_sounds),),
        arguments=(
            Argument("downmix", "bool", False, "Replace the channels by their mean."),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the output: FLOAT, INT16 or INT32.", example=INT16),
            ON_ERROR,
            Argument("quality", "float", 50.0, "Quality of resampling, from 0 to 100."),
            Argument(
                "sample_rate", "float", 0.0, "Sample rate of the output, in Hz; 0: that of the file.", tensor=True
            ),
        ),
        outputs=2,
        aliases=(Alias("AudioDecoder", deprecated_since="1.0"),),
        equivalents=(Equivalent("soundfile.read", "It gives double precision by default, and resamples nothing."),),
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

    def infer(self, sample: Sample[None, _Request]) -> list[tuple[int, ...]]:
        decoding = sample.workspace.decoding
        recording = open_recording(np.ascontiguousarray(sample.inputs[0]), decoding)
        wanted = sample["sample_rate"]
        scale = wanted / recording.rate if wanted > 0 else 1.0
        # A requested rate of 0 is returned, too, although the recording keeps its own.
        sample.plan = _Request(recording, scale, wanted if self.given("sample_rate") else recording.rate)
        length = math.ceil(recording.frames * scale)
        if length > recording.frames:
            check_length(length, recording.channels, recording.rate, sample.shapes[0][0])
        decoding.limits.check_audio(
            max(length, recording.frames), recording.channels, numpy_dtype(self.args["dtype"]).itemsize
        )
        return [(length,) if self.args["downmix"] else (length, recording.channels), ()]

    def working_bytes(self, workspace: Workspace[None, _Request]) -> Sequence[int]:
        working = [0 if sample is None else self._working_bytes(sample) for sample in workspace.samples]
        return working if any(working) else ()

    def _working_bytes(self, sample: Sample[None, _Request]) -> int:
        recording, scale = sample.plan.recording, sample.plan.scale
        working, result = 0, _FLOAT_BYTES * recording.frames * recording.channels
        if not isinstance(recording, Pcm):
            # A worker process has its own result.
            working = recording_bytes(sample.shapes[0][0]) + result
        if self._is_converted(sample.plan):
            # As floats, and their mean; the same at the other rate, and in the range of the output.
            working += 2 * result + math.ceil(2 * result * scale)
        return working

    def _is_converted(self, request: _Request) -> bool:
        """Whether a recording is resampled or mixed."""
        return request.scale != 1 or (self.args["downmix"] and request.recording.channels > 1)

    def compute_samples(self, workspace: Workspace[None, _Request], shapes: Sequence[Shape]) -> None:
        if sum(map(math.prod, shapes)) > _FEW or not self._read_together(workspace):
            super().compute_samples(workspace, shapes)

    def _read_together(self, workspace: Workspace[None, _Request]) -> bool:
        """Reads all recordings at once, if they are plain samples which only change their type."""
        from penstock.kernels.cpu.blocks import Blocks, copy_blocks

        requests = [sample.plan for sample in workspace.live]
        stored = [each.recording.samples for each in requests if isinstance(each.recording, Pcm)]
        if workspace.failures or not requests or len(stored) < len(requests):
            return False
        if any(map(self._is_converted, requests)):
            return False
        output, rates = workspace.outputs
        places, numbers = addresses(stored), output.contiguous_elements()
        if places is None:
            return False
        samples = np.empty(numbers.size, "<i2")
        sizes = np.fromiter((own.nbytes for own in stored), np.int64, len(stored))
        copy_blocks(workspace, Blocks(places, samples.ctypes.data + sizes.cumsum() - sizes, sizes, sizes, 1, sizes))
        convert_pcm(samples, numbers)
        rates.contiguous_elements()[:] = [each.rate for each in requests]
        return True

    def compute(self, sample: Sample[None, _Request]) -> None:
        request = sample.plan
        recording = request.recording
        out, rate = sample.outputs
        rate[...] = request.rate
        if not self._is_converted(request):
            recording.read_into(out if out.ndim == 2 else out[:, None])
            return
        signal = np.empty((recording.frames, recording.channels), np.float32)
        recording.read_into(signal)
        if self.args["downmix"]:
            signal = signal.mean(axis=1)
        if request.scale != 1 and signal.size:
            signal = resample_signal(signal, request.scale, len(out), lobes_of_quality(self.args["quality"]))
        from_unit(signal, out)
