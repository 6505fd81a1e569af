"""Presets equal the recorded results of the image processors of `transformers` (`record.py`); `make parity` compares
more.
"""

from __future__ import annotations

import io
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
from penstock.plugin.transformers import FeatureExtractor, ImageProcessor, VideoProcessor
from penstock.presets.spectra import TOLERANCE

sys.path.insert(0, str(Path(__file__).parent))

from configurations import CONFIGURATIONS, FAMILIES, SMALL, SOUNDS, VIDEOS
from open_clip_modes import FAILED as OPEN_CLIP_FAILED
from open_clip_modes import RECORDED as OPEN_CLIP_RECORDED
from open_clip_modes import images as open_clip_images
from PIL import Image
from processors import (
    BACKENDS,
    REFUSED,
    SOUND_CALLS,
    backends_of,
    frame_cases,
    frames_digest,
    ours,
    pictures,
    result_or_refusal,
    sounds,
    strange_files,
    videos,
)
from record import (
    CALLS_RECORDED,
    FAMILIES_RECORDED,
    PICTURE_MOST,
    PICTURES,
    PROCESSED,
    PUBLISHED_RECORDED,
    SAVED_RECORDED,
    SETTINGS_RECORDED,
    digest_of,
)
from saved import results_of_preset, unequal
from settings import wrong
from timm_tags import RECORDED as TIMM_RECORDED
from timm_tags import configuration_of
from timm_tags import digest_of as digest_of_timm
from timm_tags import picture as timm_picture

from calls import BEYOND, taken, wrong_calls


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
    """Try each setting that transformers' class declares, with values other than the default."""
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


OPEN_CLIP: dict[str, str] = json.loads(OPEN_CLIP_RECORDED.read_text())
del OPEN_CLIP["versions"]
SAVED, PUBLISHED = (json.loads(path.read_text()) for path in (SAVED_RECORDED, PUBLISHED_RECORDED))


@pytest.mark.parametrize("name", SAVED)
def test_what_save_pretrained_writes_gives_what_the_class_gives(name: str) -> None:
    assert not unequal(SAVED[name]["results"], results_of_preset(SAVED[name]["configuration"]), TOLERANCE)


@pytest.mark.parametrize("where", PUBLISHED)
def test_published_configurations_give_what_the_class_gives(where: str) -> None:
    assert not unequal(PUBLISHED[where]["results"], results_of_preset(PUBLISHED[where]["configuration"]), TOLERANCE)


def test_all_families_are_compared_with_what_their_classes_save() -> None:
    # Two families whose classes have other names in transformers, and two that are not from transformers, have no saved configuration.
    of_others = {"OpenClipImageProcessor", "YoloLetterboxImageProcessor"}
    unsaved = {"Qwen2_5_VLImageProcessor", "Qwen3VLImageProcessor"} | of_others
    assert set(presets.families()) - SAVED.keys() == unsaved
    assert len(PUBLISHED) >= 60


@pytest.mark.parametrize("data", json.loads(TIMM_RECORDED.read_text()).items(), ids=lambda data: data[1]["digest"])
def test_timm_s_data_configurations_give_what_timm_gives(data: tuple[str, dict[str, Any]]) -> None:
    processor = ImageProcessor(configuration_of(data[0]))
    values = np.asarray(processor(timm_picture(), return_tensors="np")["pixel_values"])
    assert digest_of_timm(values[0]) == data[1]["digest"]


@pytest.mark.parametrize("configuration", OPEN_CLIP, ids=lambda held: str(list(OPEN_CLIP).index(held)))
def test_open_clip_s_ways_of_resizing_give_what_open_clip_gives(configuration: str) -> None:
    processor = ImageProcessor(json.loads(configuration))

    def digest(image: Image.Image) -> str:
        try:
            return digest_of_timm(np.asarray(processor(image, return_tensors="np")["pixel_values"])[0])
        except (ValueError, RuntimeError):
            return OPEN_CLIP_FAILED

    assert " ".join(map(digest, open_clip_images())) == OPEN_CLIP[configuration]


def test_configurations_that_classes_write_are_read() -> None:
    recorded = json.loads(SETTINGS_RECORDED.read_text())
    for name in (*SMALL, *FAMILIES):
        kind = CONFIGURATIONS[name].get("image_processor_type", "CLIPImageProcessor")
        for backend in backends_of(name):
            presets.read_configuration(recorded[f"{name} {backend}"]["settings"] | {"image_processor_type": kind})


