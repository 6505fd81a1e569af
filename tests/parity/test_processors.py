"""Everything about presets except the pixels of images: token counts, cache keys, features of sounds, and refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import presets
from penstock.errors import OperatorError
from penstock.plugin.transformers import FeatureExtractor, Features, ImageProcessor, VideoProcessor

sys.path.insert(0, str(Path(__file__).parent))

from configurations import CONFIGURATIONS, NEEDED

QWEN: dict[str, Any] = {"image_processor_type": "Qwen2VLImageProcessor"}
LLAVA: dict[str, Any] = {
    "image_processor_type": "LlavaNextImageProcessor",
    "size": {"shortest_edge": 336},
    "crop_size": {"height": 336, "width": 336},
}
INTERNVL: dict[str, Any] = {
    "image_processor_type": "GotOcr2ImageProcessor",
    "size": {"height": 448, "width": 448},
    "crop_to_patches": True,
}
GEMMA: dict[str, Any] = {"image_processor_type": "Gemma3ImageProcessor", "do_pan_and_scan": True}
DETR: dict[str, Any] = {"image_processor_type": "DetrImageProcessor"}
WHISPER: dict[str, Any] = {"feature_extractor_type": "WhisperFeatureExtractor"}
WAVE: dict[str, Any] = {"feature_extractor_type": "Wav2Vec2FeatureExtractor"}
ENCODEC: dict[str, Any] = {"feature_extractor_type": "EncodecFeatureExtractor"}
KYUTAI: dict[str, Any] = {"feature_extractor_type": "KyutaiSpeechToTextFeatureExtractor"}
PIECES: dict[str, Any] = {"feature_extractor_type": "Gemma4UnifiedAudioFeatureExtractor"}


@pytest.mark.parametrize(
    ("configuration", "model", "expected"),
    [
        (QWEN, {}, [29 * 43, 4, 43 * 29]),
        ({"image_processor_type": "Siglip2ImageProcessor"}, {}, [13 * 19, 256, 19 * 13]),
        (LLAVA, {"patch_size": 14}, [2144, 1176, 2160]),
        (
            {"image_processor_type": "LlavaOnevisionImageProcessor"},
            {"patch_size": 14, "max_tiles": 9},
            [8468, 1485, 8505],
        ),
        (INTERNVL, {"image_seq_length": 256}, [256 * 7, 256 * 1, 256 * 7]),
        ({"image_processor_type": "CLIPImageProcessor"}, {"patch_size": 32}, [49, 49, 49]),
        ({"image_processor_type": "PixtralImageProcessor"}, {"spatial_merge_size": 1}, [43 * 65, 2 * 3, 64 * 44]),
        (
            {"image_processor_type": "Idefics3ImageProcessor"},
            {"image_seq_len": 169},
            [169 * 13, 169 * 17, 169 * 13],
        ),
        (
            {"image_processor_type": "Llama4ImageProcessor"},
            {"patch_size": 14, "pixel_shuffle_ratio_inverse": 2},
            [144 * 13, 144, 144 * 13],
        ),
        ({"image_processor_type": "MiniCPMV4_6ImageProcessor"}, {}, [454, 64, 454]),
        ({"image_processor_type": "Lfm2VlImageProcessor"}, {}, [1783, 64, 1783]),
        ({"image_processor_type": "Phi4MultimodalImageProcessor"}, {}, [1841, 545, 1857]),
        ({"image_processor_type": "Molmo2ImageProcessor"}, {}, [1162, 392, 1162]),
        ({"image_processor_type": "AriaImageProcessor", "split_image": True}, {}, [256 * 2, 256, 256 * 2]),
        ({"image_processor_type": "Gemma4UnifiedImageProcessor"}, {}, [260, 256, 260]),
        (GEMMA, {"mm_tokens_per_image": 256}, [256 * 3, 256, 256 * 3]),
        (GEMMA | {"do_pan_and_scan": False}, {"mm_tokens_per_image": 256}, [256, 256, 256]),
    ],
)
def test_tokens_are_counted_by_sizes(configuration: dict[str, Any], model: dict[str, int], expected: list[int]) -> None:
    assert presets.count_tokens(configuration, [(853, 1280), (32, 32), (1280, 853)], **model) == expected


def test_patches_are_as_many_as_were_counted() -> None:
    sizes = [(1, 150), (853, 1280), (40, 40), (700, 20)]
    pipeline = presets.preset(QWEN, batch_size=4, encoded=False)
    patches, grids = pipeline.run(images=[np.zeros((*size, 3), np.uint8) for size in sizes])
    pipeline.close()
    counted = presets.count_tokens(QWEN, sizes)
    assert [shape[0] // 4 for shape in patches.shape()] == counted
    assert [int(np.prod(np.array(grid))) // 4 for grid in grids] == counted
    assert ImageProcessor(QWEN).count_tokens(sizes) == counted


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "output", "patches"),
    [
        ("MiniCPMV4_6ImageProcessor", 1, 16),
        ("Phi4MultimodalImageProcessor", 3, 1),
        ("Molmo2ImageProcessor", 1, None),
        ("Gemma4UnifiedImageProcessor", 2, 1),
    ],
)
def test_tokens_are_as_many_as_the_class_tells(name: str, output: int, patches: int | None) -> None:
    """Compare token counts with an output of the preset: the patches of each image vertically and horizontally, or its tokens."""
    sizes, configuration = [(853, 1280), (40, 60), (700, 210)], {"image_processor_type": name}
    pipeline = presets.preset(configuration, batch_size=3, encoded=False)
    told = [np.array(each) for each in pipeline.run(images=[np.zeros((*size, 3), np.uint8) for size in sizes])[output]]
    pipeline.close()
    counts = [int(np.prod(each.reshape(-1, each.shape[-1] if each.ndim else 1), axis=1).sum()) for each in told]
    expected = [len(each) for each in told] if patches is None else [count // patches for count in counts]
    assert presets.count_tokens(configuration, sizes) == expected


def test_pictures_of_parts_are_as_many_as_were_counted() -> None:
    sizes = [(600, 500), (599, 500), (300, 1300), (255, 1000)]
    pipeline = presets.preset(GEMMA, batch_size=4, encoded=False)
    pictures, crops = pipeline.run(images=[np.zeros((*size, 3), np.uint8) for size in sizes])
    pipeline.close()
    assert [int(np.array(count)) for count in crops] == [2, 0, 4, 0]
    counted = presets.count_tokens(GEMMA, sizes, mm_tokens_per_image=1)
    assert [shape[0] for shape in pictures.shape()] == counted == [3, 1, 5, 1]


def test_what_the_model_has_must_be_told_to_count() -> None:
    with pytest.raises(presets.PresetError, match=r"settings of the model: `image_seq_length`\. Got: nothing"):
        presets.count_tokens(INTERNVL, [(10, 10)])
    with pytest.raises(presets.PresetError, match=r"settings of the model: nothing\. Got: patch_size"):
        presets.count_tokens(QWEN, [(10, 10)], patch_size=3)
    with pytest.raises(presets.PresetError, match="not tell how many tokens"):
        presets.count_tokens(DETR, [(10, 10)])
    with pytest.raises(ValueError, match="the maximum is 200"):
        presets.count_tokens(QWEN, [(1, 300)])


def test_keys_tell_settings_and_bytes_apart() -> None:
    keys = [
        presets.content_key(QWEN, b"one"),
        presets.content_key(QWEN, b"two"),
        presets.content_key(QWEN, b"one", backend="pil"),
        presets.content_key(QWEN | {"max_pixels": 10**6}, b"one"),
        presets.content_key(INTERNVL, b"one"),
    ]
    assert len(set(keys)) == len(keys)
    # The same settings in another notation have the same key.
    assert presets.content_key(QWEN | {"size": None, "do_resize": True, "min_pixels": 3136}, b"one") == keys[0]


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        (QWEN | {"size": {"height": 3}}, "`size` must be a number, or have `longest_edge` and `shortest_edge`"),
        (QWEN | {"patch_size": 0}, "`patch_size` must be positive"),
        (QWEN | {"patch_size": "14"}, "`patch_size` must be a whole number"),
        (QWEN | {"do_resize": "yes"}, "`do_resize` must be true or false"),
        (QWEN | {"rescale_factor": "1/255"}, "`rescale_factor` must be a number"),
        (QWEN | {"image_mean": [1, 2]}, "`image_mean` must be a number, or one for each of 3 channels"),
        (QWEN | {"merge_sise": 2}, "Did you mean 'merge_size'"),
        (QWEN | {"patch_sise": 7}, "no preset follows the setting `patch_sise` \\(7\\) Did you mean 'patch_size'"),
        (QWEN | {"do_center_crop": True}, "no preset follows the setting `do_center_crop`"),
        (LLAVA | {"image_grid_pinpoints": "336"}, r"must be a list of pairs \(height, width\), not empty"),
        (LLAVA | {"image_grid_pinpoints": [[336, 100]]}, "cannot be divided into whole tiles of"),
        (LLAVA | {"do_resize": False}, "presets that cut tiles always resize images"),
        (LLAVA | {"crop_size": {"height": 100, "width": 100}}, "must be the size of a tile"),
        (INTERNVL | {"min_patches": 5, "max_patches": 3}, "Got: 5 and 3"),
        ({"image_processor_type": "SamImageProcessor", "do_pad": False}, "SAM is supported only where it resizes"),
        (DETR | {"pad_size": {"shortest_edge": 9}}, "`pad_size` must be a number, or have `height` and `width`"),
        (DETR | {"pad_size": 2000, "do_rescale": False, "do_normalize": False}, "`do_rescale`, `do_normalize`"),
        (DETR | {"size": {"height": -1, "width": 9}}, "`size` must be positive"),
        (GEMMA | {"do_resize": False}, "`do_pan_and_scan` is supported only where images are resized"),
        (GEMMA | {"pan_and_scan_max_num_crops": 0}, "`pan_and_scan_max_num_crops` and"),
        (GEMMA | {"pan_and_scan_min_ratio_to_activate": 1.23456789}, "up to six digits"),
        ({"image_processor_type": "PixtralImageProcessor", "patch_size": {"height": 9, "width": 8}}, "square"),
        ({"image_processor_type": "Llama4ImageProcessor", "do_normalize": False}, "rescales and normalizes"),
        ({"image_processor_type": "YoloLetterboxImageProcessor", "padding_value": 300}, "from 0 to 255"),
        (WHISPER | {"padding_value": 0.5}, "`padding_value` is supported only where it is 0"),
        (WAVE | {"padding_side": "left"}, "`padding_side` must be 'right'"),
        (WHISPER | {"n_samples": 3}, "480000, which follows from the other settings"),
        (WHISPER | {"padding_side": "left"}, "`padding_side`"),
        (WHISPER | {"dither": 0.1}, "`dither`"),
        (QWEN | {"use_square_size": True}, "`use_square_size`"),
        (WAVE | {"feature_size": 2}, "`feature_size` must be 1"),
        (ENCODEC | {"feature_size": 2}, "only sounds of one channel are supported"),
        (ENCODEC | {"overlap": 1.0}, "`overlap` less than 1"),
        ({"feature_extractor_type": "DacFeatureExtractor", "hop_length": 0}, "`hop_length` must be positive"),
        (KYUTAI | {"padding_value": 0.5}, "`padding_value` is supported only where it is 0"),
        (KYUTAI | {"audio_delay_seconds": -1}, "must not be negative"),
        (
            {"feature_extractor_type": "Speech2TextFeatureExtractor", "dither": 0.1},
            "`dither` is supported only where it is 0",
        ),
        (
            {"feature_extractor_type": "ClvpFeatureExtractor", "mel_norms": [1.0]},
            "`mel_norms` is supported only where it is None",
        ),
        ({"feature_extractor_type": "Gemma3nAudioFeatureExtractor", "per_bin_mean": [0.1]}, "`per_bin_mean`"),
        ({"feature_extractor_type": "ParakeetFeatureExtractor", "hop_length": 0}, "`hop_length` must be positive"),
        ({"feature_extractor_type": "WavTokenizerFeatureExtractor", "normalize_audio": True}, "`normalize_audio`"),
        ({"image_processor_type": "TimmWrapperImageProcessor"}, "`pretrained_cfg` must hold `input_size`"),
        ({"preprocess_cfg": {"resize_mode": "crop"}}, "`resize_mode` must be one of shortest, longest, squash"),
        ({"preprocess_cfg": {"interpolation": "lanczos"}}, "`interpolation` must be one of"),
        ({"preprocess_cfg": {"mean": [0.1, 0.2]}}, "`mean` must be a number, or one for each of 3 channels"),
        (
            {"preprocess_cfg": {}, "model_cfg": {"vision_cfg": {"image_size": [3, 0]}}},
            "`image_size` must be a positive integer",
        ),
        ({"preprocess_cfg": 3}, "`preprocess_cfg`"),
        ({"feature_extractor_type": "NeuCodecFeatureExtractor", "hop_length": 0}, "`hop_length` must be positive"),
        ({"image_processor_type": "FuyuImageProcessor", "padding_mode": "reflect"}, "`padding_mode='constant'`"),
        (
            {"image_processor_type": "FuyuImageProcessor", "padding_value": 0.5},
            "`padding_value` must be a whole number",
        ),
        ({"image_processor_type": "InklingImageProcessor", "rescale_image_frac": 2.0}, "`rescale_image_frac`"),
        ({"image_processor_type": "InklingImageProcessor", "size": {"height": 9, "width": 8}}, "`size` must be square"),
        ({"image_processor_type": "LightGlueImageProcessor", "do_resize": False}, "`do_resize`"),
        ({"image_processor_type": "MiniCPMOcrImageProcessor", "small_image_upsize": "never"}, "must be 'always'"),
        ({"image_processor_type": "SLANeXtImageProcessor", "pad_size": 99}, "`do_pad`"),
        ({"image_processor_type": "Step3p7ImageProcessor", "patch_size": 0}, "must be positive"),
        (
            {"image_processor_type": "UVDocImageProcessor", "do_rescale": False},
            "UVDoc is supported only where it rescales",
        ),
        ({"image_processor_type": "ZoeDepthImageProcessor", "resample": 3}, "with the bilinear filter"),
        ({"image_processor_type": "ZoeDepthImageProcessor", "ensure_multiple_of": 0.1}, "`ensure_multiple_of`"),
        (
            {"image_processor_type": "NemotronH_Omni_Reasoning_V3ImageProcessor", "max_num_patches": 99999},
            "size would depend on the other images of a call",
        ),
        ({"video_processor_type": "Ernie4_5_VLMoeVideoProcessor"}, "`draw_on_frames`"),
        ({"video_processor_type": "MiniCPMV4_6VideoProcessor", "stack_frames": 2}, "`stack_frames` must be 1"),
        ({"video_processor_type": "EmbeddingGemma2VideoProcessor", "overflow_strategy": "last"}, "`overflow_strategy`"),
        ({"video_processor_type": "NemotronH_Omni_Reasoning_V3VideoProcessor"}, "`norm_mean` and `norm_std`"),
        ({"feature_extractor_type": "PocketTTSFeatureExtractor"}, "`end_on_pause` is supported only where it is False"),
        ({"image_processor_type": "VivitImageProcessor", "do_rescale": False}, "`offset` needs `do_rescale`"),
        (PIECES | {"feature_size": 320}, "`audio_samples_per_token` must be equal"),
    ],
)
def test_settings_that_no_preset_follows(configuration: dict[str, Any], told: str) -> None:
    with pytest.raises(presets.PresetError, match=told):
        presets.preset(configuration)


def test_numbers_in_place_of_pairs_and_mappings() -> None:
    square = presets.read_configuration(CONFIGURATIONS["inkling2-small"] | {"size": 40})
    assert square.size == {"height": 40, "width": 40}
    with pytest.raises(
        presets.PresetError, match="`size` must be a number, or have `longest_edge` and `shortest_edge`"
    ):
        presets.read_configuration(CONFIGURATIONS["idefics2"] | {"size": 378})


@pytest.mark.parametrize(
    ("setting", "least"), [("pooling_size", 1), ("overlap_margins", 0)], ids=["pooling_size", "overlap_margins"]
)
def test_the_least_pairs_that_molmo_takes(setting: str, least: int) -> None:
    molmo = CONFIGURATIONS["molmo2-small"]
    assert list(getattr(presets.read_configuration(molmo | {setting: [least, least]}), setting)) == [least, least]
    for pair in ([least - 1, least], [least], least):
        with pytest.raises(presets.PresetError, match=f"`{setting}` must be two numbers, of at least {least}"):
            presets.read_configuration(molmo | {setting: pair})


@pytest.mark.parametrize("name", ["DINOv3ViTImageProcessor", "Llama4ImageProcessor", "Sam2ImageProcessor"])
def test_classes_without_a_variant_of_pil(name: str) -> None:
    presets.preset({"image_processor_type": name})
    with pytest.raises(presets.PresetError, match="no variant of `pil`"):
        presets.preset({"image_processor_type": name}, backend="pil")


def test_a_class_of_sounds_is_not_that_of_images_of_the_same_model() -> None:
    sounds, images = (
        presets.read_configuration({key: f"Phi4Multimodal{kind}"})
        for key, kind in (
            ("feature_extractor_type", "FeatureExtractor"),
            ("image_processor_type", "ImageProcessor"),
        )
    )
    assert (sounds.kind, images.kind) == ("audio", "images")


def test_processors_are_made_of_dictionaries_and_files(tmp_path: Path) -> None:
    image = np.random.default_rng(3).integers(0, 256, (60, 80, 3), np.uint8)
    expected = ImageProcessor(QWEN, max_pixels=4000)(image).pixel_values
    np.testing.assert_array_equal(ImageProcessor.from_dict(QWEN, max_pixels=4000)(image).pixel_values, expected)
    (tmp_path / "own.json").write_text(json.dumps({**QWEN, "max_pixels": 4000}))
    read = ImageProcessor.from_json_file(tmp_path / "own.json")
    np.testing.assert_array_equal(read(image).pixel_values, expected)


def test_rows_and_columns_of_tiles_are_told() -> None:
    configuration = {
        "image_processor_type": "Idefics3ImageProcessor",
        "size": {"longest_edge": 60},
        "max_image_size": {"longest_edge": 20},
    }
    processor = ImageProcessor(configuration)
    images = [[np.zeros((30, 60, 3), np.uint8)], [np.zeros((50, 40, 3), np.uint8), np.zeros((9, 9, 3), np.uint8)]]
    told = processor(images, return_row_col_info=True, return_tensors="np")
    assert (told.rows, told.cols) == ([[2], [3, 3]], [[3], [3, 3]])
    assert told.pixel_values.shape[1] == 20
    assert "rows" not in processor(images)
    whole = processor(images, return_row_col_info=True, do_image_splitting=False)
    assert whole.rows == whole.cols == [[0], [0, 0]]


@pytest.mark.parametrize("mode", ["center", "squash", "border"])
def test_models_of_timm(mode: str, tmp_path: Path) -> None:
    """timm's evaluation resizes with PIL, and then applies torchvision's `ToTensor` and `Normalize`."""
    size, mean, std = (30, 30), [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
    cfg = {"input_size": [3, *size], "crop_pct": 0.9, "crop_mode": mode, "mean": mean, "std": std}
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit", "num_classes": 0, "pretrained_cfg": cfg}))
    image = Image.fromarray(np.random.default_rng(7).integers(0, 256, (60, 81, 3), np.uint8))
    resized = {"center": (44, 33), "squash": (33, 33), "border": (33, 24)}[mode]
    picture = image.resize(resized, Image.Resampling.BICUBIC)
    fill = tuple(round(255 * value) for value in mean) if mode == "border" else (0, 0, 0)
    page = Image.new("RGB", size, fill)
    page.paste(picture, tuple(-round((own - whole) / 2) for own, whole in zip(resized, size)))
    values = np.asarray(page, np.float32).transpose(2, 0, 1) / np.float32(255)
    expected = (values - np.float32(mean)[:, None, None]) / np.float32(std)[:, None, None]
    processor = ImageProcessor.from_pretrained(tmp_path)
    np.testing.assert_array_equal(processor(image, return_tensors="np").pixel_values[0], expected)
    assert processor.count_tokens([(60, 81)], patch_size=15) == [4]


def test_lines_of_text_are_as_wide_as_the_widest_of_a_call() -> None:
    processor = ImageProcessor({"image_processor_type": "PPOCRV5ServerRecImageProcessor"})
    wide, narrow = np.zeros((20, 300, 3), np.uint8), np.zeros((20, 30, 3), np.uint8)
    assert processor(wide).pixel_values.shape == (1, 3, 48, 720)
    assert processor(narrow).pixel_values.shape == (1, 3, 48, 320)
    assert processor([narrow, wide]).pixel_values.shape == (2, 3, 48, 720)


@pytest.mark.parametrize("name", ["LightGlue", "SuperGlue", "EfficientLoFTR"])
def test_images_are_compared_two_by_two(name: str) -> None:
    settings = {"image_processor_type": f"{name}ImageProcessor", "size": {"height": 20, "width": 30}}
    coloured = np.random.default_rng(2).integers(0, 256, (40, 60, 3), np.uint8)
    grey = np.repeat(coloured[:, :30, :1], 3, axis=2)
    processor = ImageProcessor(settings)
    pixels = processor([[coloured, grey], [grey, grey]], return_tensors="np").pixel_values
    assert pixels.shape == (2, 2, 3, 20, 30)
    weights = np.array([0.2989, 0.587, 0.114])[:, None, None]
    plain = ImageProcessor(settings, do_grayscale=False)([coloured, grey], return_tensors="np").pixel_values
    np.testing.assert_allclose(pixels[0, 0], np.repeat((plain[0, 0] * weights).sum(axis=0)[None], 3, axis=0), atol=1e-6)
    # Grey images are unchanged.
    np.testing.assert_array_equal(pixels[0, 1], plain[0, 1])
    for wrong in (coloured, [coloured, grey, grey], [[coloured]]):
        with pytest.raises(ValueError, match="Pass pairs of images"):
            processor(wrong)


def test_images_of_a_prompt_are_told_by_the_first() -> None:
    small, large = np.full((30, 40, 3), 9, np.uint8), np.full((80, 60, 3), 9, np.uint8)
    processor = ImageProcessor({"image_processor_type": "FuyuImageProcessor", "size": {"height": 40, "width": 50}})
    features = processor([[large, small], [small, large]], return_tensors="np")
    assert features.images.shape == (2, 2, 3, 40, 50)
    assert features.image_unpadded_heights.tolist() == [[40], [30]]
    assert features.image_unpadded_widths.tolist() == [[30], [40]]
    assert features.image_scale_factors.tolist() == [[0.5], [1.0]]
    with pytest.raises(ValueError, match="the same number of images"):
        processor([[small], [small, large]])


def test_images_of_their_own_sizes_stay_a_list() -> None:
    images = [np.full((9, 12, 3), 51, np.uint8), np.full((20, 7, 3), 51, np.uint8)]
    features = ImageProcessor({"image_processor_type": "UVDocImageProcessor"})(images, return_tensors="np")
    assert features.pixel_values.shape == (2, 3, 712, 488)
    assert [each.shape for each in features.original_images] == [(3, 9, 12), (3, 20, 7)]


def test_every_family_makes_a_pipeline() -> None:
    for name in presets.families():
        ending = next(end for end in ("ImageProcessor", "FeatureExtractor", "VideoProcessor") if name.endswith(end))
        key = {"Image": "image_processor", "Featu": "feature_extractor", "Video": "video_processor"}[
            ending[:5]
        ] + "_type"
        presets.preset({key: name, **NEEDED.get(name, {})}).close()


# -- speech ------------------------------------------------------------------------------------------------------------


def sound(samples: int) -> np.ndarray:
    times = np.arange(samples) / 16000
    noise = np.random.default_rng(samples).normal(0, 0.01, samples)
    return (0.3 * np.sin(2 * np.pi * (200 + 300 * times) * times) * np.exp(-times / 5) + noise).astype(np.float32)


def log_mel(signal: np.ndarray, filters: int) -> np.ndarray:
    """Return Whisper's features by their definition, in double precision."""
    padded = np.zeros(480000)
    padded[: min(len(signal), 480000)] = signal[:480000]
    reflected = np.pad(padded, 200, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(reflected, 400)[::160][:3000]
    power = np.abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)))) ** 2
    mel = _slaney(np.arange(201) * 40.0, filters) @ power.T
    logarithms = np.log10(np.maximum(mel, 1e-10))
    return (np.maximum(logarithms, logarithms.max() - 8) + 4) / 4


