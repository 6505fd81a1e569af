"""The trained classifier recognizes held-out digits through the served pipeline."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from penstock.serving.model_files import load_pipeline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
from digits_data import HELD_OUT, Look, encode, load_split, random_look  # noqa: E402

pytestmark = pytest.mark.exhaustive


@pytest.mark.parametrize(
    "look",
    [
        Look(16, "PNG"),
        Look(28, "JPEG", quality=75),
        Look(100, "JPEG", colour=True),
        Look(224, "PNG", inverted=True),
        Look(64, "PNG", angle=5.0, shift=(0.03, -0.03), zoom=0.9),
    ],
    ids=str,
)
def test_held_out_digits_are_recognized(look: Look) -> None:
    split = load_split()
    pipeline = load_pipeline(ROOT / "pipelines" / "digits_preprocess.py", batch_size=HELD_OUT, num_threads=2)
    pipeline.build()
    pipeline.feed_input(
        "encoded_image", [np.frombuffer(encode(digit, look), np.uint8) for digit in split.held_out_digits]
    )
    (images,) = pipeline.run()
    network = ROOT / "model_repository" / "digits_classifier" / "1" / "model.onnx"
    session = onnxruntime.InferenceSession(str(network), providers=["CPUExecutionProvider"])
    labels, scores = session.run(["label", "scores"], {"image": np.array(images.as_array())})
    assert (labels[:, 0] == split.held_out_labels).mean() >= 0.97
    np.testing.assert_array_equal(scores.argmax(1), labels[:, 0])
    np.testing.assert_allclose(scores.sum(1), 1, atol=1e-5)


def test_split_is_the_same_every_time() -> None:
    first, second = load_split(), load_split()
    assert first.held_out_digits.shape == (200, 8, 8)
    np.testing.assert_array_equal(first.held_out_labels, second.held_out_labels)
    assert not {digit.tobytes() for digit in first.held_out_digits} & {digit.tobytes() for digit in first.train_digits}


def test_random_looks_are_seeded() -> None:
    digit = load_split().train_digits[0]
    first, second = (encode(digit, random_look(np.random.default_rng(3))) for _ in range(2))
    assert first == second
