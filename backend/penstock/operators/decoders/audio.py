"""`decoders.audio`: decodes recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penstock.core.codecs import Encoding, read_recordings
from penstock.data_types import FLOAT, INT16, INT32, UINT8, dtype_name, numpy_dtype
from penstock.errors import PenstockError
from penstock.kernels.codecs.audio import Recording, open_recording
from penstock.kernels.codecs.decoder_memory import recording_bytes
from penstock.kernels.codecs.headers.audio import UNCHECKED_VALUES, CorruptRecordingError, check_length
from penstock.kernels.codecs.limits import UNLIMITED
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
    PlanColumns,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.libraries import SOUNDFILE
from penstock.schema.operator import Shape
from penstock.schema.tolerance import ON_ERROR
from penstock.tensors import TensorListCPU
from penstock.tensors.places import places_of_files, places_of_flat, places_of_samples

_FLOAT_BYTES = 4


class _Encoded:
    """The encoded recordings of a batch.

    Args:
        batch: the recordings' bytes.

    Attributes:
        opened: the open recordings that are not plain WAV files, by the index of the sample in the batch.
    """

    def __init__(self, batch: TensorListCPU) -> None:
        self._batch = batch
        self._copies: list[np.ndarray] = []
        self.opened: dict[int, Recording] = {}

    def read(self, samples: Samples[_Encoded, _Request, _Requests]) -> tuple[np.ndarray, int]:
        """Read the headers of WAV files; return a :data:`~penstock.core.codecs.RECORDING` for each sample, and how many samples are not
        plain WAV files.
        """
        places = places_of_files(self._batch)
        if places is None:
            self._copies = list(map(np.ascontiguousarray, self._batch.samples))
            places = places_of_flat(self._copies)
        assert places is not None, "files are arrays of one dimension"
        if samples.are_all:
            return read_recordings(*places)
        rows = list(samples.indices)
        return read_recordings(places[0][rows], places[1][rows])

    def bytes_of(self, index: int) -> np.ndarray:
        """Return the bytes of a sample's file, as a contiguous array."""
        return np.ascontiguousarray(self._batch.samples[index])


class _Request(NamedTuple):
    """A recording that is not a plain WAV file, and the ratio of the requested to the recorded sample rate."""

    recording: Recording
    scale: float


@dataclass(eq=False)
class _Requests(PlanColumns[_Request]):
    """Recordings, and how to resample them.

    Attributes:
        recordings: an array of type ``RECORDING``.
        opened: for each recording, the open file, or None for a plain WAV file; empty if all are plain WAV files.
        scales: the ratios of requested to recorded sample rates; None: no recording is resampled.
        rates: the sample rates to return, in Hz.
        lengths: the number of frames of each output.
        lobes: the number of lobes of the resampling filter.
    """

    recordings: np.ndarray
    opened: list[Recording | None]
    scales: np.ndarray | None
    rates: np.ndarray
    lengths: np.ndarray
    lobes: int

    @classmethod
    def joined(cls, parts: Sequence[_Requests]) -> _Requests:
        whole = [replace(part, opened=part.opened or [None] * len(part)) for part in parts]
        if parts[0].scales is not None:
            # Parts without resampled recordings have 0 lobes.
            return replace(super().joined(whole), lobes=max(part.lobes for part in parts))
        unscaled = super().joined([replace(part, scales=part.lengths) for part in whole])
        return replace(unscaled, scales=None, lobes=0)

    def __len__(self) -> int:
        return len(self.recordings)

    def row(self, number: int) -> _Request:
        recording = self.opened[number]
        assert recording is not None, "WAV files are read together"
        return _Request(recording, 1.0 if self.scales is None else float(self.scales[number]))