def _slaney(frequencies: np.ndarray, filters: int) -> np.ndarray:
    """Return triangular filters of equal area, linear up to 1000 Hz and logarithmic above."""
    step = np.log(6.4) / 27
    highest = 15 + np.log(8000 / 1000) / step
    mels = np.linspace(0, highest, filters + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(step * (mels - 15)))
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]


@pytest.mark.parametrize("filters", [80, 128])
def test_whisper_s_features(filters: int) -> None:
    extractor = FeatureExtractor(WHISPER | {"feature_size": filters})
    sounds = [sound(100), sound(50000), sound(500000)]
    features = extractor(sounds, sampling_rate=16000, return_tensors="np")["input_features"]
    assert features.shape == (3, filters, 3000)
    assert features.dtype == np.float32
    for signal, given in zip(sounds, features):
        # transformers' feature extractor differs from the definition by up to 5.2e-5.
        np.testing.assert_allclose(given, log_mel(signal, filters), atol=5e-5)


def test_waves_have_mean_0_and_variance_1(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(WAVE))
    extractor = FeatureExtractor.from_pretrained(tmp_path)
    given = sound(3001)
    expected = (given - given.mean()) / np.sqrt(given.var() + 1e-7)
    np.testing.assert_array_equal(extractor(given).input_values[0], expected)
    together = extractor([given, given[:100]]).input_values
    assert [values.shape for values in together] == [(3001,), (100,)]
    with pytest.raises(ValueError, match="do not fit into one tensor"):
        extractor([given, given[:100]], return_tensors="np")
    # Without a mask, the padding affects mean and variance.
    filled = extractor([given, given[:100]], padding=True, return_tensors="np").input_values
    whole = np.pad(given[:100], (0, 2901))
    np.testing.assert_array_equal(filled[1], (whole - whole.mean()) / np.sqrt(whole.var() + 1e-7))
    np.testing.assert_array_equal(FeatureExtractor(WAVE | {"do_normalize": False})(given).input_values[0], given)


