"""``penstock export --preset`` reports a file that is not a model's configuration in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

CLASSES_NEAR_CLIP = "The nearest names are CLIPImageProcessor, "


def export(path: Path) -> str:
    """Run `penstock export --preset` on a file, and return the output."""
    words = [sys.executable, "-m", "penstock", "export", "--preset", path, path.parent / "model"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode
    assert done.stdout == ""
    return done.stderr


def test_a_picture(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    said = export(tmp_path / "a.png")
    assert f"'{tmp_path}/a.png' is not JSON, and a preset is made from a model's own preprocessor_config.json" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"image_processor_type": "CLPImageProcesor"}, CLASSES_NEAR_CLIP),
        ({"image_processor_type": "x"}, "`penstock.presets.families()` lists all"),
        ({}, "names no class (`image_processor_type`)"),
        ([], "holds no object"),
    ],
)
def test_a_class_without_a_preset(configuration: object, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(configuration))
    said = export(tmp_path / "a.json")
    assert words in said
    assert said.count("\n") == 1
    assert len(said) < 300 + len(str(tmp_path))