MISREAD = {"pp-ocrv5-rec-small": ("30 x 1", "201 x 1", "401 x 2", "700 x 3")}
"""Files, by configuration, whose recorded result is wrong. Their images are resized to one column, as floats: PyTorch 2.14 misreads
the strides of such a tensor, and repeats one row. If the tensor is made contiguous first, it computes the preset's result.
"""


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
        expected = recorded[f"strange {name} {backend}"]
        if name in BEYOND:
            expected = {what: results[what] if told == REFUSED else told for what, told in expected.items()}
        for what in MISREAD.get(name, ()):
            assert results[what] != REFUSED
            expected[what] = results[what]
        assert results == expected


@pytest.mark.parametrize(
    ("name", "file", "told"),
    [
        ("glm4v-small", "700 x 3", "the maximum is 200"),
        ("sam-small", "2 x 400", "An image of 400 x 2 pixels would be resized to nothing: 32 x 0 pixels"),
    ],
)
def test_what_is_refused_is_told(name: str, file: str, told: str) -> None:
    pipeline = presets.preset(CONFIGURATIONS[name], batch_size=1)
    with pytest.raises(ValueError, match=told):
        pipeline.run(images=[np.frombuffer(strange_files()[file], np.uint8)])
    pipeline.close()


@pytest.mark.parametrize("name", VIDEOS)
def test_videos_equal_what_transformers_gave(name: str) -> None:
    *alone, together = json.loads(FAMILIES_RECORDED.read_text())[f"video {name}"]
    pipeline, family = presets.preset(VIDEOS[name], batch_size=len(videos())), presets.read_configuration(VIDEOS[name])

    def digests(given: list[np.ndarray]) -> dict[str, Any]:
        return {key: digest_of(value) for key, value in ours(pipeline, family, given).items()}

    assert [digests([video]) for video in videos()] == alone
    if name == "nemotron-omni":
        with pytest.raises(ValueError, match="All videos of a call must have the same number of frames"):
            ours(pipeline, family, videos())
    elif together is None:
        assert [video.shape[0] for video in ours(pipeline, family, videos())[family.outputs[0]]] == [2, 5, 4]
    else:
        assert digests(videos()) == together
    pipeline.close()


@pytest.mark.parametrize("name", VIDEOS)
def test_frames_that_are_taken_are_those_of_transformers(name: str) -> None:
    recorded = json.loads(FAMILIES_RECORDED.read_text())[f"frames {name}"]

    def taken(settings: dict[str, object], frames: int, rate: float | None, duration: float | None) -> list[int]:
        return presets.sampled_frames({**VIDEOS[name], **settings}, frames, rate, duration or 0)

    told = [frames_digest(taken, *case) for case in frame_cases()]
    assert told == recorded
    assert len(set(told)) > 5


def test_metadata_in_lists_of_conversations() -> None:
    configuration = {**VIDEOS["qwen2-vl"], "do_sample_frames": True, "num_frames": 2}
    given = videos()[:2]
    told = [{"total_num_frames": len(video), "fps": 2.0} for video in given]
    processor = VideoProcessor(configuration)
    flat = processor(given, video_metadata=told)["pixel_values_videos"]
    for arranged in (given, [given[:1], given[1:]], [[list(given[0])], given[1:]]):
        nested = processor(arranged, video_metadata=[told[:1], told[1:]])["pixel_values_videos"]
        np.testing.assert_array_equal(nested, flat)


def test_durations_of_metadata_are_followed() -> None:
    """A container may state a duration that is not the quotient of frames and rate; presets use it if the class does."""
    configuration = {**VIDEOS["glm4v"], "do_sample_frames": True}
    video = np.arange(24, dtype=np.uint8)[:, None, None, None] * np.ones((40, 44, 3), np.uint8)
    stated = {"total_num_frames": len(video), "fps": 8.0, "duration": 5.2}
    frames = presets.sampled_frames(configuration, len(video), 8.0, 5.2)
    assert frames != presets.sampled_frames(configuration, len(video), 8.0)
    processor = VideoProcessor(configuration)
    given = processor(video, video_metadata=stated)["pixel_values_videos"]
    expected = processor(video[frames], do_sample_frames=False)["pixel_values_videos"]
    np.testing.assert_array_equal(given, expected)
    unknown = processor(video, video_metadata={**stated, "duration": None})["pixel_values_videos"]
    expected = video[presets.sampled_frames(configuration, len(video), 8.0, 0)]
    np.testing.assert_array_equal(unknown, processor(expected, do_sample_frames=False)["pixel_values_videos"])