def test_masks_tell_waves_from_padding() -> None:
    extractor = FeatureExtractor(WAVE | {"return_attention_mask": True})
    features = extractor([sound(301), sound(100)], padding="longest", return_tensors="np")
    mask = features.attention_mask
    assert isinstance(mask, np.ndarray)
    assert mask.dtype == np.int32
    assert mask.tolist() == [[1] * 301, [1] * 100 + [0] * 201]
    alone = FeatureExtractor(WAVE)(sound(100), return_tensors="np")
    np.testing.assert_array_equal(features.input_values[1], np.pad(alone.input_values[0], (0, 201)))
    assert set(alone) == {"input_values"}
    asked = FeatureExtractor(WAVE | {"padding_value": 0.5})(
        [sound(301), sound(100)], padding=True, pad_to_multiple_of=50, return_attention_mask=True, return_tensors="np"
    )
    assert asked.attention_mask.sum(axis=1).tolist() == [301, 100]
    assert asked.input_values.shape == (2, 350)
    assert set(asked.input_values[1, 100:].tolist()) == {0.5}


@pytest.mark.parametrize(
    ("arguments", "shape", "counted"),
    [
        ({}, 100, None),
        ({"return_attention_mask": True}, 100, [25, 16]),
        ({"padding": "longest", "return_attention_mask": True}, 25, [25, 16]),
        ({"padding": True, "pad_to_multiple_of": 700, "return_attention_mask": True}, 26, [25, 16]),
        ({"max_length": 3000, "return_attention_mask": True}, 18, [18, 16]),
        ({"max_length": 3000, "do_normalize": True}, 18, [3000, 2500]),
    ],
)
def test_whisper_s_masks_and_lengths(arguments: dict[str, Any], shape: int, counted: list[int] | None) -> None:
    extractor = FeatureExtractor(WHISPER | {"chunk_length": 1})
    features = extractor([sound(4000), sound(2500)], return_tensors="np", **arguments)
    assert features.input_features.shape == (2, 80, shape)
    masks = features.get("attention_mask")
    assert (None if masks is None else masks.sum(axis=1).tolist()) == counted


