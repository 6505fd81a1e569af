"""The image processor, and the conversion of images from the forms in which users pass them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.plugin.transformers._features import Features
from penstock.plugin.transformers._processor import Processor
from penstock.presets import count_tokens, read_configuration

if TYPE_CHECKING:
    from PIL import Image

_CHANNELS, _BATCHED = 3, 4
_FIRST, _LAST = "channels_first", "channels_last"


class ImageProcessor(Processor):
    """An image processor made from a model's configuration; see :func:`penstock.presets.preset`.

    Other methods, such as `post_process_object_detection`, are those of the processor in transformers, if transformers is
    installed.

    Args:
        configuration: a folder with `preprocessor_config.json`, the path of this file, or its contents.
        backend: whose arithmetic to follow: `torchvision` or `pil`.
        num_threads: the number of images that are processed at a time; by default, the number of CPU cores.
        settings: settings that override those of the configuration.
    """

    _input = "images"

    def __call__(
        self,
        images: object,
        *,
        return_tensors: object = None,
        input_data_format: object = None,
        data_format: object = None,
        device: object = None,
        **settings: object,
    ) -> Features:
        """Return the model's inputs for one image or several: `pixel_values`, and further inputs of the model's family.

        Args:
            images: PIL images, or arrays or tensors of uint8, of shape (H, W, 3) or (3, H, W); an array or tensor of four
                dimensions is several images. A list of these, or a list of lists, one for each prompt.
            return_tensors: `np`: arrays; `pt`: tensors; None: arrays, or lists of arrays if images differ in shape.
            input_data_format: the format of arrays, `channels_first` or `channels_last`; by default inferred from their shapes.
            data_format: accepted without effect: results are always planar, as in transformers, whose processor ignores this
                argument, too.
            device: must be `cpu`; for a GPU, use :func:`penstock.presets.preset`.
            settings: settings that override those of the configuration in this call: `size`, `do_resize` and others.

        Raises:
            PresetError: a setting is not supported, or unknown.
            ValueError: an image has another type or shape, or tensors are requested and results differ in shape.
            OperatorError: the processor refuses an image, such as one with an aspect ratio of 1 to 300.
        """
        if device is not None and str(device) != "cpu":
            raise ValueError(f"`device` must be 'cpu': for a GPU, use `presets.preset(device='gpu')`. Got: {device}")
        kind = None if return_tensors is None else str(getattr(return_tensors, "value", return_tensors))
        self._assign_changed()
        followed = read_configuration(self._configuration)
        if followed.none_means_default:
            settings = {key: value for key, value in settings.items() if value is not None}
            if getattr(data_format, "value", data_format) == _LAST:
                raise ValueError(f"`data_format`: only channels first is supported. Got: {data_format!r}")
        plain = self._plain_settings(settings)
        numbers = itertools.count()
        pixels = [
            [as_pixels(image, next(numbers), input_data_format) for image in group]
            for group in _groups(images, followed.separate_prompts)
        ]
        sizes = [image.shape[:2] for group in pixels for image in group]
        return self._features(pixels, kind, {**plain, **self._followed(plain)[0].shared_settings(sizes)})

    preprocess = __call__

    def _plain_settings(self, settings: Mapping[str, object]) -> dict[str, object]:
        # As in transformers, a flag that is None is not set.
        return {key: False if value is None and key.startswith("do_") else value for key, value in settings.items()}

    def count_tokens(self, sizes: Sequence[Sequence[int]], **model: int) -> list[int]:
        """Return the number of vision tokens for each of these image sizes (height, width); see :func:`penstock.presets.count_tokens`."""
        self._assign_changed()
        return count_tokens(self._with({}), sizes, **model)


def _groups(images: object, apart: bool) -> list[list[object]]:
    """Return images as lists of lists. Images that are not in inner lists form one list together, or, with ``apart``, one each.

    Raises:
        ValueError: there is no image, or only some are in lists.
    """
    items = list(images) if isinstance(images, (list, tuple)) else [images]
    nested = [isinstance(each, (list, tuple)) for each in items]
    if any(nested) and not all(nested):
        raise ValueError("Either all images or none must be in inner lists")
    groups = [_several(each) for each in items]
    if not groups or not all(groups):
        raise ValueError("There is no image to process")
    alone = all(getattr(each, "ndim", 3) < _BATCHED for each in items)
    if any(nested):
        return groups
    if apart:
        if not alone:
            raise ValueError("Arrays of several images do not work here: give a list of images, or a list of lists")
        return [[image] for group in groups for image in group]
    return [[image for group in groups for image in group]] if alone else groups


def _several(items: object) -> list[object]:
    """Return the elements of a list or of an array of four dimensions."""
    if isinstance(items, (list, tuple)) or getattr(items, "ndim", 0) == _BATCHED:
        return list(items)  # type: ignore[call-overload]
    return [items]


def as_pixels(image: object, number: int, input_data_format: object) -> np.ndarray:
    """Return an image of uint8, contiguous, of shape (H, W, 3)."""
    from PIL import Image

    form = None if input_data_format is None else getattr(input_data_format, "value", input_data_format)
    if form not in (None, _FIRST, _LAST):
        raise ValueError(f"`input_data_format` must be {_FIRST!r} or {_LAST!r}. Got: {input_data_format!r}")
    if isinstance(image, Image.Image):
        return np.asarray(_opaque(image).convert("RGB"))
    if isinstance(image, str):
        raise ValueError(f"Image {number} is an address or a path, {image!r}: nothing is fetched or read here")
    array = np.asarray(image)
    channels = [array.shape[axis] == _CHANNELS for axis in (0, -1)] if array.ndim == _CHANNELS else [False, False]
    # Ambiguous shapes are resolved as in `transformers`.
    planar = form == _FIRST if form else channels[0]
    if array.dtype != np.uint8 or not channels[0 if planar else 1]:
        raise ValueError(
            f"Image {number}: expected a PIL image, or uint8 of shape (H, W, 3) or (3, H, W). "
            f"Got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array.transpose(1, 2, 0) if planar else array)


def _opaque(image: Image.Image) -> Image.Image:
    """Return a PIL image; if parts of it may be transparent, on a white background."""
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return image
    from PIL import Image

    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
