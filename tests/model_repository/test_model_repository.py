"""The shipped models match their sources and each other."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from penstock.serving.export import export_model
from penstock.serving.model_files import load_pipeline

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = ROOT / "model_repository"
PIPELINES = sorted((ROOT / "pipelines").glob("*.py"))


def encoded(height: int, width: int, encoding: str = "PNG") -> np.ndarray:
    """Return the bytes of an image file with a smooth colour gradient."""
    rows, columns = np.mgrid[0:height, 0:width]
    pixels = np.stack([rows * 255 // height, columns * 255 // width, (rows + columns) % 256], -1).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, encoding)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def run(name: str, *images: np.ndarray) -> list[list[np.ndarray]]:
    """Return the outputs of a model's pipeline for encoded images, each a list of samples."""
    pipeline = load_pipeline(ROOT / "pipelines" / f"{name}.py", num_threads=2, prefetch_queue_depth=1)
    pipeline.build()
    pipeline.feed_input("encoded_image", list(images))
    return [[np.array(sample) for sample in output] for output in pipeline.run()]


@pytest.mark.parametrize("source", PIPELINES, ids=lambda path: path.stem)
def test_model_is_what_its_pipeline_exports(source: Path, tmp_path: Path) -> None:
    for made in export_model(source, tmp_path / source.stem):
        shipped = REPOSITORY / made.relative_to(tmp_path)
        assert shipped.read_text() == made.read_text()


def test_digits_are_grey_and_centred() -> None:
    ((small, large),) = run("digits_preprocess", encoded(32, 32), encoded(90, 200, "JPEG"))
    grey = np.asarray(Image.open(io.BytesIO(encoded(32, 32).tobytes())).convert("L"), np.float32)
    assert small.shape == large.shape == (1, 32, 32)
    np.testing.assert_allclose(small[0], grey / 127.5 - 1, atol=1.01 / 127.5)


def test_imagenet_crop_is_normalized() -> None:
    ((image,),) = run("imagenet_preprocess", encoded(256, 320))
    pixels = np.asarray(Image.open(io.BytesIO(encoded(256, 320).tobytes())), np.float32)[16:240, 48:272] / 255
    expected = (pixels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    np.testing.assert_allclose(image, expected.transpose(2, 0, 1), atol=1e-4)


@pytest.mark.parametrize(("height", "width"), [(427, 640), (853, 1280), (1001, 700), (33, 700), (50, 50)])
def test_letterbox_maps_back(height: int, width: int) -> None:
    (image,), (scale,), (offset,) = run("detection_preprocess", encoded(height, width))
    assert image.shape == (3, 640, 640)
    assert scale == pytest.approx([640 / max(height, width)])
    inside = (np.abs(image - 114 / 255) > 1e-6).any(0)
    for axis, extent in enumerate((width, height)):
        filled = np.flatnonzero(inside.any(axis))
        begin, end = offset[axis], offset[axis] + extent * scale[0]
        assert filled[0] == pytest.approx(begin, abs=0.51)
        assert filled[-1] + 1 == pytest.approx(end, abs=0.51)
        # The borders on both sides differ by at most one pixel.
        assert begin == pytest.approx(640 - end, abs=1.01)


def test_network_has_the_configured_tensors() -> None:
    session = onnxruntime.InferenceSession(
        str(REPOSITORY / "digits_classifier" / "1" / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    assert [(tensor.name, tensor.type, tensor.shape[1:]) for tensor in session.get_inputs()] == [
        ("image", "tensor(float)", [1, 32, 32])
    ]
    assert [(tensor.name, tensor.type, tensor.shape[1:]) for tensor in session.get_outputs()] == [
        ("label", "tensor(int64)", [1]),
        ("scores", "tensor(float)", [10]),
    ]


def test_onnx_configuration_differs_in_who_runs_it() -> None:
    folder = REPOSITORY / "digits_classifier"
    plain, native = (
        [line for line in (folder / name).read_text().splitlines() if not line.startswith("#")]
        for name in ("config.pbtxt", "configs/onnx.pbtxt")
    )
    assert set(native) - set(plain) == {'backend: "onnxruntime"', 'default_model_filename: "model.onnx"'}
    assert set(plain) - set(native) == {'backend: "python"', "instance_group [ { kind: KIND_CPU } ]"}


def test_network_runs_as_those_of_examples() -> None:
    examples = ROOT / "backend" / "penstock" / "examples"
    shipped = REPOSITORY / "digits_classifier" / "1" / "model.py"
    assert shipped.read_text() == (examples / "onnx_model.py").read_text()


def test_network_is_small() -> None:
    assert (REPOSITORY / "digits_classifier" / "1" / "model.onnx").stat().st_size < 1_000_000
