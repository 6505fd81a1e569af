"""Presets through Triton: a request with several images gets what the Hugging Face processor returns for them in one call."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock.serving.export import export_preset
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from configurations import CONFIGURATIONS
from processors import pictures
from record import FAMILIES_RECORDED, PICTURE_MOST, PICTURES, digest_of
from served import ask, stopped_later

# The first test waits for the server.

MODELS = {"qwen2-vl-small": ("pixel_values", "image_grid_thw"), "llama4-small": ("pixel_values", "aspect_ratios")}
FILES = [picture.file.tobytes() for picture in pictures(PICTURES, PICTURE_MOST, slender=True)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, model_host: Any) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("presets")
    for name in MODELS:
        configuration = folder / f"{name}.json"
        configuration.write_text(json.dumps(CONFIGURATIONS[name]))
        export_preset(configuration, folder / "models" / name, batch_size=8)
    with stopped_later(LocalServer(folder / "models", model_host=model_host)) as server:
        yield server.http_url


def digests(url: str, model: str, files: list[bytes]) -> dict[str, Any]:
    with tritonclient.http.InferenceServerClient(url) as client:
        answer = ask(client, model, images=np.array(files, np.object_).reshape(-1, 1))
    return {name: digest_of(answer.as_numpy(name)) for name in MODELS[model]}


@pytest.mark.parametrize("model", MODELS)
def test_a_request_gets_what_the_processor_gives(url: str, model: str) -> None:
    recorded = json.loads(FAMILIES_RECORDED.read_text())[f"{model} torchvision"]
    with ThreadPoolExecutor(4) as pool:
        apart = list(pool.map(lambda file: digests(url, model, [file]), FILES * 4))
    assert apart == recorded[:-1] * 4
    assert digests(url, model, FILES) == recorded[-1]


def test_what_the_processor_refuses_is_refused(url: str) -> None:
    held = io.BytesIO()
    Image.new("RGB", (300, 1)).save(held, "PNG")
    with pytest.raises(InferenceServerException, match="aspect ratio of 300: the maximum is 200"):
        digests(url, "qwen2-vl-small", [held.getvalue()])
