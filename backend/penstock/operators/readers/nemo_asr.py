"""`readers.nemo_asr`: reads speech and transcripts of data sets that are listed in NeMo manifests."""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.data_types import FLOAT, INT16, INT32, INT64, UINT8, dtype_name, numpy_dtype
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.kernels.levels import from_unit
from penstock.kernels.resampling import lobes_of_quality, resample_signal
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader
from penstock.schema import Alias, Argument, Deprecation, OutputSpec, Sample, Schema, register_operator
from penstock.schema.libraries import SOUNDFILE

_log = logging.getLogger(__name__)


class _Recording(NamedTuple):
    path: str
    offset: float
    duration: float
    text: str
    number: int


def _count_outputs(arguments: dict[str, object]) -> int:
    return (
        1
        + bool(arguments.get("read_sample_rate", True))
        + bool(arguments.get("read_text", True))
        + bool(arguments.get("read_idxs", False))
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"expected text, got {value!r}")
    value.encode("utf-8", "surrogateescape")
    return value


def _seconds(value: Any) -> float:
    if not math.isfinite(float(value)):
        raise ValueError(f"expected a number of seconds, got {value!r}")
    return float(value)


@register_operator
class NemoAsr(Reader):
    """Returns each recording, its sample rate (a float), its transcript (UTF-8 bytes) and its number in the manifest.

    Recordings have the shape (time,), or (time, channels) without ``downmix``. Each line of a manifest must be a JSON object with
    ``audio_filepath`` and, optionally, ``offset`` and ``duration`` in seconds, and ``text``; other lines are skipped
    with a warning in the log.

    >>> audio, rate, text = fn.readers.nemo_asr(manifest_filepaths=["train.json"])  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__NemoAsr",
        devices=("cpu",),
        needs=(SOUNDFILE,),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            Argument("downmix", "bool", True, "Replace the channels by their mean."),
            Argument("dtype", "DALIDataType", FLOAT, "Type of the recordings: FLOAT, INT16 or INT32."),
            Argument("manifest_filepaths", "string[]", doc="Paths of the manifests.", required=True, path=True),
            Argument("max_duration", "float", 0.0, "Skip longer recordings, in seconds; 0: skip none."),
            Argument("min_duration", "float", 0.0, "Skip shorter recordings, in seconds."),
            Argument("normalize_text", "bool", None, deprecated=Deprecation("0.28", removed=True)),
            Argument("quality", "float", 50.0, "Quality of resampling, from 0 to 100."),
            Argument("read_idxs", "bool", False, "Return the recordings' numbers."),
            Argument("read_sample_rate", "bool", True, "Return the recordings' sample rates."),
            Argument("read_text", "bool", True, "Return the transcripts."),
            Argument("sample_rate", "float", -1.0, "Resample to this rate in Hz; negative: as recorded."),
        ),
        outputs=_count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("NemoAsrReader", "1.0"),),
    )

    decodes = True

    def setup(self) -> None:
        if self.args["dtype"] not in (FLOAT, INT16, INT32):
            raise ValueError(
                f"Unsupported output type: {dtype_name(self.args['dtype'])}. Supported types are int16, int32, and float."
            )
        if not self.args["manifest_filepaths"]:
            raise ValueError("`manifest_filepaths` can not be empty")
        self._lobes = lobes_of_quality(self.args["quality"])
        super().setup()

    def list_items(self) -> Sequence[_Recording]:
        return [recording for path in self.args["manifest_filepaths"] for recording in self._kept(path)]

    def _kept(self, path: str) -> Iterator[_Recording]:
        shortest, longest = self.args["min_duration"], self.args["max_duration"]
        number = 0
        for line_number, line in enumerate(self.files.read_text(path).splitlines(), 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                recording = _Recording(
                    _text(entry["audio_filepath"]),
                    _seconds(entry.get("offset", 0.0)),
                    _seconds(entry.get("duration", -1.0)),
                    _text(entry.get("text", "")),
                    number,
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                _log.warning("Line %d of '%s' is skipped, for it describes no recording: %r", line_number, path, error)
                continue
            if (longest > 0 and recording.duration > longest) or 0 < shortest > recording.duration:
                continue
            yield recording
            number += 1

    def output_specs(self) -> list[OutputSpec]:
        specs = [OutputSpec(self.args["dtype"], "", 1 if self.args["downmix"] else 2)]
        if self.args["read_sample_rate"]:
            specs.append(OutputSpec(FLOAT, "", 0))
        if self.args["read_text"]:
            specs.append(OutputSpec(UINT8, "", 1))
        return [*specs, OutputSpec(INT64, "", 1)] if self.args["read_idxs"] else specs

    def read(self, item: _Recording) -> list[np.ndarray]:
        return self._read(item, UNLIMITED)

    def read_sample(self, item: _Recording, sample: Sample) -> list[np.ndarray]:
        return self._read(item, sample.workspace.decoding.limits)

    def _read(self, item: _Recording, limits: Limits) -> list[np.ndarray]:
        from soundfile import SoundFile, SoundFileError

        try:
            with SoundFile(io.BytesIO(self.files.read(item.path).tobytes())) as file:
                rate = int(file.samplerate)
                start = max(int(item.offset * rate), 0)
                if start > file.frames:
                    raise ValueError(
                        f"'{item.path}' has {file.frames / rate:g} seconds, and the recording begins at {item.offset:g}"
                    )
                wanted = file.frames if item.duration < 0 else int(item.duration * rate)
                count = min(wanted, file.frames - start)
                limits.check_audio(count, file.channels, numpy_dtype(self.args["dtype"]).itemsize)
                file.seek(start)
                outputs = [self._signal(file, count)]
        except SoundFileError as error:
            raise ValueError(f"'{item.path}' cannot be read: {getattr(error, 'error_string', error)}") from error
        if self.args["read_sample_rate"]:
            outputs.append(np.array(rate, np.float32))
        if self.args["read_text"]:
            outputs.append(np.frombuffer(bytearray(item.text.encode("utf-8", "surrogateescape")), np.uint8))
        if self.args["read_idxs"]:
            outputs.append(np.array([item.number], np.int64))
        return outputs

    def _signal(self, file: Any, count: int) -> np.ndarray:
        """Read the next ``count`` frames of an open file; mix, resample and convert them as the arguments request."""
        wanted, dtype = self.args["sample_rate"], numpy_dtype(self.args["dtype"])
        resampled = wanted > 0 and wanted != file.samplerate
        mixed = self.args["downmix"] and file.channels > 1
        if not resampled and not mixed:
            signal = file.read(count, dtype=dtype.name, always_2d=True)
            return signal[:, 0] if self.args["downmix"] else signal
        signal = file.read(count, dtype="float32", always_2d=True)
        if self.args["downmix"]:
            signal = signal.mean(axis=1)
        if resampled and signal.size:
            scale = wanted / file.samplerate
            signal = resample_signal(signal, scale, math.ceil(len(signal) * scale), self._lobes)
        output = np.empty(signal.shape, dtype)
        from_unit(signal, output)
        return output
