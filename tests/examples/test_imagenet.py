"""In the example imagenet, the network computes the same as in PyTorch, and photographs are classified correctly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.http

from penstock.examples.imagenet.mobilenet_v2 import mobilenet_v2
from penstock.serving.server import LocalServer

pytestmark = [pytest.mark.timeout(600), pytest.mark.exhaustive]

ROOT = Path(__file__).resolve().parents[2]
PHOTOGRAPHS = ROOT / "client_examples" / "photographs"
LOGITS = Path(__file__).with_name("mobilenet_v2_logits.npy")
# The correct ImageNet labels of the photographs.
RIGHT = {"barn", "baboon", "badger", "Border terrier", "maraca", "padlock", "parking meter", "radio telescope"}


def images() -> np.ndarray:
    """Return the inputs that `record_mobilenet_v2.py` used in PyTorch."""
    return np.random.default_rng(0).normal(0, 1, (2, 3, 224, 224)).astype(np.float32)


def test_network_answers_as_in_pytorch(repository: Path) -> None:
    network = onnxruntime.InferenceSession(
        str(repository / "mobilenet_v2_classifier" / "1" / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    (probabilities,) = network.run(["probabilities"], {"image": images()})
    logits = np.load(LOGITS)
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(np.log(probabilities), expected, atol=1e-4)


def test_labels_are_those_of_the_classes(repository: Path) -> None:
    labels = (repository / "mobilenet_v2_classifier" / "probabilities.txt").read_text().splitlines()
    assert len(labels) == 1000
    assert (labels[0], labels[151], labels[999]) == ("tench", "Chihuahua", "toilet tissue")


def test_photographs_get_their_names(repository: Path) -> None:
    files = sorted(PHOTOGRAPHS.glob("*.jpg"))
    with LocalServer(repository) as server:
        client = tritonclient.http.InferenceServerClient(server.http_url)
        encoded = tritonclient.http.InferInput("encoded_image", [len(files), 1], "BYTES")
        encoded.set_data_from_numpy(np.array([[file.read_bytes()] for file in files], np.object_))
        best = tritonclient.http.InferRequestedOutput("probabilities", class_count=1)
        together = client.infer("mobilenet_v2", [encoded], outputs=[best]).as_numpy("probabilities")
        answer = client.infer("mobilenet_v2", [encoded]).as_numpy("probabilities")
        client.close()
    names = dict(zip((file.stem for file in files), (found.decode().split(":")[2] for found in together[:, 0])))
    assert set(names.values()) >= RIGHT, names
    np.testing.assert_allclose(answer.sum(1), 1, atol=1e-5)


def test_other_weights_are_refused(weights: dict[str, np.ndarray]) -> None:
    others = {
        "there is no classifier.1.bias": {
            name: array for name, array in weights.items() if name != "classifier.1.bias"
        },
        "extra is not part of it": weights | {"extra": np.zeros(1, np.float32)},
    }
    for reason, given in others.items():
        with pytest.raises(ValueError, match=reason):
            mobilenet_v2(given)
    with pytest.raises(onnx.shape_inference.InferenceError):
        mobilenet_v2(weights | {"classifier.1.weight": np.zeros((1000, 1279), np.float32)})
