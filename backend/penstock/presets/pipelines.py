"""Pipelines that do what image processors of `transformers` do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock import fn, types
from penstock.graph import DataNode
from penstock.pipeline import Pipeline, pipeline_def
from penstock.presets.configuration import ImageSettings, PresetError, read_configuration

_OUTPUT = "pixel_values"
_ARITHMETIC = {"torchvision": "torchvision", "pil": "numpy"}
# Below this size, ConvNeXT crops what it has resized.
_CONVNEXT_CROPS = 384


def preset(
    configuration: str | Path | Mapping[str, object],
    *,
    batch_size: int = 8,
    backend: str = "torchvision",
    encoded: bool = True,
    num_threads: int = 1,
    prefetch_queue_depth: int = 1,
) -> Pipeline:
    """A pipeline from a model's own configuration, whose output is, to the bit, the `pixel_values` of its image processor.

    Its input is called `images`, its output `pixel_values`, float32 of layout CHW.

    Args:
        configuration: a folder that holds `preprocessor_config.json`, that file, or what it holds.
        batch_size: the most images at a time.
        backend: whose arithmetic: `torchvision`, which `transformers` takes where it is installed, or `pil`.
        encoded: the input is files (JPEG, PNG and so on); else images of uint8, of layout HWC, in RGB.
        num_threads, prefetch_queue_depth: of the pipeline.

    Raises:
        PresetError: no preset follows the class that is named, or one of its settings.

    Example:
        >>> pipeline = preset({"image_processor_type": "ViTImageProcessor", "size": 224}, batch_size=4)
        >>> pipeline.feed_input("images", photographs)  # doctest: +SKIP
        >>> (pixel_values,) = pipeline.run()  # doctest: +SKIP
    """
    if backend not in _ARITHMETIC:
        raise PresetError(f"`backend` is {' or '.join(_ARITHMETIC)}. Got: {backend!r}")
    followed = read_configuration(configuration)
    # Said now, and not when a batch comes.
    followed.filter_of(backend)
    _divisor(followed)

    @pipeline_def(
        batch_size=batch_size, num_threads=num_threads, prefetch_queue_depth=prefetch_queue_depth, device_id=None
    )
    def preprocessing() -> DataNode:
        if encoded:
            images = fn.decoders.image(fn.external_source(name="images", dtype=types.UINT8, ndim=1), device="cpu")
        else:
            images = fn.external_source(name="images", dtype=types.UINT8, layout="HWC")
        return processed(images, followed, backend)

    pipeline: Pipeline = preprocessing()
    return pipeline


def processed(images: DataNode, settings: ImageSettings, backend: str) -> DataNode:
    """What a processor with these settings makes of images of uint8, of layout HWC."""
    if settings.do_resize:
        images = _resized(images, settings, backend)
    if settings.do_center_crop:
        images = _cropped(images, (settings.crop_size["height"], settings.crop_size["width"]), settings, backend)
    return _normalized(images, settings, backend)


def _resized(images: DataNode, settings: ImageSettings, backend: str) -> DataNode:
    name = settings.filter_of(backend)
    if "shortest_edge" not in settings.size:
        extents = [settings.size["height"], settings.size["width"]]
        return fn.resize(images, size=extents, reference=backend, interpolation=name)
    edge = settings.size["shortest_edge"]
    if settings.crop_pct is None:
        return fn.resize(images, resize_shorter=edge, reference=backend, interpolation=name)
    if edge >= _CONVNEXT_CROPS:
        return fn.resize(images, size=[edge, edge], reference=backend, interpolation=name)
    shorter = int(edge / settings.crop_pct)
    images = fn.resize(images, resize_shorter=shorter, reference=backend, interpolation=name)
    return _cropped(images, (edge, edge), settings, backend)


def _cropped(images: DataNode, extents: tuple[int, int], settings: ImageSettings, backend: str) -> DataNode:
    """The middle; where it is larger than the image, there is black around it."""
    size = settings.size
    least = (size["shortest_edge"],) * 2 if "shortest_edge" in size else (size.get("height", 0), size.get("width", 0))
    if backend == "pil" and (not settings.do_resize or any(have < want for have, want in zip(least, extents))):
        # It puts an image whose distance to the border is odd elsewhere than torchvision.
        raise PresetError(f"No preset of `pil` crops more ({extents}) than the resized image has for sure ({least})")
    return fn.crop(images, crop=extents, rounding="truncate", out_of_bounds_policy="pad", fill_values=[0])


def _divisor(settings: ImageSettings) -> float:
    """What values are divided by.

    Raises:
        PresetError: the factor is not, to the bit, the reciprocal of a number in single precision.
    """
    divisor = round(1 / settings.rescale_factor, 6) if settings.do_rescale else 1.0
    if settings.do_rescale and 1 / divisor != settings.rescale_factor:
        raise PresetError(f"`rescale_factor`: only one over a number is followed. Got: {settings.rescale_factor!r}")
    return divisor


def _normalized(images: DataNode, settings: ImageSettings, backend: str) -> DataNode:
    if not (settings.do_rescale or settings.do_normalize):
        return fn.transpose(images, perm=[2, 0, 1], name=_OUTPUT)
    channels = (settings.image_mean, settings.image_std) if settings.do_normalize else ((), ())
    return fn.rescale_normalize(
        images,
        divisor=_divisor(settings),
        mean=list(channels[0]),
        std=list(channels[1]),
        reference=_ARITHMETIC[backend],
        name=_OUTPUT,
    )