def test_frames_that_are_not_taken() -> None:
    assert presets.sampled_frames(VIDEOS["qwen2-vl"], 3) == [0, 1, 2]
    with pytest.raises(ValueError, match="The number of a video's frames must be positive"):
        presets.sampled_frames({**VIDEOS["qwen3-vl"], "do_sample_frames": True}, 0)
    with pytest.raises(presets.PresetError, match="is for images, not for videos from which frames are sampled"):
        presets.sampled_frames(CONFIGURATIONS["vit"], 3)


@pytest.mark.every_case
@pytest.mark.parametrize("name", SOUNDS)
def test_sounds_equal_what_transformers_gave(name: str) -> None:
    recorded = json.loads(FAMILIES_RECORDED.read_text())[f"sound {name}"]
    alone, together = recorded[: len(sounds())], recorded[len(sounds()) :]
    pipeline, family = (
        presets.preset(SOUNDS[name], batch_size=8, encoded=False),
        presets.read_configuration(SOUNDS[name]),
    )
    for batch in ([sound] for sound in sounds()), [sounds()]:
        # Pipelines do not pad sounds to the length of the batch's longest sound.
        results = [[list(map(np.array, values)) for values in zip(*pipeline.run(audio=given))] for given in batch]
        told = [dict(zip(family.outputs, (value[None] for value in values))) for each in results for values in each]
        assert [{key: digest_of(value) for key, value in each.items()} for each in told] == alone
    pipeline.close()
    extractor = FeatureExtractor(SOUNDS[name])
    for call, expected in zip(SOUND_CALLS, together, strict=True):
        if expected is None:
            with pytest.raises(ValueError, match="do not fit into one tensor"):
                extractor(sounds(), return_tensors="np", **call)
        else:
            features = extractor(sounds(), return_tensors="np", **call)
            assert {key: digest_of(value) for key, value in features.items()} == expected