@register_operator
class AudioDecoder(Operator[_Encoded, _Request, _Requests]):
    """Decodes audio files of any format that libsndfile reads: WAV, FLAC, Ogg, MP3, AIFF and others.

    The first output has the shape (time, channels), or (time,) with `downmix`; the second is the sample rate in Hz. For integer outputs,
    the values of floating-point files are not scaled.

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

    def describe(self, workspace: Workspace[_Encoded, _Request, _Requests]) -> list[OutputSpec]:
        encoded = workspace.inputs[0]
        if len(encoded) and encoded.dtype != UINT8:
            raise RuntimeError(f"Encoded files must be uint8 data, got {dtype_name(encoded.dtype)}")
        if len(encoded) and encoded.ndim() != 1:
            raise RuntimeError(f"Encoded files must be 1-D data, got {encoded.ndim()} dimensions")
        workspace.state = _Encoded(encoded)
        return [OutputSpec(self.args["dtype"], ndim=1 if self.args["downmix"] else 2), OutputSpec(FLOAT, ndim=0)]

    def infer_batch(self, samples: Samples[_Encoded, _Request, _Requests]) -> tuple[list[np.ndarray], _Requests]:
        recordings, unusual = samples.state.read(samples)
        opened = self._open_others(samples, recordings) if unusual else []
        frames, rates, scales, lobes = recordings["frames"], recordings["rate"], None, 0
        lengths: np.ndarray = frames
        if samples.given("sample_rate"):
            wanted = samples.scalars("sample_rate")
            scales = np.where(wanted > 0, wanted / rates, 1.0)
            # A requested rate of 0 means no resampling, but the operator still returns 0 as the rate.
            rates = np.broadcast_to(wanted, rates.shape)
            with np.errstate(invalid="ignore"):
                lengths = np.ceil(frames * scales)
            if ((scales != 1) & (frames > 0)).any():
                lobes = lobes_of_quality(self.args["quality"])
            if not (lengths * recordings["channels"] <= UNCHECKED_VALUES).all():
                self._check_sizes(samples, recordings, scales)
        if samples.workspace.decoding.limits != UNLIMITED:
            self._check_sizes(samples, recordings, np.ones(len(samples)) if scales is None else scales)
        shapes = np.empty((len(samples), 1 if self.args["downmix"] else 2), np.int64)
        shapes[:, 0] = lengths
        if not self.args["downmix"]:
            shapes[:, 1] = recordings["channels"]
        return [shapes, np.empty((len(samples), 0), np.int64)], _Requests(
            recordings, opened, scales, rates, shapes[:, 0], lobes
        )

    @staticmethod
    def _open_others(samples: Samples[_Encoded, _Request, _Requests], recordings: np.ndarray) -> list[Recording | None]:
        """Return the open recordings that are not plain WAV files; None for plain WAV files. Open those that are not open yet.

        Raises:
            CorruptRecordingError: some recordings could not be opened.
        """
        workspace, opened = samples.workspace, list[Recording | None]([None] * len(samples))
        failed = False
        for row in np.flatnonzero(recordings["encoding"] == Encoding.UNUSUAL).tolist():
            index = samples.indices[row]
            recording = samples.state.opened.get(index)
            if recording is None:
                try:
                    recording = open_recording(samples.state.bytes_of(index), workspace.decoding)
                except PenstockError as error:
                    workspace.fail(index, error)
                    failed = True
                    continue
                samples.state.opened[index] = recording
            opened[row] = recording
            for name in ("frames", "channels", "rate"):
                recordings[name][row] = getattr(recording, name)
        if failed:
            raise CorruptRecordingError("Some of the files are not recordings")
        return opened

    def _check_sizes(
        self, samples: Samples[_Encoded, _Request, _Requests], recordings: np.ndarray, scales: np.ndarray
    ) -> None:
        """Raise an exception if a recording, as stored or resampled with its scale, exceeds the length or memory limits."""
        sizes = samples.of(samples.workspace.inputs[0].shapes)
        itemsize = numpy_dtype(self.args["dtype"]).itemsize
        for (_, _, frames, channels, rate), scale, (size,) in zip(recordings.tolist(), scales.tolist(), sizes):
            length = math.ceil(frames * scale)
            if length > frames:
                check_length(length, channels, rate, size)
            samples.workspace.decoding.limits.check_audio(max(length, frames), channels, itemsize)

    def working_bytes(self, workspace: Workspace[_Encoded, _Request, _Requests]) -> Sequence[int]:
        if not workspace.state.opened:
            return ()
        working = [0] * workspace.batch_size
        for index, recording in workspace.state.opened.items():
            sample = workspace.samples[index]
            if sample is not None:
                result = _FLOAT_BYTES * recording.frames * recording.channels
                # The decoding worker process holds a second copy of the decoded samples.
                working[index] = recording_bytes(sample.shapes[0][0]) + result
                if self._is_converted(sample.plan):
                    # Memory for the decoded samples as floats, and for their mean over the channels, which takes at most as much.
                    working[index] += 2 * result
        return working

    def _is_converted(self, request: _Request) -> bool:
        """Return whether a recording is resampled or its channels are mixed to one."""
        return request.scale != 1 or (self.args["downmix"] and request.recording.channels > 1)

    def compute_samples(self, workspace: Workspace[_Encoded, _Request, _Requests], shapes: Sequence[Shape]) -> None:
        live = workspace.live_indices
        if not live:
            return
        plans, rates = workspace.plans, workspace.outputs[1]
        if rates.elements is not None and not workspace.failures:
            rates.elements[:] = plans.rates
        else:
            for row, index in enumerate(live):
                rates.samples[index][...] = plans.rates[row]
        rows = [row for row, recording in enumerate(plans.opened) if recording is None]
        if rows or not plans.opened:
            self._compute_together(workspace, rows)
        if len(rows) < len(plans.opened):
            others = [index for row, index in enumerate(live) if plans.opened[row] is not None]
            self.compute_some(workspace, others, shapes)

    def _compute_together(self, workspace: Workspace[_Encoded, _Request, _Requests], rows: list[int]) -> None:
        """Decode plain WAV files in one call.

        Args:
            workspace: the batch.
            rows: the files' rows in the plans; empty: all files are plain WAV files.
        """
        from penstock.kernels.cpu.recordings import compute_recordings

        plans, targets = workspace.plans, places_of_samples(workspace.outputs[0])
        assert targets is not None, "outputs are contiguous"
        recordings, lengths, scales = plans.recordings, plans.lengths, plans.scales
        if rows:
            recordings, lengths, scales = recordings[rows], lengths[rows], None if scales is None else scales[rows]
        if len(recordings) < workspace.batch_size:
            live = workspace.live_indices
            targets = targets[[live[row] for row in rows or range(len(recordings))]]
        compute_recordings(
            recordings,
            targets,
            lengths,
            scales,
            self.args["downmix"],
            plans.lobes,
            numpy_dtype(self.args["dtype"]),
            workspace.num_threads,
            workspace.cores,
        )

    def compute(self, sample: Sample[_Encoded, _Request]) -> None:
        recording, out = sample.plan.recording, sample.outputs[0]
        if not self._is_converted(sample.plan):
            recording.read_into(out if out.ndim == 2 else out[:, None])
            return
        signal = np.empty((recording.frames, recording.channels), np.float32)
        recording.read_into(signal)
        if self.args["downmix"]:
            signal = signal.mean(axis=1)
        if sample.plan.scale != 1 and signal.size:
            signal = resample_signal(signal, sample.plan.scale, len(out), lobes_of_quality(self.args["quality"]))
        from_unit(signal, out)
