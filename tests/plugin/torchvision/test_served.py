"""An exported `Compose`, served in Triton, returns the values that it computes itself."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http
from PIL import Image
from transform_cases import picture
from tritonclient.utils import np_to_triton_dtype

from penstock.plugin.torchvision import export
from penstock.plugin.torchvision.transforms import v2
from penstock.serving.server import LocalServer


@pytest.mark.exhaustive
def test_models_answer_with_a_composes_values(tmp_path: Path) -> None:
    compose = v2.Compose([v2.Resize(50), v2.CenterCrop(33), v2.RandomAdjustSharpness(2.0, p=1.0)])
    normalized = v2.Compose(
        [compose, v2.ToImage(), v2.ToDtype("float32", scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
    )
    export(compose, tmp_path / "pixels")
    export(normalized, tmp_path / "tensors")
    files, expected = [], []
    for number in range(4):
        held = io.BytesIO()
        Image.fromarray(picture(number)).save(held, "JPEG")
        files.append([held.getvalue()])
        expected.append(np.asarray(compose(Image.open(held).convert("RGB"))))
    data = np.array(files, object)
    request = tritonclient.http.InferInput("images", list(data.shape), np_to_triton_dtype(data.dtype))
    request.set_data_from_numpy(data)
    with LocalServer(tmp_path) as server, tritonclient.http.InferenceServerClient(server.http_url) as client:
        pixels = client.infer("pixels", [request]).as_numpy("output")
        tensors = client.infer("tensors", [request]).as_numpy("output")
    np.testing.assert_array_equal(pixels, np.stack(expected))
    levels = np.stack(expected).astype(np.float32) * np.float32(1 / 255)
    np.testing.assert_array_equal(tensors, ((levels - np.float32(0.5)) / np.float32(0.25)).transpose(0, 3, 1, 2))