def test_whisper_s_mask_by_its_configuration_is_of_samples() -> None:
    asked = WHISPER | {"chunk_length": 1, "return_attention_mask": True}
    features = FeatureExtractor(asked)(sound(4000), return_tensors="np")
    assert features.attention_mask.tolist() == [[1] * 4000 + [0] * 12000]
    pipeline = presets.preset(asked, batch_size=1, encoded=False)
    outputs = pipeline.run(audio=[sound(4000)])
    np.testing.assert_array_equal(np.array(outputs[1][0]), features.attention_mask[0])
    np.testing.assert_array_equal(np.array(outputs[0][0]), features.input_features[0])
    pipeline.close()


def of_sounds(name: str, **settings: object) -> FeatureExtractor:
    return FeatureExtractor({"feature_extractor_type": f"{name}FeatureExtractor", **settings})


def test_rows_of_bands_are_filled_and_cut() -> None:
    """SeamlessM4T joins pairs of rows; for Speech2Text, the rows of the sound, without padding, have mean 0 and variance 1."""
    sounds = [sound(9000), sound(5003)]
    pairs = of_sounds("SeamlessM4T")(sounds, return_tensors="np")
    assert pairs.input_features.shape == (2, 27, 160)
    assert pairs.attention_mask.sum(axis=1).tolist() == [27, 14]
    cut = of_sounds("SeamlessM4T")(sounds, max_length=20, truncation=True, padding="max_length", return_tensors="np")
    np.testing.assert_array_equal(cut.input_features, pairs.input_features[:, :10])
    assert of_sounds("SeamlessM4T")(sounds[1], padding=False).input_features.shape == (1, 14, 160)
    filled = of_sounds("Speech2Text")(sounds, padding=True, return_tensors="np")
    assert filled.attention_mask.sum(axis=1).tolist() == [54, 29]
    for values, rows in zip(filled.input_features, (54, 29)):
        np.testing.assert_allclose(values[:rows].mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(values[:rows].std(axis=0), 1, atol=1e-5)
        assert not values[rows:].any()


@pytest.mark.parametrize(
    ("name", "shape", "counted"),
    [
        ("Parakeet", (57, 80), [56, 31]),
        ("CohereAsr", (57, 128), [56, 31]),
        ("Gemma3nAudio", (54, 128), [54, 32]),
        ("Gemma4Audio", (56, 128), [56, 31]),
    ],
)
def test_masks_of_bands(name: str, shape: tuple[int, int], counted: list[int]) -> None:
    settings = NEEDED.get(f"{name}FeatureExtractor", {})
    features = of_sounds(name, **settings)([sound(9000), sound(5003)], return_tensors="np")
    masks = features.get("attention_mask", features.get("input_features_mask"))
    assert features.input_features.shape == (2, *shape)
    assert masks.dtype == bool
    assert masks.sum(axis=1).tolist() == counted
    alone = of_sounds(name, **settings)([sound(5003)], return_tensors="np").input_features[0]
    # Do not compare the last windows, which extend beyond the end of the sound.
    np.testing.assert_array_equal(features.input_features[1, : counted[1] - 3], alone[: counted[1] - 3])


def test_sounds_become_as_many_rows() -> None:
    assert of_sounds("AST")([sound(9000), sound(900)], return_tensors="np").input_values.shape == (2, 1024, 128)
    clap = of_sounds("Clap", max_length_s=1, truncation="rand_trunc")
    features = clap([sound(9000)], return_tensors="np")
    assert features.input_features.shape == (1, 1, 101, 64)
    assert features.is_longer.tolist() == [[False]]
    with pytest.raises(ValueError, match="has 48001 samples, more than 48000"):
        clap(sound(48001))
    with pytest.raises(presets.PresetError, match="`truncation` must be one of"):
        clap(sound(100), truncation=True)


def test_sounds_that_classes_cut_into_several_are_refused() -> None:
    """Sounds that the class does not cut are padded to a fixed length, whatever the call requests."""
    sounds = [sound(9000), sound(5003)]
    moss = of_sounds("MossTranscribeDiarize", chunk_length=1)
    features = moss(sounds, padding=True, return_tensors="np")
    assert features.input_features.shape == (2, 80, 100)
    assert features.input_features_mask.sum(axis=1).tolist() == [57, 32]
    assert features.padding_mask.sum(axis=1).tolist() == [9000, 5003]
    dots = of_sounds("Dots3Note", chunk_seconds=1)
    features = dots(sounds, return_tensors="np")
    assert features.input_features.shape == (2, 128, 64)
    assert features.chunk_sample_lengths.tolist() == [9000, 5003]
    assert features.num_audio_tokens.tolist() == [8, 4]
    cohere = of_sounds("CohereAsr", dither=0.0, max_audio_clip_s=6.0)
    assert cohere(sounds)["audio_chunk_index"] == [(0, None), (1, None)]
    for extractor in (moss, dots, cohere):
        with pytest.raises(ValueError, match="split sounds"):
            extractor(sound(16001))


def test_sounds_of_phi4_are_told_in_tokens() -> None:
    features = of_sounds("Phi4Multimodal")([sound(9000), sound(5003)], return_tensors="np")
    assert features.audio_input_features.shape == (2, 54, 80)
    assert features.audio_embed_sizes.tolist() == [7, 4]
    assert features.audio_attention_mask.sum(axis=1).tolist() == [54, 29]
    assert "audio_attention_mask" not in of_sounds("Phi4Multimodal")(sound(9000))


@pytest.mark.parametrize(
    ("configuration", "arguments", "told"),
    [
        (WAVE, {"padding": "max_length"}, "needs a `max_length`"),
        (WAVE, {"truncation": True}, "`truncation` needs a `max_length`"),
        (WAVE, {"padding": "shortest"}, "`padding` must be 'max_length', 'longest'"),
        (WAVE, {"device": "cuda"}, "`device` must be 'cpu'"),
        (WHISPER, {"padding": False}, "Sounds of 2500 to 4000 samples do not fit"),
        (WHISPER, {"max_length": 200}, "200 samples are too few for a transform of 400"),
        (WHISPER, {"dither": 0.1}, "no preset follows the setting `dither`"),
        (ENCODEC, {"do_normalize": True}, "no preset follows the setting `do_normalize`"),
        (ENCODEC, {"padding": "max_length"}, "needs a `max_length`"),
        (PIECES, {"padding": "max_length"}, "needs a `max_length`"),
    ],
)
def test_calls_for_sounds_that_are_refused(configuration: dict[str, Any], arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FeatureExtractor(configuration)([sound(4000), sound(2500)], return_tensors="np", **arguments)


def test_sounds_that_are_refused() -> None:
    extractor = FeatureExtractor(WHISPER)
    with pytest.raises(ValueError, match="takes sounds of 16000 Hz, and these are of 8000 Hz"):
        extractor(sound(100), sampling_rate=8000)
    with pytest.raises(ValueError, match=r"Sound 1: expected one channel of samples\. Got the shape \(0,\)"):
        extractor([sound(100), sound(0)])
    with pytest.raises(presets.PresetError, match="is for images, and this class takes audio"):
        FeatureExtractor(QWEN)
    with pytest.raises(presets.PresetError, match="is for audio, and this class takes images"):
        ImageProcessor(WAVE)


def test_tiles_without_padding_are_stacked_where_they_are_as_many() -> None:
    processor = ImageProcessor(LLAVA | {"do_pad": False})
    square, wide = (np.zeros((*size, 3), np.uint8) for size in ((700, 700), (30, 90)))
    assert processor([square], return_tensors="np")["pixel_values"].shape == (1, 5, 3, 336, 336)
    assert processor([wide, wide], return_tensors="np")["pixel_values"].shape == (2, 3, 3, 336, 336)
    with pytest.raises(
        ValueError, match=r"shapes \[\(3, 3, 336, 336\), \(5, 3, 336, 336\)\] do not fit into one tensor"
    ):
        processor([square, wide], return_tensors="np")


@pytest.mark.parametrize(
    ("name", "ignored"),
    [
        ("LlavaNextImageProcessor", {"aspect_ratio_setting": "anyres"}),
        ("SmolVLMImageProcessor", {"video_sampling": {"fps": 1, "max_frames": 64}}),
        ("SegformerImageProcessor", {"reduce_labels": True}),
        ("Mask2FormerImageProcessor", {"reduce_labels": True}),
        ("JanusImageProcessor", {"background_color": [1, 2, 3]}),
        ("DeepseekVLHybridImageProcessor", {"background_color": [1, 2, 3]}),
        ("Lfm2VlImageProcessor", {"max_num_patches": 9}),
        ("BlipImageProcessor", {"size_divisor": 7}),
    ],
)
def test_settings_that_classes_ignore_are_ignored(name: str, ignored: dict[str, Any]) -> None:
    """Each setting was tried with transformers 5.23, whose results do not depend on it."""
    configuration = {"image_processor_type": name, **NEEDED.get(name, {})}
    family = presets.read_configuration(configuration)
    assert presets.read_configuration({**configuration, **ignored}) == family
    later = ImageProcessor(configuration)
    for key, value in ignored.items():
        if key in family.unchanged:
            with pytest.raises(presets.PresetError, match=key):
                setattr(later, key, value)


def test_settings_that_classes_do_not_have_are_ignored_in_configurations_only(caplog: pytest.LogCaptureFixture) -> None:
    configuration = QWEN | {"unheard_of": 3, "do_unheard_of": False}
    assert presets.read_configuration(configuration) == presets.read_configuration(QWEN)
    assert "Qwen2VLImageProcessor: ignoring the setting `unheard_of`, which the class does not have" in caplog.text
    with pytest.raises(presets.PresetError, match="no preset follows the setting `do_unheard_of`"):
        presets.read_configuration(QWEN | {"do_unheard_of": True})
    processor = ImageProcessor(configuration)
    for give in (
        lambda: ImageProcessor(QWEN, unheard_of=3),
        lambda: setattr(processor, "unheard_of", 4),
        lambda: processor(np.zeros((28, 56, 3), np.uint8), unheard_of=4),
    ):
        with pytest.raises(presets.PresetError, match="no preset follows the setting `unheard_of`"):
            give()
    with pytest.raises(presets.PresetError, match="No preset follows 'Owlv2ImageProcessor': it blurs"):
        presets.read_configuration({"image_processor_type": "Owlv2ImageProcessor"})


def test_files_that_hold_the_settings_of_several_classes_are_split() -> None:
    """Qwen2.5-Omni and Gemma 3n are published with such files."""
    sounds = {"feature_size": 128, "chunk_length": 300, "n_samples": 4800000, "nb_max_frames": 30000, "dither": 0.0}
    images = {"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "merge_size": 2}
    both = {
        **WHISPER,
        "image_processor_type": "Qwen2VLImageProcessor",
        **sounds,
        **images,
        "return_attention_mask": True,
    }
    assert presets.read_configuration(both) == presets.read_configuration({**QWEN, **images})
    image = np.zeros((60, 80, 3), np.uint8)
    assert ImageProcessor(both)(image)["image_grid_thw"].tolist() == [[1, 4, 6]]
    extractor = FeatureExtractor(both)
    features = extractor(np.zeros(1000, np.float32), sampling_rate=16000, return_tensors="np")
    assert features["input_features"].shape == (1, 128, 30000)
    unfollowed = {"feature_extractor_type": "Gemma3nAudioFeatureExtractor", "fft_length": 1024, "sampling_rate": 16000}
    siglip = {"image_processor_type": "SiglipImageProcessorFast", "size": {"height": 768, "width": 768}}
    assert presets.read_configuration({**siglip, **unfollowed}) == presets.read_configuration(siglip)
    with pytest.raises(presets.PresetError, match="`hop_size`"):
        presets.read_configuration({**siglip, **unfollowed, "hop_size": 3})


def test_attributes_are_followed_or_refused() -> None:
    """Attributes may be assigned, changed in place, or set back; refusing an assignment leaves the processor unchanged."""
    image = np.random.default_rng(3).integers(0, 256, (70, 90, 3), np.uint8)
    processor, size = ImageProcessor(QWEN), {"shortest_edge": 784, "longest_edge": 4000}

    def grid(**settings: object) -> list[int]:
        return np.asarray(processor(image, return_tensors="np", **settings)["image_grid_thw"])[0].tolist()

    plain, small = grid(), grid(size=size)
    assert plain != small
    processor.size = size
    assert grid() == small
    assert processor.size["longest_edge"] == 4000
    processor.size["longest_edge"] = 10_000_000
    assert grid() == plain
    with pytest.raises(presets.PresetError, match="`quality`"):
        processor.quality = 3
    assert grid() == plain
    processor.max_pixels = 4000
    assert grid() == small
    with pytest.raises(presets.PresetError, match="`max_num_tiles` is read only when the processor is made"):
        ImageProcessor({"image_processor_type": "PerceptionLMImageProcessor"}).max_num_tiles = 2


def test_attributes_of_videos_and_sounds() -> None:
    frames = np.random.default_rng(3).integers(0, 256, (4, 60, 64, 3), np.uint8)
    videos = VideoProcessor({"video_processor_type": "Qwen2VLVideoProcessor"})
    expected = videos(frames, do_normalize=False)["pixel_values_videos"]
    videos.do_normalize = False
    np.testing.assert_array_equal(videos(frames)["pixel_values_videos"], expected)
    sound = np.linspace(-1, 1, 50, dtype=np.float32)
    waves = FeatureExtractor(WAVE)
    waves.do_normalize = False
    np.testing.assert_array_equal(waves(sound)["input_values"], sound[None])
    with pytest.raises(presets.PresetError, match="`sampling_rate` is read when the processor is made"):
        waves.sampling_rate = 8000


def test_images_of_pil_are_never_taken_for_planes_and_lie_upon_white() -> None:
    processor = ImageProcessor({"image_processor_type": "ViTImageProcessor", "do_resize": False})
    pixels = np.random.default_rng(0).integers(0, 256, (3, 9, 4), np.uint8)
    given = Image.fromarray(pixels, "RGBA")
    white = Image.alpha_composite(Image.new("RGBA", (9, 3), "white"), given).convert("RGB")
    expected = processor(np.asarray(white).transpose(2, 0, 1)).pixel_values
    np.testing.assert_array_equal(processor(given).pixel_values, expected)
    assert expected[0].shape == (3, 3, 9)
    np.testing.assert_array_equal(
        processor(given.convert("L")).pixel_values[0][0], processor(given.convert("L")).pixel_values[0][2]
    )


@pytest.mark.parametrize("size", [(40, 70), (70, 40), (41, 41), (33, 64), (1, 300), (20, 17)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"auto": True, "stride": 8},
        {"scaleup": False},
        {"center": False},
        {"scale_fill": True},
        {"auto": True, "stride": 8, "scaleup": False, "center": False, "scale_fill": True},
    ],
    ids=" ".join,
)
def test_letterbox(size: tuple[int, int], settings: dict[str, Any]) -> None:
    """Compare with the calls of OpenCV that Ultralytics makes."""
    import cv2

    image = np.random.default_rng(sum(size)).integers(0, 256, (*size, 3), np.uint8)
    configuration = {"image_processor_type": "YoloLetterboxImageProcessor", "size": {"height": 48, "width": 64}}
    scale = min(48 / size[0], 64 / size[1], 99 if settings.get("scaleup", True) else 1)
    height, width = max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)
    high, wide = 48 - height, 64 - width
    if "auto" in settings:
        high, wide = high % 8, wide % 8
    elif "scale_fill" in settings:
        height, width, high, wide = 48, 64, 0, 0
    top, left = (round(each / 2 - 0.1) if settings.get("center", True) else 0 for each in (high, wide))
    box = np.full((height + high, width + wide, 3), 114, np.uint8)
    box[top : top + height, left : left + width] = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    features = ImageProcessor({**configuration, **settings})(image, return_tensors="np")
    expected = box.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(features["pixel_values"][0], expected)
    assert features["original_sizes"].tolist() == [list(size)]
    with pytest.raises(presets.PresetError, match="`half` \\(True\\)"):
        ImageProcessor({**configuration, "half": True})


def test_a_size_of_padding_has_no_effect_where_nothing_is_padded() -> None:
    sized = {"image_processor_type": "RTDetrImageProcessor", "do_pad": False, "pad_size": {"height": 9, "width": 9}}
    image = np.zeros((20, 30, 3), np.uint8)
    assert ImageProcessor(sized | {"size": {"height": 8, "width": 7}})([image]).pixel_values.shape == (1, 3, 8, 7)
    padded = ImageProcessor(sized | {"do_pad": True, "size": {"height": 8, "width": 7}})([image])
    assert padded.pixel_values.shape == (1, 3, 9, 9)
    assert padded.pixel_mask[0].tolist() == [[1] * 7 + [0] * 2] * 8 + [[0] * 9]
    with pytest.raises(OperatorError, match="does not fit on a canvas of 9 x 9"):
        ImageProcessor(sized | {"do_pad": True})([image])


def test_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="There is no image"):
        ImageProcessor(QWEN)([])


