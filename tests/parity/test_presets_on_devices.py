"""Presets return the same bytes, under the same names, on a real or emulated GPU as on the CPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from penstock import Pipeline, fn, pipeline_def, presets
from penstock.cli._group import penstock as cli
from penstock.tensors import TensorListGPU

sys.path.insert(0, str(Path(__file__).parent))

from configurations import CONFIGURATIONS, FAMILIES, SMALL, VIDEOS
from processors import backends_of, pictures, strange_files, videos

pytestmark = pytest.mark.usefixtures("with_gpu")

COUNT, MOST = 6, 90
_LETTERBOX = {"image_processor_type": "YoloLetterboxImageProcessor", "size": {"height": 48, "width": 64}}
_WAVE = {"feature_extractor_type": "Wav2Vec2FeatureExtractor"}
_CODEC = {"feature_extractor_type": "DacFeatureExtractor", "hop_length": 320}


def given(device: str, pipeline: Pipeline, samples: Sequence[np.ndarray], batches: int = 1) -> list[list[np.ndarray]]:
    """Run batches; return the outputs of the last one, and check that they are on the GPU if ``device`` is "gpu"."""
    (name,) = (node.name for node in pipeline.graph.operators[0].outputs)
    for _ in range(batches):
        outputs = pipeline.run(**{name: list(samples)})
    assert [isinstance(batch, TensorListGPU) for batch in outputs] == [device == "gpu"] * len(outputs)
    pipeline.close()
    return [[np.array(sample) for sample in batch.as_cpu()] for batch in outputs]


def check_equal(configuration: Mapping[str, object], samples: Sequence[np.ndarray], **settings: Any) -> None:
    """Raise AssertionError unless both devices return the same bytes, also in later batches, which repeat recorded launches."""
    settings["batch_size"] = len(samples)
    on_cpu, on_gpu = (presets.preset(configuration, device=device, **settings) for device in ("cpu", "gpu"))
    assert [node.name for node in on_gpu.graph.outputs] == [node.name for node in on_cpu.graph.outputs]
    pairs = zip(given("cpu", on_cpu, samples), given("gpu", on_gpu, samples, batches=3), strict=True)
    for ours, theirs in ((one, other) for each in pairs for one, other in zip(*each, strict=True)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.every_case
@pytest.mark.parametrize("name", [*SMALL, *FAMILIES])
def test_images(name: str) -> None:
    files = [picture.file for picture in pictures(COUNT, MOST)]
    for backend in backends_of(name):
        check_equal(CONFIGURATIONS[name], files, backend=backend, num_threads=2)


@pytest.mark.parametrize("name", ["clip-plain", "qwen2-vl-small", "internvl-small"])
def test_images_that_are_no_files(name: str) -> None:
    images = [np.asarray(picture.image) for picture in pictures(COUNT, MOST)]
    check_equal(CONFIGURATIONS[name], images, encoded=False)


@pytest.mark.parametrize("name", VIDEOS)
def test_videos(name: str) -> None:
    check_equal(VIDEOS[name], videos())


@pytest.mark.parametrize(
    ("configuration", "samples"),
    [(_LETTERBOX, None), (_WAVE, [np.linspace(-1, 1, 700)]), (_CODEC, [np.linspace(-1, 1, 700), np.ones(3)])],
)
def test_what_the_host_computes(configuration: dict[str, object], samples: list[np.ndarray] | None) -> None:
    if samples is None:
        check_equal(configuration, [picture.file for picture in pictures(COUNT, MOST)])
    else:
        check_equal(configuration, [sample.astype(np.float32) for sample in samples], encoded=False)


@pytest.mark.parametrize("name", ["dinov2-small", "siglip2-small", "llava-next-small", "dinov3-small"])
def test_strange_files(name: str) -> None:
    """Files with palettes, CMYK or 16 bits have the same results on the GPU as on the CPU."""
    files = {what: np.frombuffer(file, np.uint8) for what, file in strange_files().items()}
    check_equal(
        CONFIGURATIONS[name], [files[what] for what in ("palette", "gray", "1 bit", "CMYK", "16 bits", "30 x 1")]
    )


@pytest.mark.every_case
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("name", ["vit-tf", "qwen2-vl-small", "llama4-small", "sam-small"])
def test_a_broken_image_fails_alone(name: str, device: str) -> None:
    files = [picture.file for picture in pictures(4, MOST)]
    broken = [files[0], files[1][:60], np.frombuffer(b"no image at all", np.uint8), files[3]]
    whole, partly = (presets.preset(CONFIGURATIONS[name], batch_size=4, device=device) for _ in range(2))
    expected = given(device, whole, files)
    partly.feed_input("images", broken)
    result = partly.executor.run_once(isolate=True)
    assert sorted(result.failures) == [1, 2]
    for batch, wanted in zip(result.outputs, expected, strict=True):
        samples = batch.as_cpu()
        for number in (0, 3):
            np.testing.assert_array_equal(np.array(samples[number]), wanted[number])
    partly.close()


def test_an_image_that_a_family_refuses_fails_alone() -> None:
    files = [picture.file for picture in pictures(2, MOST)]
    files.insert(1, np.frombuffer(strange_files()["700 x 3"], np.uint8))
    pipeline = presets.preset(CONFIGURATIONS["glm4v-small"], batch_size=3, device="gpu")
    pipeline.feed_input("images", files)
    result = pipeline.executor.run_once(isolate=True)
    assert list(result.failures) == [1]
    assert "the maximum is 200" in str(result.failures[1])
    pipeline.close()


def test_batches_that_are_decoded_ahead() -> None:
    """Batches are returned in order while the next ones are decoded; closing the pipeline discards decoded batches."""
    files = [picture.file for picture in pictures(8, MOST)]
    settings: dict[str, Any] = {"batch_size": 2, "num_threads": 3}
    ahead = presets.preset(CONFIGURATIONS["qwen2-vl-small"], device="gpu", prefetch_queue_depth=2, **settings)
    alone = presets.preset(CONFIGURATIONS["qwen2-vl-small"], **settings)
    batches = [files[start : start + 2] for start in (0, 2, 4, 6)]
    for batch in batches:
        ahead.feed_input("images", batch)
    for batch in batches[:2]:
        for ours, theirs in zip(ahead.run(), alone.run(images=batch), strict=True):
            for one, other in zip(ours.as_cpu(), theirs, strict=True):
                np.testing.assert_array_equal(np.array(one), np.array(other))
    ahead.close()
    alone.close()


def test_a_device_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"`device` must be cpu or gpu\. Got: 'mixed'"):
        presets.preset(CONFIGURATIONS["vit"], device="mixed")


@pytest.mark.parametrize("name", ["dinov2-small", "qwen2-vl-small", "llama4-small"])
def test_presets_become_models_for_a_gpu(name: str, tmp_path: Path) -> None:
    configuration = tmp_path / "preprocessor_config.json"
    configuration.write_text(json.dumps(CONFIGURATIONS[name]))
    for device in ("cpu", "gpu"):
        model = str(tmp_path / "models" / device)
        arguments = ["export", "--preset", str(configuration), model, "--batch-size", str(COUNT), "--device", device]
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    told = [(tmp_path / "models" / device / "config.pbtxt").read_text() for device in ("cpu", "gpu")]
    assert told[0] == told[1]
    files = [picture.file for picture in pictures(COUNT, MOST)]
    results = [
        given(
            device, Pipeline.load(str(tmp_path / "models" / device / "1" / "model.json"), prefetch_queue_depth=1), files
        )
        for device in ("cpu", "gpu")
    ]
    for ours, theirs in zip(*results, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_sizes_of_images_on_a_gpu_are_told_on_the_host() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        images = fn.external_source(name="images", layout="HWC")
        sizes = fn.fitted_size(images.gpu(), rule="pixtral", factor=4, most=20)
        assert [size.device for size in sizes] == ["cpu", "cpu"]
        return sizes[0]

    running = pipeline()
    (sizes,) = running.run(images=[np.zeros((40, 20, 3), np.uint8)])
    assert np.array(sizes[0]).tolist() == [20, 12]
    running.close()
