"""The training pipeline ends with the same steps as the served pipeline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline
from penstock.plugin.base_iterator import BaseIterator
from penstock.plugin.epochs import LastBatchPolicy
from penstock.serving.model_files import load_pipeline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
from digits_data import Look, encode, load_split, random_look, write_digits  # noqa: E402
from digits_pipeline import READER, SERVED, digits_pipeline  # noqa: E402

_COUNT, _BATCH = 96, 32


class _Batches(BaseIterator):
    """An iterator over a pipeline's images and labels, like the frameworks' iterators, but with numpy arrays."""

    def _converted(self, outputs: list[tuple[Any, ...]]) -> tuple[np.ndarray, np.ndarray]:
        ((images, labels),) = outputs
        return np.array(images.as_array()), np.array(labels.as_array())[:, 0]

    def _trimmed(self, batch: Any, kept: Any) -> Any:
        images, labels = batch
        return images[: kept[0]], labels[: kept[0]]


def _epoch(pipeline: Pipeline) -> tuple[np.ndarray, np.ndarray]:
    batches = _Batches(pipeline, reader_name=READER, last_batch_policy=LastBatchPolicy.PARTIAL)
    images, labels = zip(*batches)
    return np.concatenate(images), np.concatenate(labels)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the paths of images such as clients send: of various sizes, in grey and colour, as PNG and JPEG."""
    folder, rng = tmp_path_factory.mktemp("sent"), np.random.default_rng(5)
    looks = [random_look(rng) for _ in range(_COUNT - 1)] + [Look(300, "JPEG", colour=True)]
    paths = [folder / str(number) for number in range(_COUNT)]
    for path, digit, look in zip(paths, load_split().held_out_digits, looks):
        path.write_bytes(encode(digit, look))
    return paths


@pytest.mark.parametrize("served_from", [SERVED, ROOT / "model_repository" / "digits_preprocess"], ids=lambda p: p.name)
def test_tensors_in_training_are_those_that_are_served(sent: list[Path], served_from: Path) -> None:
    trained, labels = _epoch(digits_pipeline(list(map(str, sent)), range(_COUNT), _BATCH, augmented=False))
    np.testing.assert_array_equal(labels, np.arange(_COUNT))
    file = served_from if served_from.suffix else next((served_from / "1").iterdir())
    served = load_pipeline(file, batch_size=_COUNT, num_threads=2)
    served.feed_input("encoded_image", [np.fromfile(path, np.uint8) for path in sent])
    (images,) = served.run()
    np.testing.assert_array_equal(trained, images.as_array())


def test_random_looks(tmp_path: Path) -> None:
    split = load_split()
    files = write_digits(tmp_path, split.train_digits[:_COUNT])
    numbers = list(range(_COUNT))
    first, labels = _epoch(digits_pipeline(files, numbers, _BATCH, seed=3))
    again, same_labels = _epoch(digits_pipeline(files, numbers, _BATCH, seed=3))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(labels, same_labels)
    assert sorted(labels.tolist()) == numbers
    assert labels.tolist() != numbers
    plain, _ = _epoch(digits_pipeline(files, numbers, _BATCH, augmented=False))
    assert first.shape == plain.shape == (_COUNT, 1, 32, 32)
    assert first.min() >= -1 and first.max() <= 1  # noqa: PT018
    # A quarter of the images are inverted; the others resemble the original digits, slightly turned and moved.
    closeness = [np.corrcoef(look.ravel(), plain[label].ravel())[0, 1] for look, label in zip(first, labels)]
    assert np.mean(np.array(closeness) > 0.5) > 0.6
    assert 0.1 < np.mean(np.array(closeness) < -0.5) < 0.4