# -- replacing transformers' processors ----------------------------------------------------------------------------------


def test_settings_of_a_call_and_of_a_processor(tmp_path: Path) -> None:
    """Arguments of a call, or of `from_pretrained`, replace settings of the configuration, for this call or for all calls.

    The configuration may be a part of a folder's `processor_config.json`.
    """
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": QWEN | {"min_pixels": 28 * 28}}))
    image = np.zeros((28, 56, 3), np.uint8)
    processor = ImageProcessor.from_pretrained(tmp_path, revision="main", trust_remote_code=False)
    small = ImageProcessor.from_pretrained(tmp_path, patch_size=7)
    assert processor(image).image_grid_thw.tolist() == [[1, 2, 4]]
    assert small(image).image_grid_thw.tolist() == [[1, 4, 8]]
    larger = processor(image, size={"shortest_edge": 4 * 28 * 56, "longest_edge": 10**6})
    assert larger.image_grid_thw.tolist() == [[1, 4, 8]]
    assert processor(image, do_normalize=False).pixel_values.max() == 0
    assert processor(image).image_grid_thw.tolist() == [[1, 2, 4]]
    with pytest.raises(presets.PresetError, match="Did you mean 'do_resize'"):
        processor(image, do_rezise=True)
    with pytest.raises(presets.PresetError, match="no preset follows the setting `do_rezise`"):
        ImageProcessor.from_pretrained(tmp_path, do_rezise=True)
    (tmp_path / "processor_config.json").write_text("{}")
    with pytest.raises(presets.PresetError, match="holds none of `image_processor`"):
        ImageProcessor.from_pretrained(tmp_path)


