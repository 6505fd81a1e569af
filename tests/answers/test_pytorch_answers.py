"""Networks answer the same after Penstock's preprocessing as after the original preprocessing: a sample of `make answers`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import pages

import photographs
import recordings
from penstock.examples import load_example

pytestmark = [pytest.mark.timeout(600), pytest.mark.exhaustive]


def test_photographs_get_the_same_answers(tmp_path: Path) -> None:
    load_example("imagenet").add(tmp_path)
    given = photographs.pictures([photographs.PHOTOGRAPHS], quarters=False)
    classifier = photographs.Classifier(tmp_path / "mobilenet_v2_classifier")
    arrays = list(given.values())
    resized = {
        "torchvision": [photographs.LIBRARIES["torchvision, tensors"](array) for array in arrays],
        "pil": [photographs.LIBRARIES["torchvision, PIL images (Pillow)"](array) for array in arrays],
    }
    for reference, expected in resized.items():
        top5, own = (
            classifier.top5([photographs.crop(array) for array in kind])
            for kind in (expected, photographs.ours(arrays, reference))
        )
        assert (top5 == own).all(), reference
        right = sum(
            classifier.labels[best].lower() == name.replace("-", " ")
            for best, name in zip(own[:, 0], given, strict=True)
        )
        assert right >= 10


def test_lines_are_read_as_by_the_networks_own_steps(tmp_path: Path) -> None:
    load_example("ocr").add(tmp_path)
    for photographed in (False, True):
        compared = pages.compare(pages.pages(3, photographed), tmp_path / "ocr")
        assert (compared.lines, compared.changed) == (12, 0)
        assert compared.errors <= compared.characters // 100


def test_sentences_are_transcribed_as_by_the_networks_own_steps(tmp_path: Path) -> None:
    load_example("speech").add(tmp_path)
    (tmp_path / "wheels").mkdir()
    given = [*recordings.recordings(conditions=False), recordings.recordings()[-2]]
    compared = recordings.compare(given, tmp_path / "speech", tmp_path / "wheels")
    assert (compared.recordings, compared.changed) == (6, 0)
    assert compared.errors <= compared.words // 8


def test_word_errors() -> None:
    given = (("a b", "a b"), ("a", "a b c"), ("", "a"), ("the river", "a river ran"))
    assert [pages.edit_distance(found.split(), said.split()) for found, said in given] == [0, 2, 1, 2]
    assert recordings.words_of("The river's 2 banks, today!") == ["the", "river's", "2", "banks", "today"]


def test_edit_distance() -> None:
    assert [pages.edit_distance(a, b) for a, b in (("", "ab"), ("abc", "abc"), ("kitten", "sitting"))] == [2, 0, 3]
