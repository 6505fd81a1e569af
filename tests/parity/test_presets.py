"""Presets give what the image processors of `transformers` gave (`record.py`); `make parity` asks them about more."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from penstock import Pipeline, presets
from penstock.cli._group import penstock as cli
from penstock.plugin.transformers import ImageProcessor

sys.path.insert(0, str(Path(__file__).parent))

from calls import taken, wrong_calls
from configurations import CONFIGURATIONS, FAMILIES, SMALL, VIDEOS
from processors import BACKENDS, backends_of, ours, pictures, result_or_refusal, strange_files, videos
from record import CALLS_RECORDED, FAMILIES_RECORDED, PICTURE_MOST, PICTURES, PROCESSED, SETTINGS_RECORDED, digest_of
from settings import wrong


@pytest.mark.every_case
@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_what_transformers_gave(backend: str) -> None:
    given = [picture.file for picture in pictures(PICTURES, PICTURE_MOST)]
    with np.load(PROCESSED) as recorded:
        for name in SMALL:
            pipeline = presets.preset(CONFIGURATIONS[name], batch_size=PICTURES, backend=backend)
            for number, values in enumerate(pipeline.run(images=given)[0]):
                np.testing.assert_array_equal(np.array(values), recorded[f"{name} {backend} {number}"], name)
            pipeline.close()


@pytest.mark.every_case
@pytest.mark.parametrize("name", FAMILIES)
def test_families_equal_what_transformers_gave(name: str) -> None:
    recorded = json.loads(FAMILIES_RECORDED.read_text())
    given = list(pictures(PICTURES, PICTURE_MOST, slender=True))
    for backend in backends_of(name):
        pipeline = presets.preset(CONFIGURATIONS[name], batch_size=PICTURES, backend=backend)
        family = presets.read_configuration(CONFIGURATIONS[name])
        results = [
            {key: digest_of(value) for key, value in ours(pipeline, family, [picture.file]).items()}
            for picture in given
        ]
        pipeline.close()
        *alone, together = recorded[f"{name} {backend}"]
        assert results == alone
        processor, images = ImageProcessor(CONFIGURATIONS[name], backend=backend), [picture.image for picture in given]
        if together is None:
            with pytest.raises(ValueError, match="do not fit into one tensor"):
                processor(images, return_tensors="np")
        else:
            features = processor(images, return_tensors="np")
            assert {key: digest_of(value) for key, value in features.items()} == together


@pytest.mark.every_case
@pytest.mark.parametrize("name", [*SMALL, *FAMILIES])
def test_settings_are_followed_or_refused(name: str) -> None:
    """Each setting that the class takes, by its own account, with other values than it has."""
    recorded = json.loads(SETTINGS_RECORDED.read_text())
    for backend in backends_of(name):
        assert not wrong(name, backend, recorded[f"{name} {backend}"])


@pytest.mark.every_case
@pytest.mark.parametrize("name", [*SMALL, *FAMILIES])
def test_calls_give_what_the_class_gives(name: str) -> None:
    recorded = json.loads(CALLS_RECORDED.read_text())
    for backend in backends_of(name):
        assert not wrong_calls(name, backend, recorded[f"{name} {backend}"])


def test_forms_of_images_that_are_taken() -> None:
    refused = {form for form, is_taken in taken("deit", "torchvision").items() if not is_taken}
    assert refused == {"nothing", "a path", "gray numbers"}


def test_configurations_that_classes_write_are_read() -> None:
    recorded = json.loads(SETTINGS_RECORDED.read_text())
    for name in (*SMALL, *FAMILIES):
        kind = CONFIGURATIONS[name].get("image_processor_type", "CLIPImageProcessor")
        for backend in backends_of(name):
            presets.read_configuration(recorded[f"{name} {backend}"]["settings"] | {"image_processor_type": kind})


@pytest.mark.parametrize("name", [*SMALL, *FAMILIES])
def test_strange_files_become_what_transformers_made_of_them_or_are_refused_as_well(name: str) -> None:
    recorded = json.loads(FAMILIES_RECORDED.read_text())
    family = presets.read_configuration(CONFIGURATIONS[name])
    for backend in backends_of(name):
        pipeline = presets.preset(CONFIGURATIONS[name], batch_size=1, backend=backend)
        results = {
            what: result_or_refusal(partial(ours, pipeline, family, [np.frombuffer(file, np.uint8)]))
            for what, file in strange_files().items()
        }
        pipeline.close()
        assert results == recorded[f"strange {name} {backend}"]


@pytest.mark.parametrize(
    ("name", "file", "told"),
    [
        ("glm4v-small", "700 x 3", "up to 200 is taken"),
        ("sam-small", "2 x 400", "Of an image of 400 x 2 pixels, nothing would be left: 32 x 0 pixels"),
    ],
)
def test_what_is_refused_is_told(name: str, file: str, told: str) -> None:
    pipeline = presets.preset(CONFIGURATIONS[name], batch_size=1)
    with pytest.raises(ValueError, match=told):
        pipeline.run(images=[np.frombuffer(strange_files()[file], np.uint8)])
    pipeline.close()


@pytest.mark.parametrize("name", VIDEOS)
def test_videos_equal_what_transformers_gave(name: str) -> None:
    recorded = json.loads(FAMILIES_RECORDED.read_text())[f"video {name}"]
    pipeline = presets.preset(VIDEOS[name], batch_size=len(videos()))
    result = ours(pipeline, presets.read_configuration(VIDEOS[name]), videos())
    pipeline.close()
    assert {key: digest_of(value) for key, value in result.items()} == recorded


def test_videos_of_one_frame_and_settings_that_are_not_followed() -> None:
    pipeline = presets.preset(VIDEOS["qwen2-vl"])
    (_, grid) = pipeline.run(videos=[videos()[0][:1]])
    assert np.array(grid[0])[0] == 1
    pipeline.close()
    with pytest.raises(presets.PresetError, match="cap_pixels_per_frame"):
        presets.preset({**VIDEOS["qwen2-vl"], "cap_pixels_per_frame": True})
    with pytest.raises(presets.PresetError, match="no variant of `pil`"):
        presets.preset(VIDEOS["qwen2-vl"], backend="pil")
    with pytest.raises(ValueError, match=r"A size has frames, height, width, which are positive\. Got: \(10, 10\)"):
        presets.count_tokens(VIDEOS["qwen2-vl"], [(10, 10)])


@pytest.mark.parametrize("name", VIDEOS)
def test_tokens_of_videos_are_those_of_their_grids(name: str) -> None:
    sizes = [
        (frames, height, width) for frames in (1, 2, 3, 6, 11) for height, width in ((20, 31), (70, 64), (140, 22))
    ]
    # Qwen3-VL takes no video of one frame.
    sizes = sizes[3:] if name == "qwen3-vl" else sizes
    pipeline = presets.preset(VIDEOS[name], batch_size=len(sizes))
    patches, grids = pipeline.run(videos=[np.zeros((*size, 3), np.uint8) for size in sizes])
    merged = [int(np.prod(np.array(grid))) // 4 for grid in grids]
    assert [shape[0] // 4 for shape in patches.shape()] == merged
    pipeline.close()
    assert presets.count_tokens(VIDEOS[name], sizes) == merged


def test_processors_are_called_as_those_of_transformers(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(CONFIGURATIONS["clip-old"]))
    processor = ImageProcessor.from_pretrained(tmp_path)
    images = [picture.image for picture in pictures(PICTURES, PICTURE_MOST)]
    features = processor(images, return_tensors="np")
    with np.load(PROCESSED) as recorded:
        expected = np.stack([recorded[f"clip-old torchvision {number}"] for number in range(PICTURES)])
    np.testing.assert_array_equal(features.pixel_values, expected)
    arrays = [np.asarray(image) for image in images]
    np.testing.assert_array_equal(np.stack(processor(arrays)["pixel_values"]), expected)
    np.testing.assert_array_equal(processor.preprocess(arrays[0].transpose(2, 0, 1))["pixel_values"][0], expected[0])


@pytest.mark.parametrize(
    ("image", "told"),
    [(np.zeros((4, 4, 3), np.float32), "Got float32"), (np.zeros((4, 4), np.uint8), r"Got uint8 of shape \(4, 4\)")],
)
def test_what_processors_refuse(image: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ImageProcessor(CONFIGURATIONS["vit"])([image])


def test_images_that_keep_their_sizes_fit_into_no_tensor() -> None:
    processor = ImageProcessor({"image_processor_type": "ViTImageProcessor", "do_resize": False})
    images = [np.zeros((4, 5, 3), np.uint8), np.zeros((7, 5, 3), np.uint8)]
    assert [values.shape for values in processor(images)["pixel_values"]] == [(3, 4, 5), (3, 7, 5)]
    with pytest.raises(ValueError, match="do not fit into one tensor"):
        processor(images, return_tensors="np")


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        ({"image_processor_type": "CLIPImageProcesor"}, "Did you mean 'CLIPImageProcessor'"),
        ({"size": 224}, "names no class"),
        ({"image_processor_type": "ViTImageProcessor", "do_flip_channel_order": True}, "`do_flip_channel_order`"),
        ({"image_processor_type": "ViTImageProcessor", "do_pad": True}, "`do_pad`"),
        ({"image_processor_type": "ViTImageProcessor", "resample": 5}, "the filter hamming"),
        ({"image_processor_type": "ViTImageProcessor", "size": {"longest_edge": 3}}, "`size` is a number, or has"),
        (
            {"image_processor_type": "ViTImageProcessor", "rescale_factor": 0.1234567, "do_normalize": False},
            "only one over a number",
        ),
    ],
)
def test_configurations_that_no_preset_follows(configuration: dict[str, object], told: str) -> None:
    with pytest.raises(presets.PresetError, match=told):
        presets.preset(configuration)


def test_presets_become_models(tmp_path: Path) -> None:
    configuration = tmp_path / "preprocessor_config.json"
    configuration.write_text(json.dumps(CONFIGURATIONS["dinov2-small"]))
    arguments = ["export", "--preset", str(configuration), str(tmp_path / "models" / "dino"), "--batch-size", "4"]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "dims: [3, 33, 32]" in (tmp_path / "models" / "dino" / "config.pbtxt").read_text()
    given = [picture.file for picture in pictures(PICTURES, PICTURE_MOST)]
    exported = Pipeline.load(str(tmp_path / "models" / "dino" / "1" / "model.json"), prefetch_queue_depth=1)
    with np.load(PROCESSED) as recorded:
        for number, values in enumerate(exported.run(images=given)[0]):
            np.testing.assert_array_equal(np.array(values), recorded[f"dinov2-small torchvision {number}"])