def test_one_file_for_several_classes(tmp_path: Path) -> None:
    """Each class uses its part of `processor_config.json`, and a separate file in the folder only if there is no such part."""
    videos = {"video_processor_type": "Qwen2VLVideoProcessor", "patch_size": 7}
    combined = {"image_processor": QWEN, "feature_extractor": WAVE | {"do_normalize": False}, "video_processor": videos}

    def write(name: str, held: dict[str, Any]) -> None:
        (tmp_path / name).write_text(json.dumps(held))

    write("processor_config.json", {"processor_class": "OmniProcessor", **combined})
    write("preprocessor_config.json", {"image_processor_type": "ViTImageProcessor"})
    signal = sound(50)
    np.testing.assert_array_equal(FeatureExtractor.from_pretrained(tmp_path)(signal).input_values[0], signal)
    assert VideoProcessor.from_pretrained(tmp_path).patch_size == 7
    assert "image_grid_thw" in ImageProcessor.from_pretrained(tmp_path)(np.zeros((28, 56, 3), np.uint8))
    write("processor_config.json", {"processor_class": "OmniProcessor", "audio_processor": WAVE})
    assert FeatureExtractor.from_pretrained(tmp_path)(signal).input_values[0].shape == (50,)
    assert "image_grid_thw" not in ImageProcessor.from_pretrained(tmp_path)(np.zeros((28, 56, 3), np.uint8))
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(presets.PresetError, match="holds none of `video_processor`"):
        VideoProcessor.from_pretrained(tmp_path)
    with pytest.raises(presets.PresetError, match="is for audio, and this class takes images"):
        ImageProcessor.from_pretrained(tmp_path)


