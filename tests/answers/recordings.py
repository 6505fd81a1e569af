"""Compares the texts that the served pipeline transcribes with a reference that uses the same networks.

The reference uses Silero's function, and computes Whisper's log-mel spectrogram in PyTorch.
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime
import soundfile
import torch
from pages import edit_distance

from penstock.examples import load_example

FOLDER = Path(__file__).resolve().parents[2] / "client_examples" / "recordings"
RATE = 16000
_MAX_SAMPLES = 30 * RATE  # the longest input of Whisper
_PAUSE = int(0.4 * RATE)
_END = 50256  # Whisper's token for the end of a text


@dataclass(frozen=True)
class Recording:
    """A recording of known words.

    Attributes:
        name: the recording's name.
        content: the recording as an audio file.
        words: the spoken words, in lower case.
    """

    name: str
    content: bytes
    words: tuple[str, ...]


def recordings(conditions: bool = True) -> list[Recording]:
    """Return recordings of single sentences.

    With ``conditions``, also return each sentence with noise, at a low volume, and on one of two channels, and recordings of
    several sentences in a row.
    """
    lines = (FOLDER / "transcripts.txt").read_text().splitlines()
    words = {name: tuple(text.lower().split()) for name, text in (line.split(" ", 1) for line in lines)}
    found = [Recording(name, (FOLDER / f"{name}.ogg").read_bytes(), said) for name, said in words.items()]
    if not conditions:
        return found
    signals = {name: soundfile.read(FOLDER / f"{name}.ogg", dtype="float32")[0] for name in words}
    for name, signal in signals.items():
        rng = np.random.default_rng(0)
        noise = rng.normal(0, np.sqrt(np.mean(signal**2)), len(signal)).astype(np.float32)
        changed = {
            "with noise at 20 dB": signal + 0.1 * noise,
            "with noise at 10 dB": signal + 0.316 * noise,
            "at a tenth of the volume": 0.1 * signal,
            "on one of two channels": np.stack([signal, np.zeros_like(signal)], axis=1),
        }
        found += [Recording(f"{name} {how}", _file(own), words[name]) for how, own in changed.items()]
    for count in (2, 5, 15):
        names = [list(words)[number % len(words)] for number in range(count)]
        whole = np.concatenate([np.pad(signals[name], (0, _PAUSE)) for name in names])
        found.append(Recording(f"{count} sentences", _file(whole), sum((words[name] for name in names), ())))
    return found


def _file(signal: np.ndarray) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, np.clip(signal, -1, 1), RATE, format="WAV", subtype="PCM_16")
    return stream.getvalue()


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case and without punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower())


# -- Penstock --------------------------------------------------------------------------------------------------------------


class Ours:
    """Transcribes one recording at a time with Penstock's pipeline.

    Args:
        folder: the folder of the model `speech`.
    """

    def __init__(self, folder: Path) -> None:
        spec = importlib.util.spec_from_file_location("speech_pipeline", folder / "1" / "pipeline.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._pipeline = module.speech(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
        self._pipeline.build()

    def transcribe(self, content: bytes) -> list[str]:
        """Return the text of each segment."""
        text, _scores, _seconds, _ = self._pipeline.run(encoded_audio=[np.frombuffer(content, np.uint8)])
        return [bytes(np.array(own)).decode() for own in text]

    def close(self) -> None:
        """Close the pipeline."""
        self._pipeline.close()


# -- the reference -----------------------------------------------------------------------------------------------------


class Reference:
    """Transcribes as a client that calls both networks, with Silero's function and Whisper's features computed in PyTorch.

    Args:
        folder: the folder of the model `speech`, which contains Whisper's network.
        temporary: the folder into which Silero's network is written.
    """

    def __init__(self, folder: Path, temporary: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        torch.set_num_threads(1)
        network = str(folder / "1" / "whisper.onnx")
        self._whisper = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
        self._vocabulary = (folder / "1" / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
        self._silero = silero(temporary)
        self._detector = self._silero.OnnxWrapper(str(temporary / "silero_vad.onnx"), force_onnx_cpu=True)
        self.seconds_in_networks = 0.0

    def transcribe(self, content: bytes) -> list[str]:
        """Return the text of each segment."""
        audio, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
        assert rate == RATE
        signal = torch.from_numpy(audio.mean(axis=1))
        found = self._silero.get_speech_timestamps(signal, self._detector, max_speech_duration_s=30)
        joined: list[list[int]] = []
        for segment in found:
            if joined and segment["end"] - joined[-1][0] <= _MAX_SAMPLES:
                joined[-1][1] = segment["end"]
            else:
                joined.append([segment["start"], segment["end"]])
        return [self._text(log_mel(signal[start:end])) for start, end in joined]

    def _text(self, features: torch.Tensor) -> str:
        began = time.process_time()
        (tokens,) = self._whisper.run(["tokens"], {"features": features[None].numpy()})
        self.seconds_in_networks += time.process_time() - began
        # In the vocabulary, ASCII letters represent themselves, and "Ġ" represents a space.
        return "".join(self._vocabulary[token] for token in tokens[0] if token < _END).replace("Ġ", " ").strip()


def silero(temporary: Path) -> ModuleType:
    """Write Silero's network into a folder, and return Silero's module."""
    (package,) = [own for own in load_example("speech").packages if own.name == "silero-vad"]
    module = ModuleType("silero_utils")
    with package.download(temporary) as wheel:
        # silero-vad imports torchaudio to read files. This script reads none with it.
        with mock.patch.dict(sys.modules, {"torchaudio": ModuleType("torchaudio")}):
            exec(compile(wheel.read("silero_vad/utils_vad.py"), "utils_vad.py", "exec"), module.__dict__)
        (temporary / "silero_vad.onnx").write_bytes(wheel.read("silero_vad/data/silero_vad.onnx"))
    return module


def log_mel(signal: torch.Tensor) -> torch.Tensor:
    """Return Whisper's features of up to 30 seconds, by the same steps as Whisper, with PyTorch's Fourier transform in single precision."""
    filled = torch.nn.functional.pad(signal[:_MAX_SAMPLES], (0, max(_MAX_SAMPLES - len(signal), 0)))
    spectrum = torch.stft(filled, 400, 160, window=torch.hann_window(400), return_complex=True)
    bands = torch.from_numpy(_mel_filters()) @ (spectrum[..., :-1].abs() ** 2)
    logarithms = torch.clamp(bands, min=1e-10).log10()
    return (torch.maximum(logarithms, logarithms.max() - 8) + 4) / 4


def _mel_filters() -> np.ndarray:
    """Return mel filters by Slaney's formula, float32 of shape (80, 201)."""
    step, knee = 200 / 3, np.log(6.4) / 27

    def mels(hertz: float) -> float:
        return hertz / step if hertz < 1000 else 15 + float(np.log(hertz / 1000)) / knee

    points = np.linspace(mels(0), mels(RATE / 2), 82)
    edges = np.where(points < 15, points * step, 1000 * np.exp((points - 15) * knee))
    slopes = edges[:, None] - np.linspace(0, RATE / 2, 201)
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]))
    filters: np.ndarray = (triangles * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)
    return filters


