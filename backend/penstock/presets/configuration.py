"""Reads `preprocessor_config.json`, which contains the name of a processor's class in transformers and the processor's settings."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.errors import nearest_names
from penstock.presets.classifiers import (
    EFFICIENT_NET,
    FLAVA,
    JANUS,
    LEVIT,
    LLAVA,
    ConvNextFamily,
    HybridFamily,
    MobileViTFamily,
    PerceiverFamily,
    PoolFormerFamily,
    TextNetFamily,
)
from penstock.presets.codecs import NeuCodecFamily, XcodecFamily
from penstock.presets.dense import (
    BridgeTowerFamily,
    DptFamily,
    EomtFamily,
    GlpnFamily,
    MaskFormerFamily,
    MatchingFamily,
    OneFormerFamily,
    SapiensFamily,
    SuperPointFamily,
    SwinFamily,
    ViltFamily,
    ZoeFamily,
)
from penstock.presets.detection import SAM, DetectionFamily, LetterboxFamily, RfDetrFamily
from penstock.presets.documents import BlueLayoutFamily, DonutFamily, LayoutFamily
from penstock.presets.family import Family, PresetError, known_settings, settings_from
from penstock.presets.fixed import (
    CLIP,
    DOC_LAYOUT,
    IMAGENET,
    NO_CROP,
    NO_PAD,
    OPENAI,
    DepthProFamily,
    FixedFamily,
    GemmaFamily,
    RescaledFamily,
    SquareClipFamily,
    TipsFamily,
)
from penstock.presets.nested import (
    AreaFamily,
    Emu3Family,
    FramesFamily,
    FuyuFamily,
    IdeficsFamily,
    TvpFamily,
    VideoLlavaFamily,
    VivitFamily,
)
from penstock.presets.open_clip import OpenClipFamily
from penstock.presets.paddle import (
    Layout4Family,
    LcNetFamily,
    MarginFamily,
    TableFamily,
    TextDetectionFamily,
    TextLineFamily,
    WarpFamily,
)
from penstock.presets.patches import (
    COSMOS3_EDGE,
    ERNIE45_VL,
    GLM4V,
    GLM_IMAGE,
    HUNYUAN_V4,
    MINIMAX_M3_VL,
    PADDLEOCR_VL,
    QWEN2_VL,
    VIDEO_LLAMA3,
    FirstInklingFamily,
    Gemma4Family,
    Glm5Family,
    HunYuanFamily,
    InklingFamily,
    KimiFamily,
    MuseImageFamily,
    NemotronOmniFamily,
    NeoFamily,
    PixtralFamily,
    SigLIP2Family,
    UnifiedFamily,
)
from penstock.presets.slices import (
    AriaFamily,
    Lfm2Family,
    MiniCPMFamily,
    MiniCPMOcrFamily,
    MolmoFamily,
    Phi4Family,
    Step3Family,
)
from penstock.presets.spectra import (
    AstFamily,
    ClapFamily,
    ClvpFamily,
    CohereFamily,
    DotsFamily,
    FunAsrFamily,
    GemmaSoundFamily,
    Granite5Family,
    GraniteFamily,
    LasrFamily,
    MossFamily,
    MuseFamily,
    NemotronFamily,
    OmniFamily,
    ParakeetFamily,
    PeSoundFamily,
    Phi4SoundFamily,
    PocketFamily,
    QwenSoundFamily,
    SeamlessFamily,
    Speech2TextFamily,
    VibeFamily,
    VoxtralFamily,
    WavTokenizerFamily,
)
from penstock.presets.speech import (
    DacFamily,
    DiaFamily,
    EncodecFamily,
    KyutaiFamily,
    SoundTokenFamily,
    SpeechT5Family,
    WaveFamily,
    WhisperFamily,
)
from penstock.presets.tiles import (
    LLAVA_NEXT,
    ONEVISION_PINPOINTS,
    CappedSplitFamily,
    DoclingFamily,
    GridFamily,
    Idefics2Family,
    LlamaFamily,
    MllamaFamily,
    OcrFamily,
    OnevisionFamily,
    OvisFamily,
    PerceptionFamily,
    SplitFamily,
    UnlimitedOcrFamily,
)
from penstock.presets.timm import TimmFamily
from penstock.presets.videos import (
    COSMOS3_EDGE_VIDEO,
    GLM46V_VIDEO,
    GLMGA_VIDEO,
    QWEN2_VL_VIDEO,
    QWEN3_VL_VIDEO,
    ClipFamily,
    EmbeddingGemmaFamily,
    ErnieVideoFamily,
    FrameFamily,
    Gemma4VideoFamily,
    Glm4vVideoFamily,
    Glm5VideoFamily,
    HunYuanVideoFamily,
    InternVLVideoFamily,
    KimiVideoFamily,
    MiniCPMVideoFamily,
    MiniMaxVideoFamily,
    MolmoVideoFamily,
    MuseVideoFamily,
    NemotronVideoFamily,
    PeVideoFamily,
    Sam2VideoFamily,
    SmolVideoFamily,
    UnifiedVideoFamily,
    VideoLlama3Family,
    VivitVideoFamily,
    VJepaFamily,
)

# The file names of configurations in a folder. The last file contains the configurations of all kinds, under the keys below.
FILE, _VIDEO_FILE, _ALL = "preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json"
_PARTS: Mapping[str, tuple[str, ...]] = {
    "images": ("image_processor",),
    "audio": ("feature_extractor", "audio_processor"),
    "videos": ("video_processor",),
}
_EDGE_224, _EDGE_256, _SIDES_224 = {"shortest_edge": 224}, {"shortest_edge": 256}, {"height": 224, "width": 224}
# The default settings of classes in `transformers`, by the class's name without its suffix; and of YOLO's letterbox and open_clip,
# which are not in `transformers`.
_FAMILIES: dict[str, Family] = {
    "Apertus1p5": AreaFamily(),
    "Aria": AriaFamily(),
    "AST": AstFamily(),
    "Beit": FixedFamily(size=_SIDES_224, resample=3, crop_size=_SIDES_224, ignored=NO_PAD),
    "Bit": CLIP,
    "Blip": FixedFamily(
        size={"height": 384, "width": 384}, resample=3, ignored=FixedFamily.ignored | {"size_divisor"}, **OPENAI
    ),
    "BridgeTower": BridgeTowerFamily(),
    "Chameleon": FixedFamily(
        size={"shortest_edge": 512},
        resample=1,
        do_center_crop=True,
        crop_size={"height": 512, "width": 512},
        default_to_square=False,
        rescale_factor=0.0078,
        image_mean=(1.0, 1.0, 1.0),
        image_std=(1.0, 1.0, 1.0),
    ),
    "CHMv2": DptFamily(
        image_mean=(0.42, 0.411, 0.296),
        image_std=(0.213, 0.156, 0.143),
        do_resize=False,
        do_pad=True,
        size_divisor=16,
        ensure_multiple_of=16,
        keep_aspect_ratio=True,
        torchvision_only=True,
    ),
    "ChineseCLIP": CLIP,
    "Clap": ClapFamily(),
    "CLIP": SquareClipFamily(resample=3, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False, **OPENAI),
    "Clvp": ClvpFamily(),
    "Cohere2Vision": GridFamily(
        size={"height": 512, "width": 512}, crop_to_patches=True, rule="cohere2", torchvision_only=True
    ),
    "CohereAsr": CohereFamily(),
    "CohereCompass": QWEN2_VL,
    "CohereCompassVideo": QWEN3_VL_VIDEO,
    "ConditionalDetr": DetectionFamily(),
    "ConvNext": ConvNextFamily(),
    "Cosmos3Edge": COSMOS3_EDGE,
    "Cosmos3EdgeVideo": COSMOS3_EDGE_VIDEO,
    "Dac": DacFamily(),
    "DeepseekOcr2": OcrFamily(),
    "DeepseekVL": JANUS,
    "DeepseekVLHybrid": HybridFamily(),
    "DeformableDetr": DetectionFamily(),
    "DeiT": FixedFamily(size={"height": 256, "width": 256}, resample=3, do_center_crop=True, crop_size=_SIDES_224),
    "DepthPro": DepthProFamily(),
    "Detr": DetectionFamily(),
    "Dia": DiaFamily(),
    "DINOv3ViT": RescaledFamily(size=_SIDES_224, **IMAGENET),
    "Donut": DonutFamily(),
    "Dots3Note": DotsFamily(),
    "DPT": DptFamily(),
    "EfficientLoFTR": MatchingFamily(),
    "EfficientNet": EFFICIENT_NET,
    "EmbeddingGemma2Video": EmbeddingGemmaFamily(),
    "Emu3": Emu3Family(),
    "Encodec": EncodecFamily(),
    "Eomt": EomtFamily(),
    "Ernie4_5_VL_Moe": ERNIE45_VL,
    "Ernie4_5_VLMoe": ERNIE45_VL,
    "Ernie4_5_VLMoeVideo": ErnieVideoFamily(),
    "Flava": FLAVA,
    "FunAsrNano": FunAsrFamily(),
    "Fuyu": FuyuFamily(),
    "Gemma3": GemmaFamily(),
    "Gemma3nAudio": GemmaSoundFamily(),
    "Gemma4": Gemma4Family(),
    "Gemma4Audio": GemmaSoundFamily(
        frame_length_ms=20.0,
        min_frequency=0.0,
        max_frequency=8000.0,
        preemphasis=0.0,
        fft_overdrive=False,
        mel_floor=0.001,
        is_gemma4=True,
    ),
    "Gemma4Unified": UnifiedFamily(),
    "Gemma4UnifiedAudio": SoundTokenFamily(),
    "Gemma4UnifiedVideo": UnifiedVideoFamily(),
    "Gemma4Video": Gemma4VideoFamily(),
    "Glm46V": GLM4V,
    "Glm46VVideo": GLM46V_VIDEO,
    "Glm4v": GLM4V,
    "Glm4vVideo": Glm4vVideoFamily(),
    "Glm5Next": Glm5Family(),
    "Glm5NextVideo": Glm5VideoFamily(),
    "Glmga": GLM4V,
    "GlmgaVideo": GLMGA_VIDEO,
    "GlmImage": GLM_IMAGE,
    "GLPN": GlpnFamily(),
    "GotOcr2": GridFamily(),
    "GraniteDocling": DoclingFamily(),
    "GraniteSpeech": GraniteFamily(),
    "GraniteSpeech5": Granite5Family(),
    "GroundingDino": DetectionFamily(),
    "HunYuanVL": HunYuanFamily(),
    "HYV4VL": HUNYUAN_V4,
    "HYV4VLVideo": HunYuanVideoFamily(),
    "Idefics": IdeficsFamily(),
    "Idefics2": Idefics2Family(),
    "Idefics3": SplitFamily(size={"longest_edge": 4 * 364}, max_image_size={"longest_edge": 364}),
    "Inkling": FirstInklingFamily(),
    "Inkling2": InklingFamily(),
    "InstructBlipVideoVideo": ClipFamily(size={"height": 384, "width": 384}, resample=3, **OPENAI),
    "InternVLVideo": InternVLVideoFamily(),
    "Janus": JANUS,
    "Kimi_K25": KimiFamily(),
    "Kimi_K25Video": KimiVideoFamily(),
    "KyutaiSpeechToText": KyutaiFamily(),
    "Lasr": LasrFamily(),
    "LayoutLMv2": BlueLayoutFamily(),
    "LayoutLMv3": LayoutFamily(),
    "Levit": LEVIT,
    "Lfm2Vl": Lfm2Family(),
    "LightGlue": MatchingFamily(),
    "Llama4": LlamaFamily(),
    "Llava": LLAVA,
    "LlavaNext": LLAVA_NEXT,
    "LlavaNextVideoVideo": FrameFamily(
        size=_EDGE_224, resample=3, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False, **OPENAI
    ),
    "LlavaOnevision": OnevisionFamily(size={"height": 384, "width": 384}, image_grid_pinpoints=ONEVISION_PINPOINTS),
    "LlavaOnevisionVideo": FrameFamily(
        size={"height": 384, "width": 384}, resample=3, default_to_square=False, **OPENAI
    ),
    "Mask2Former": MaskFormerFamily(),
    "MaskFormer": MaskFormerFamily(),
    "MiniCPMV4_6": MiniCPMFamily(),
    "MiniCPMOcr": MiniCPMOcrFamily(),
    "MiniCPMOcrVideo": MiniCPMVideoFamily(downsample_mode="4x"),
    "MiniCPMV4_6Video": MiniCPMVideoFamily(),
    "MiniMaxM3VL": MINIMAX_M3_VL,
    "MiniMaxM3VLVideo": MiniMaxVideoFamily(),
    "Mllama": MllamaFamily(),
    "MobileNetV1": FixedFamily(size=_EDGE_256, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False),
    "MobileNetV2": FixedFamily(
        size=_EDGE_256, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False, ignored=NO_PAD
    ),
    "MobileViT": MobileViTFamily(),
    "Molmo2": MolmoFamily(),
    "Molmo2Video": MolmoVideoFamily(),
    "MossTranscribeDiarize": MossFamily(),
    "MuseGlimmer": MuseImageFamily(),
    "MuseGlimmerVideo": MuseVideoFamily(),
    "MuseSpark": MuseFamily(),
    "NemotronAsrStreaming": NemotronFamily(),
    "NemotronH_Omni_Reasoning_V3": NemotronOmniFamily(),
    "NemotronH_Omni_Reasoning_V3Video": NemotronVideoFamily(),
    "NeoMME": NeoFamily(),
    "NeuCodec": NeuCodecFamily(),
    "Nougat": MarginFamily(**IMAGENET),
    "OmniASR": OmniFamily(),
    "OneFormer": OneFormerFamily(),
    "OpenClip": OpenClipFamily(),
    "Ovis2": OvisFamily(),
    "OwlViT": FixedFamily(
        size={"height": 768, "width": 768}, resample=3, crop_size={"height": 768, "width": 768}, **OPENAI
    ),
    "PaddleOCRVL": PADDLEOCR_VL,
    "Parakeet": ParakeetFamily(),
    "PeAudio": PeSoundFamily(),
    "Perceiver": PerceiverFamily(**IMAGENET),
    "PerceptionLM": PerceptionFamily(),
    "PerceptionLMVideo": FrameFamily(size={"height": 448, "width": 448}, resample=3),
    "Phi4Multimodal": Phi4Family(),
    "PI0": FixedFamily(
        size={"max_height": 224, "max_width": 224},
        resample=3,
        default_to_square=False,
        do_pad=True,
        pad_size=_SIDES_224,
        torchvision_only=True,
    ),
    "PeVideoVideo": PeVideoFamily(),
    "Pixtral": PixtralFamily(),
    "PocketTTS": PocketFamily(),
    "PoolFormer": PoolFormerFamily(**IMAGENET),
    "PPChart2Table": FixedFamily(size={"height": 1024, "width": 1024}, resample=3, **OPENAI),
    "PPDocLayoutV2": DOC_LAYOUT,
    "PPDocLayoutV3": DOC_LAYOUT,
    "PPDocLayoutV4": Layout4Family(),
    "PPFormulaNet": MarginFamily(
        size={"height": 768, "width": 768}, image_mean=(0.7931, 0.7931, 0.7931), image_std=(0.1738, 0.1738, 0.1738)
    ),
    "PPLCNet": LcNetFamily(),
    "PPOCRV5ServerDet": TextDetectionFamily(),
    "PPOCRV5ServerRec": TextLineFamily(),
    "PPOCRV6SmallRec": TextLineFamily(is_v6=True),
    "PromptDepthAnything": DptFamily(ignored=NO_CROP | {"pad_size", "prompt_scale_to_meter"}),
    "Pvt": FixedFamily(size=_SIDES_224, resample=3, **IMAGENET),
    "Qwen2_5_VL": QWEN2_VL,
    "Qwen2VL": QWEN2_VL,
    "Qwen2VLVideo": QWEN2_VL_VIDEO,
    "Qwen3ASR": QwenSoundFamily(),
    "Qwen3VL": QWEN2_VL,
    "Qwen3VLVideo": QWEN3_VL_VIDEO,
    "RfDetr": RfDetrFamily(),
    "RTDetr": DetectionFamily(size={"height": 640, "width": 640}, do_normalize=False, do_pad=False, longest=0),
    "Sam": SAM,
    "Sam2": FixedFamily(size={"height": 1024, "width": 1024}, tells_sizes=True, torchvision_only=True, **IMAGENET),
    "Sam2VideoVideo": Sam2VideoFamily(),
    "Sam3": FixedFamily(size={"height": 1008, "width": 1008}, tells_sizes=True, torchvision_only=True),
    "Sapiens2": SapiensFamily(),
    "SeamlessM4T": SeamlessFamily(),
    "Segformer": FixedFamily(size={"height": 512, "width": 512}, ignored=NO_CROP | NO_PAD, **IMAGENET),
    "SegGpt": FixedFamily(size={"height": 448, "width": 448}, resample=3, ignored=NO_CROP | NO_PAD, **IMAGENET),
    "Siglip": FixedFamily(size=_SIDES_224, resample=3, default_to_square=False),
    "Siglip2": SigLIP2Family(),
    "SLANeXt": TableFamily(),
    "SmolVLM": SplitFamily(size={"longest_edge": 4 * 364}, max_image_size={"longest_edge": 364}),
    "SmolVLMVideo": SmolVideoFamily(),
    "Speech2Text": Speech2TextFamily(),
    "SpeechT5": SpeechT5Family(),
    "SuperGlue": MatchingFamily(),
    "SuperPoint": SuperPointFamily(),
    "Step3p7": Step3Family(),
    "Swin2SR": SwinFamily(),
    "TextNet": TextNetFamily(**IMAGENET),
    "TimesformerVideo": ClipFamily(
        size=_EDGE_224, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False, **IMAGENET
    ),
    "TimmWrapper": TimmFamily(),
    "Tipsv2": TipsFamily(),
    "Tipsv2Dpt": TipsFamily(),
    "Tvp": TvpFamily(),
    "UltraVBert": CappedSplitFamily(),
    "UnlimitedOcr": UnlimitedOcrFamily(),
    "UVDoc": WarpFamily(),
    "VibeVoiceAcousticTokenizer": VibeFamily(),
    "VideoLlama3": VIDEO_LLAMA3,
    "VideoLlama3Video": VideoLlama3Family(),
    "VideoLlava": VideoLlavaFamily(),
    "VideoLlavaVideo": FrameFamily(
        size=_EDGE_224, resample=3, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False, **OPENAI
    ),
    "VideomtVideo": FrameFamily(size={"height": 640, "width": 640}, **IMAGENET),
    "VideoMAE": FramesFamily(),
    "VideoMAEVideo": ClipFamily(size=_EDGE_224, do_center_crop=True, crop_size=_SIDES_224, default_to_square=False),
    "Vilt": ViltFamily(),
    "ViT": FixedFamily(size=_SIDES_224),
    "Vivit": VivitFamily(),
    "VivitVideo": VivitVideoFamily(),
    "VJEPA2Video": VJepaFamily(),
    "VoxtralRealtime": VoxtralFamily(),
    "Wav2Vec2": WaveFamily(),
    "WavTokenizer": WavTokenizerFamily(),
    "Whisper": WhisperFamily(),
    "Xcodec2": XcodecFamily(),
    "YoloLetterbox": LetterboxFamily(),
    "Yolos": DetectionFamily(multiple=16),
    "ZoeDepth": ZoeFamily(),
}
# Feature extractors whose name without the suffix is that of an image processor.
_SOUNDS_OF: dict[str, Family] = {"Phi4MultimodalFeatureExtractor": Phi4SoundFamily()}
# The reasons why some classes of transformers have no preset.
_SUMMED = "it normalizes by the mean and deviation of a whole image, and PyTorch's order of summation is not defined"
_UNFOLLOWED = {
    "ImageGPTImageProcessor": "it finds colours by a product of matrices, whose rounding depends on PyTorch's implementation",
    "InklingFeatureExtractor": "it limits each frequency to a minimum magnitude, which no operator computes",
    "Kosmos2_5ImageProcessor": _SUMMED,
    "MarkupLMFeatureExtractor": "it takes web pages",
    "MusicgenMelodyFeatureExtractor": "its chroma is computed by torchaudio",
    "Owlv2ImageProcessor": "it blurs by a convolution, whose order of summation PyTorch adapts to the processor",
    "Pix2StructImageProcessor": _SUMMED,
    "Pop2PianoFeatureExtractor": "it finds beats with essentia",
    "UnivNetFeatureExtractor": "it draws noise",
    "VitMatteImageProcessor": "it takes trimaps in addition to images",
    "VitPoseImageProcessor": "it takes boxes in addition to images",
}
# The endings of class names, and what replaces them in the keys of `_FAMILIES`.
_ENDINGS = {
    "ImageProcessorFast": "",
    "ImageProcessorPil": "",
    "ImageProcessor": "",
    "FeatureExtractor": "",
    "VideoProcessor": "Video",
}
_KINDS = {"images": "ImageProcessor", "videos": "Processor", "audio": "FeatureExtractor"}
_MAX_SUGGESTED_NAMES = 3
"""The number of names that a message about an unknown class suggests."""
# Models of timm and open_clip have a single file, which does not name a processor. The keys below identify it.
_TIMM_FILE, _OPEN_CLIP_FILE = "config.json", "open_clip_config.json"
_TELLING = {"pretrained_cfg": "TimmWrapperImageProcessor", "preprocess_cfg": "OpenClipImageProcessor"}
_TYPES = ("image_processor_type", "feature_extractor_type", "video_processor_type")


_TYPE_OF_KIND = {"images": _TYPES[0], "audio": _TYPES[1], "videos": _TYPES[2]}


def families() -> tuple[str, ...]:
    """Return the names of the processors in `transformers` for which there are presets."""
    return (*(name + _KINDS[family.kind] for name, family in _FAMILIES.items()), *_SOUNDS_OF)


def read_configuration(source: str | Path | Mapping[str, object]) -> Family:
    """Return the settings of a configuration.

    Args:
        source: a folder with `preprocessor_config.json` (timm: `config.json`; open_clip: `open_clip_config.json`), that file, or the
            file's contents.

    Raises:
        PresetError: there is no preset for the configuration's class, or a setting is not supported.
        FileNotFoundError: there is no such file.
    """
    values = part_of(configuration_of(source))
    name = class_name(values)
    family = _family_named(name)
    if family is None:
        raise PresetError(_unknown_class(name))
    return settings_from(family, values, name, _vocabulary())


@functools.cache
def _vocabulary() -> frozenset[str]:
    """Return the names of the settings of all families."""
    return frozenset[str]().union(*map(known_settings, _FAMILIES.values()))


def class_name(configuration: Mapping[str, object]) -> str:
    """Return the class name in a configuration; "" if there is none."""
    by_settings = next((name for key, name in _TELLING.items() if key in configuration), "")
    return str(next(filter(None, map(configuration.get, _TYPES)), by_settings))


def _unknown_class(name: str) -> str:
    """Return the error message for a class without a preset; ``name`` is empty if the configuration names no class."""
    if not name:
        return f"The configuration names no class (`image_processor_type`), as a model's own {FILE} does"
    reason = _UNFOLLOWED.get(name.removesuffix("Fast"))
    if reason:
        return f"No preset follows {name!r}: {reason}"
    nearest = ", ".join(nearest_names(name, families(), _MAX_SUGGESTED_NAMES, similarity=0.0))
    return f"No preset follows {name!r}. The nearest names are {nearest}; `penstock.presets.families()` lists all"


def part_of(configuration: Mapping[str, object], kind: str | None = None) -> Mapping[str, object]:
    """Return the settings of one class from a configuration that may contain those of several, such as Qwen2.5-Omni's.

    Args:
        configuration: the configuration's contents.
        kind: the kind of input: `images`, `audio` or `videos`; by default, the first of these for which the configuration names a
            class.
    """
    named = [key for key in _TYPES if configuration.get(key)]
    wanted = _TYPE_OF_KIND[kind] if kind else named[0] if named else ""
    if len(named) < 2 or wanted not in named:
        return configuration
    others = {key: str(configuration[key]) for key in named if key != wanted}
    foreign = frozenset[str]().union(*map(_settings_of, others.values())) - _settings_of(str(configuration[wanted]))
    return {key: value for key, value in configuration.items() if key not in foreign and key not in others}


def _family_named(name: str) -> Family | None:
    """Return the family of a class in transformers, with the class's default settings; None if there is none."""
    if name.removesuffix("Fast") in _UNFOLLOWED:
        return None
    family_name = next((name.removesuffix(end) + left for end, left in _ENDINGS.items() if name.endswith(end)), name)
    return _SOUNDS_OF.get(name, _FAMILIES.get(family_name))