def test_pipelines_of_few_settings_are_kept() -> None:
    processor = ImageProcessor({"image_processor_type": "ViTImageProcessor"})
    for side in range(10, 22):
        assert processor(np.zeros((5, 6, 3), np.uint8), size=side).pixel_values.shape == (1, 3, side, side)
    assert len(processor._running) == 8


def test_a_setting_that_the_class_reads_once_is_no_setting_of_a_call() -> None:
    processor = ImageProcessor({"image_processor_type": "JanusImageProcessor"})
    with pytest.raises(presets.PresetError, match="`image_mean` is read only when the processor is made"):
        processor(np.zeros((5, 6, 3), np.uint8), image_mean=[0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("images", "arguments", "told"),
    [
        ([["no list"], np.zeros((4, 5, 3), np.uint8)], {}, "Either all images or none"),
        ([[np.zeros((4, 5, 3), np.uint8)], []], {}, "There is no image"),
        ("photograph.jpg", {}, "nothing is fetched or read here"),
        (np.zeros((3, 5, 4), np.uint8), {"input_data_format": "channels_last"}, "expected a PIL image"),
        (np.zeros((4, 5, 3), np.uint8), {"input_data_format": "CHW"}, "`input_data_format` must be"),
        (np.zeros((4, 5, 3), np.uint8), {"device": "cuda:0"}, "for a GPU, use"),
        (np.zeros((4, 5, 3), np.uint8), {"return_tensors": "tf"}, "`return_tensors` must be"),
    ],
)
def test_calls_that_are_refused(images: object, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ImageProcessor({"image_processor_type": "ViTImageProcessor"})(images, **arguments)


def test_what_could_be_planes_or_pixels_is_told() -> None:
    processor = ImageProcessor({"image_processor_type": "ViTImageProcessor", "do_resize": False})
    image = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
    planes, pixels = (processor(image, input_data_format=f"channels_{end}") for end in ("first", "last"))
    np.testing.assert_array_equal(planes.pixel_values, processor(image).pixel_values)
    np.testing.assert_array_equal(pixels.pixel_values[0], planes.pixel_values[0].transpose(2, 0, 1))


def test_prompts_of_several_images() -> None:
    """If prompts have different numbers of images, empty images are added to the end of the shorter ones."""
    processor = ImageProcessor({"image_processor_type": "Idefics2ImageProcessor"})
    images = [np.full((side, 400, 3), 255, np.uint8) for side in (380, 390, 400)]
    features = processor([images[:2], images[2:]], return_tensors="np")
    assert features.pixel_values.shape == (2, 2, 3, 400, 400)
    assert features.pixel_attention_mask.sum(axis=(2, 3)).tolist() == [[380 * 400, 390 * 400], [400 * 400, 0]]
    onevision = ImageProcessor({"image_processor_type": "LlavaOnevisionImageProcessor"})
    with pytest.raises(presets.PresetError, match="does not tile"):
        onevision([images[:2], images[2:]])


def test_what_else_the_class_has_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Theirs:
        @classmethod
        def from_dict(cls, settings: dict[str, Any]) -> Any:
            return SimpleNamespace(post_process_object_detection=lambda outputs: (outputs, settings))

    processor = ImageProcessor(DETR | {"do_pad": False})
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(DetrImageProcessor=Theirs))
    assert processor.post_process_object_detection(3) == (3, {"do_pad": False})
    assert processor.do_pad is False
    with pytest.raises(AttributeError):
        _ = processor.post_process_nothing
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(AttributeError, match="need transformers, which is not installed"):
        _ = ImageProcessor(DETR).post_process_object_detection


def test_features_move_as_those_of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        def __init__(self, floats: bool) -> None:
            self.floats = floats

        def is_floating_point(self) -> bool:
            return self.floats

        def to(self, *args: object, **kwargs: object) -> Any:
            return args, kwargs

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(dtype=type))
    features = Features(values=Tensor(True), indices=Tensor(False), sizes=[3])
    assert features.data["sizes"] == [3]
    assert features.to("cuda", float) == {"values": (("cuda", float), {}), "indices": (("cuda",), {}), "sizes": [3]}
    assert features.to(dtype=float) == {"values": ((), {"dtype": float}), "indices": ((), {}), "sizes": [3]}
    with pytest.raises(AttributeError, match="There is no 'mask', only values, indices, sizes"):
        _ = features.mask


