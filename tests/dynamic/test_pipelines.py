"""Pipelines made from functions in dynamic mode give the same results, also when saved and loaded, and served by a real Triton."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http
from PIL import Image

from penstock import Pipeline, dynamic
from penstock.dynamic import Batch
from penstock.serving.server import LocalServer

pytestmark = pytest.mark.every_case


def picture(seed: int) -> np.ndarray:
    """Return an encoded image, which depends on the seed."""
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (20 + seed, 30, 3), np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return np.frombuffer(buffer.getvalue(), np.uint8)


def preprocess(encoded: Batch) -> dict[str, Batch]:
    images = dynamic.decoders.image(encoded)
    small = dynamic.resize(images, size=[16, 16])
    pixels = dynamic.crop_mirror_normalize(small, mean=[127.0] * 3, std=[64.0] * 3, output_layout="CHW")
    return {"pixels": pixels, "brightness": dynamic.reductions.mean(small)}


def test_results_are_the_function_s(tmp_path: Path) -> None:
    examples = [picture(0), picture(1)]
    made = dynamic.capture.pipeline(preprocess, examples, batch_size=4, num_threads=1)
    made.save(str(tmp_path / "model.json"))
    data = [picture(seed) for seed in range(2, 5)]
    expected = preprocess(dynamic.as_batch(data))
    for pipeline in (made, Pipeline.load(str(tmp_path / "model.json"))):
        pipeline.feed_input("encoded", data)
        for batch, own in zip(pipeline.run(), expected.values()):
            np.testing.assert_array_equal(batch.as_array(), np.asarray(own))


def test_inputs_and_outputs_have_names() -> None:
    made = dynamic.capture.pipeline(preprocess, [picture(0)], batch_size=4)
    assert [node.name for node in made.graph.outputs] == ["pixels", "brightness"]
    passed = dynamic.capture.pipeline(lambda first, second: {"same": first, "sum": first + second}, [1, 2], [3, 4])
    assert [node.name for node in passed.graph.outputs] == ["same", "sum"]
    assert {op.name for op in passed.graph.operators} >= {"first", "second"}


def test_random_operators_draw_from_the_pipeline() -> None:
    def noisy(numbers: Batch) -> Batch:
        return numbers + dynamic.random.uniform(range=[0, 1], batch_size=numbers.batch_size)

    made = dynamic.capture.pipeline(noisy, [0.0, 0.0], seed=3, exec_pipelined=False)
    runs = []
    for _ in range(2):
        made.feed_input("numbers", np.zeros(2, np.float32))
        runs.append(made.run()[0].as_array().tolist())
    assert runs[0] != runs[1]
    assert len(made.graph.operators) == 3


def test_what_cannot_be_a_pipeline() -> None:
    with pytest.raises(TypeError, match=r"Output .x. is not a result.*ndarray"):
        dynamic.capture.pipeline(lambda numbers: {"x": np.asarray(numbers) + 1}, [1, 2])
    with pytest.raises(TypeError, match="Output 1 is not a result"):
        dynamic.capture.pipeline(lambda numbers: (numbers + 1, dynamic.batch([1, 2]) + 1), [1, 2])
    with pytest.raises(ValueError, match=r"\[1, 2\]"):
        dynamic.capture.pipeline(lambda first, second: first, [1, 2], [1])


def test_a_real_server_answers_as_the_function_does(tmp_path: Path) -> None:
    folder = tmp_path / "preprocess" / "1"
    folder.mkdir(parents=True)
    made = dynamic.capture.pipeline(preprocess, [picture(0)], batch_size=4, num_threads=1)
    made.save(str(folder / "model.json"))
    (tmp_path / "preprocess" / "config.pbtxt").write_text('backend: "penstock"\nmax_batch_size: 4\n')
    data = picture(7)
    with LocalServer(tmp_path) as server, tritonclient.http.InferenceServerClient(server.http_url) as client:
        tensor = tritonclient.http.InferInput("encoded", [1, data.size], "UINT8")
        tensor.set_data_from_numpy(data[None])
        answer = client.infer("preprocess", [tensor])
        found = {name: answer.as_numpy(name) for name in ("pixels", "brightness")}
    for name, expected in preprocess(dynamic.as_batch([data])).items():
        np.testing.assert_array_equal(found[name].reshape(-1), np.asarray(expected).reshape(-1))
