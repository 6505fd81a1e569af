"""Recipes for log-mel spectrograms equal the recorded results of librosa and torchaudio."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from penstock import Pipeline, fn

sys.path.insert(0, str(Path(__file__).parent))

from log_mel import RECIPES, RECORDED, sound

TOLERANCE_DB = 2e-3


@pytest.mark.parametrize("library", RECIPES)
def test_recipes_give_what_the_library_gave(library: str) -> None:
    pipeline = Pipeline(batch_size=1, num_threads=1)
    with pipeline:
        pipeline.set_outputs(RECIPES[library](fn.external_source(source=[[sound()]], cycle=True)))
    features = np.array(pipeline.run()[0][0])
    with np.load(RECORDED) as recorded:
        expected = recorded[library]
    assert features.shape == expected.shape
    np.testing.assert_allclose(features, expected, rtol=0, atol=TOLERANCE_DB)