def _settings_of(name: str) -> frozenset[str]:
    """Return the names of the known settings of a class in transformers."""
    family = _family_named(name)
    return frozenset() if family is None else known_settings(family)


def configuration_of(source: str | Path | Mapping[str, object], kind: str = "images") -> Mapping[str, object]:
    """Return the contents of a configuration, which :func:`read_configuration` accepts.

    As in transformers, a part of `processor_config.json` takes precedence over a separate file in the folder.

    Args:
        source: a folder, a file, or the contents.
        kind: the kind of input: `images`, `audio` or `videos`. If a folder has no configuration for images, `images` returns that of
            another kind.

    Raises:
        PresetError: the file contains no configuration of this kind.
        FileNotFoundError: there is no such file.
    """
    if isinstance(source, Mapping):
        return source
    path = Path(source)
    if not path.is_dir():
        return _read(path) if path.name != _ALL else _part_in(path, kind)
    combined = path / _ALL
    if combined.exists() and _parts_in(combined, _PARTS[kind]):
        return _part_in(combined, kind)
    names = (_VIDEO_FILE, FILE) if kind == "videos" else (FILE, _OPEN_CLIP_FILE, _TIMM_FILE)
    found = next((path / name for name in names if (path / name).exists()), None)
    if found is None and combined.exists():
        return _part_in(combined, kind)
    return _read(found or path / FILE)


def _parts_in(path: Path, names: Iterable[str]) -> list[Mapping[str, object]]:
    """Return the parts of `processor_config.json` with these keys."""
    held = _read(path)
    return [part for part in map(held.get, names) if isinstance(part, dict)]


def _part_in(path: Path, kind: str) -> Mapping[str, object]:
    """Return the part of `processor_config.json` for a kind of input. If there is none for images, return that of another kind."""
    names = [*_PARTS[kind], *[name for other in _PARTS.values() for name in other if kind == "images"]]
    parts = _parts_in(path, names)
    if not parts:
        raise PresetError(f"'{path}' holds none of {', '.join(f'`{name}`' for name in dict.fromkeys(names))}")
    return parts[0]


def _read(path: Path) -> dict[str, object]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        wanted = f"a preset is made from a model's own {FILE}"
        raise PresetError(f"'{path}' is not JSON, and {wanted}: {' '.join(str(error).split())}") from error
    if not isinstance(held, dict):
        raise PresetError(f"'{path}' holds no object, but {type(held).__name__}")
    return held