def test_files_of_open_clip_are_found(tmp_path: Path) -> None:
    settings = {
        "preprocess_cfg": {"resize_mode": "squash", "size": 99},
        "model_cfg": {"vision_cfg": {"image_size": 30}},
    }
    (tmp_path / "open_clip_config.json").write_text(json.dumps(settings))
    processor = ImageProcessor.from_pretrained(tmp_path)
    image = Image.fromarray(np.zeros((60, 81, 3), np.uint8))
    assert processor(image, return_tensors="np").pixel_values.shape == (1, 3, 30, 30)
    assert processor.count_tokens([(60, 81)], patch_size=15) == [4]
    sized = {"preprocess_cfg": {"resize_mode": "squash", "size": [20, 24]}}
    assert ImageProcessor(sized)(image, return_tensors="np").pixel_values.shape == (1, 3, 20, 24)


@pytest.mark.parametrize("arguments", [{"padding": False}, {"padding": "max_length", "max_length": 5000}])
def test_codecs_that_hear_twice_fill_sounds_to_the_longest_only(arguments: dict[str, Any]) -> None:
    processor = FeatureExtractor({"feature_extractor_type": "NeuCodecFeatureExtractor"})
    with pytest.raises(ValueError, match="`padding=True`, and without `truncation`"):
        processor(np.zeros(3000, np.float32), **arguments)


def test_parts_of_eomt_s_images_have_the_number_of_their_image() -> None:
    processor = ImageProcessor(
        {"image_processor_type": "EomtImageProcessor", "size": {"shortest_edge": 20}, "do_split_image": True}
    )
    images = [Image.fromarray(np.zeros((*size, 3), np.uint8)) for size in ((20, 50), (20, 20))]
    told = processor(images, return_tensors="np")
    assert told.patch_offsets == [[0, 0, 20], [0, 15, 35], [0, 30, 50], [1, 0, 20]]
    assert told.pixel_values.shape == (4, 3, 20, 20)