# -- the comparison --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The texts that Penstock's pipeline and the reference transcribe, compared.

    Attributes:
        recordings: the number of recordings.
        changed: the number of recordings that our pipeline transcribes differently from the reference.
        errors, reference_errors: the number of words that our pipeline and the reference got wrong.
        words: the number of words in all recordings.
        ours_ms, reference_ms: the median processor time for a recording, in milliseconds.
        networks: the fraction of the reference's processor time that is spent in Whisper's network.
    """

    recordings: int
    changed: int
    errors: int
    reference_errors: int
    words: int
    ours_ms: float
    reference_ms: float
    networks: float


def compare(given: Sequence[Recording], folder: Path, temporary: Path) -> Comparison:
    """Transcribe each recording with our pipeline and with the reference, and compare the texts."""
    ours, reference = Ours(folder), Reference(folder, temporary)
    both: tuple[Any, Any] = ours, reference
    times: tuple[list[float], list[float]] = [], []
    changed = errors = reference_errors = 0
    for one in both:
        one.transcribe(given[0].content)
    reference.seconds_in_networks = 0.0
    for recording in given:
        found: list[list[str]] = []
        for one, own in zip(both, times):
            began = time.process_time()
            found.append(one.transcribe(recording.content))
            own.append(time.process_time() - began)
        mine, theirs = found
        changed += mine != theirs
        errors += edit_distance(words_of(" ".join(mine)), recording.words)
        reference_errors += edit_distance(words_of(" ".join(theirs)), recording.words)
    ours.close()
    return Comparison(
        len(given),
        changed,
        errors,
        reference_errors,
        sum(len(recording.words) for recording in given),
        1e3 * float(np.median(times[0])),
        1e3 * float(np.median(times[1])),
        reference.seconds_in_networks / sum(times[1]),
    )


def table(comparisons: Mapping[str, Comparison]) -> str:
    """Return a table in Markdown, with a row for each named comparison."""
    lines = [
        "| recordings | changed answers | wrong words, ours | the reference's | ms a recording, ours | the reference's | in Whisper |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for name, own in comparisons.items():
        lines.append(
            f"| {own.recordings} {name} | {own.changed} | {own.errors} of {own.words} | {own.reference_errors} | {own.ours_ms:.0f} "
            f"| {own.reference_ms:.0f} | {own.networks:.0%} |"
        )
    return "\n".join(lines)