def test_videos_of_processors(tmp_path: Path) -> None:
    """Videos may be lists of images, arrays or tensors; settings select frames."""
    (tmp_path / "video_preprocessor_config.json").write_text(json.dumps(VIDEOS["qwen2-vl"]))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(CONFIGURATIONS["vit"]))
    processor, given = VideoProcessor.from_pretrained(tmp_path), videos()
    expected = processor(given, return_tensors="np")
    *_, recorded = json.loads(FAMILIES_RECORDED.read_text())["video qwen2-vl"]
    assert {key: digest_of(value) for key, value in expected.items()} == recorded
    images = [[Image.fromarray(frame) for frame in video] for video in given]
    planes = [video.transpose(0, 3, 1, 2) for video in given]
    for form in (images, planes):
        np.testing.assert_array_equal(processor(form)["pixel_values_videos"], expected["pixel_values_videos"])
    told = [{"total_num_frames": len(video), "fps": 2.0} for video in given]
    some = processor(given, video_metadata=told, do_sample_frames=True, num_frames=2)
    chosen = [video[[0, len(video) // 2]] for video in given]
    np.testing.assert_array_equal(some["pixel_values_videos"], processor(chosen)["pixel_values_videos"])
    assert processor(images[0])["video_grid_thw"].shape == (1, 3)
    assert processor(np.stack([given[0], given[0]]))["video_grid_thw"].shape == (2, 3)


@pytest.mark.parametrize(
    ("given", "arguments", "told"),
    [
        ([], {}, "There is no video"),
        ([[]], {}, "Video 0 has no frame"),
        ("video.mp4", {}, "nothing is fetched or read here"),
        ([np.zeros((9, 9, 3), np.uint8), np.zeros((9, 8, 3), np.uint8)], {}, "frames of several sizes"),
        (
            np.zeros((2, 9, 9, 3), np.uint8),
            {"do_sample_frames": True, "fps": 1},
            "`video_metadata` is needed to sample frames",
        ),
        (np.zeros((2, 9, 9, 3), np.uint8), {"video_metadata": [{}, {}]}, "has 2 entries for 1 videos"),
        (np.zeros((2, 9, 9, 3), np.uint8), {"device": "cuda"}, "for a GPU, use"),
        (np.zeros((2, 9, 9, 3), np.float32), {}, "expected a PIL image"),
    ],
)
def test_videos_that_processors_refuse(given: Any, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        VideoProcessor(VIDEOS["qwen2-vl"])(given, **arguments)


def test_videos_of_one_frame_and_settings_that_are_not_followed() -> None:
    pipeline = presets.preset(VIDEOS["qwen2-vl"])
    (_, grid) = pipeline.run(videos=[videos()[0][:1]])
    assert np.array(grid[0])[0] == 1
    pipeline.close()
    with pytest.raises(presets.PresetError, match="cap_pixels_per_frame"):
        presets.preset({**VIDEOS["qwen2-vl"], "cap_pixels_per_frame": True})
    with pytest.raises(presets.PresetError, match="no variant of `pil`"):
        presets.preset(VIDEOS["qwen2-vl"], backend="pil")
    with pytest.raises(
        ValueError, match=r"A size must have frames, height, width, which must be positive\. Got: \(10, 10\)"
    ):
        presets.count_tokens(VIDEOS["qwen2-vl"], [(10, 10)])


@pytest.mark.parametrize("name", ["qwen2-vl", "qwen3-vl", "glm4v"])
def test_tokens_of_videos_are_those_of_their_grids(name: str) -> None:
    sizes = [
        (frames, height, width) for frames in (1, 2, 3, 6, 11) for height, width in ((20, 31), (70, 64), (140, 22))
    ]
    # The other families refuse videos of one frame.
    sizes = sizes if name == "qwen2-vl" else sizes[3:]
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
        ({"image_processor_type": "CLIPImageProcesor"}, "nearest names are CLIPImageProcessor"),
        ({"size": 224}, "names no class"),
        ({"image_processor_type": "ViTImageProcessor", "do_flip_channel_order": True}, "`do_flip_channel_order`"),
        ({"image_processor_type": "Qwen2VLImageProcessor", "do_pad": True}, "`do_pad`"),
        ({"image_processor_type": "ViTImageProcessor", "resample": 5}, "the filter hamming"),
        (
            {"image_processor_type": "ViTImageProcessor", "size": {"longest_edge": 3}},
            "`size` must be a number, or have",
        ),
        (
            {"image_processor_type": "SamImageProcessor", "pad_size": {"height": 1024, "width": 1023}},
            "pads to at least the longest edge",
        ),
        (
            {"image_processor_type": "ViTImageProcessor", "rescale_factor": 0.1234567, "do_normalize": False},
            "must be the reciprocal of a float32 number",
        ),
    ],
)
def test_configurations_that_no_preset_follows(configuration: dict[str, object], told: str) -> None:
    with pytest.raises(presets.PresetError, match=told):
        presets.preset(configuration)


def test_alpha_is_dropped_where_that_is_wanted(tmp_path: Path) -> None:
    """Dropping alpha is necessary to match processors that are called with the result of transformers' `load_image`."""
    configuration = {"image_processor_type": "ViTImageProcessor", "do_resize": False}
    image = next(pictures(1, PICTURE_MOST)).image
    image.putalpha(image.convert("L"))
    held = io.BytesIO()
    image.save(held, "PNG")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(configuration))
    model = tmp_path / "models" / "vit"
    arguments = ["export", "--preset", "--drop-alpha", str(tmp_path / "preprocessor_config.json"), str(model)]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    expected = ImageProcessor(configuration)(np.asarray(image.convert("RGB")))["pixel_values"][0]
    exported = Pipeline.load(str(model / "1" / "model.json"), prefetch_queue_depth=1)
    for pipeline in (presets.preset(configuration, drop_alpha=True), exported):
        np.testing.assert_array_equal(
            np.array(pipeline.run(images=[np.frombuffer(held.getvalue(), np.uint8)])[0][0]), expected
        )
        pipeline.close()
    keys = {presets.content_key(configuration, held.getvalue(), drop_alpha=drops) for drops in (False, True)}
    assert len(keys) == 2
    result = CliRunner().invoke(cli, ["export", "--drop-alpha", str(model / "1" / "model.json"), str(model)])
    assert "--drop-alpha is for presets" in result.output


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
