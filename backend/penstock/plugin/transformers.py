"""Processors in the place of those of `transformers`: the same call, the same values, in parallel and without Python.

>>> processor = ImageProcessor.from_pretrained("models/clip")  # doctest: +SKIP
>>> inputs = processor(images, return_tensors="pt")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.presets import PresetError, count_tokens, preset, read_configuration

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Self

__all__ = ["FeatureExtractor", "Features", "ImageProcessor"]

_BATCH = 32
_CHANNELS = 3


class Features(dict[str, object]):
    """What a model is given, by name; names are attributes as well."""

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no {name!r}, only {', '.join(self)}") from None


class _Processor:
    """What processors of images and of sounds share."""

    _input = ""

    def __init__(
        self,
        configuration: str | Path | Mapping[str, object],
        *,
        backend: str = "torchvision",
        num_threads: int | None = None,
    ) -> None:
        self._family = read_configuration(configuration)
        if self._family.kind != self._input:
            raise PresetError(f"The configuration is for {self._family.kind}, and this class takes {self._input}")
        self._configuration = configuration
        self._pipeline = preset(
            configuration,
            batch_size=_BATCH,
            backend=backend,
            encoded=False,
            num_threads=num_threads or len(os.sched_getaffinity(0)),
            prefetch_queue_depth=1,
        )

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, backend: str = "torchvision", num_threads: int | None = None
    ) -> Self:
        """The processor of the model in a folder, which is not sought anywhere else.

        Raises:
            FileNotFoundError: there is no configuration.
        """
        return cls(folder, backend=backend, num_threads=num_threads)

    def _features(self, samples: Sequence[np.ndarray], kind: str | None) -> Features:
        """What the processor gives of samples, in one call."""
        names = self._family.outputs
        own: list[dict[str, np.ndarray]] = []
        for start in range(0, len(samples), _BATCH):
            outputs = self._pipeline.run(**{self._input: samples[start : start + _BATCH]})
            own += [dict(zip(names, map(np.array, values))) for values in zip(*outputs)]
        joined = self._family.joined(own)
        return Features({name: _collected(name, value, kind) for name, value in joined.items()})


class ImageProcessor(_Processor):
    """An image processor made from a model's own configuration; see :func:`penstock.presets.preset`.

    Args:
        configuration: a folder that holds `preprocessor_config.json`, that file, or what it holds.
        backend: whose arithmetic: `torchvision` or `pil`.
        num_threads: how many images are processed at a time; by default, as many as there are processors.
    """

    _input = "images"

    def __call__(self, images: object, return_tensors: str | None = None) -> Features:
        """What the model is given of one image, or of several: `pixel_values`, and what its family has beside them.

        Args:
            images: of PIL, or arrays or tensors of uint8, of shape (H, W, 3) or (3, H, W).
            return_tensors: `np`: arrays; `pt`: tensors; None: arrays, or lists of them where images differ in shape.

        Raises:
            ValueError: an image has another type or shape, or tensors are asked for and images differ in size.
            OperatorError: the processor refuses an image, as one whose sides are as 1 to 300.
        """
        given = list(images) if isinstance(images, (list, tuple)) else [images]
        if not given:
            raise ValueError("There is no image to process")
        return self._features([_pixels(image, number) for number, image in enumerate(given)], return_tensors)

    preprocess = __call__

    def count_tokens(self, sizes: Sequence[Sequence[int]], **model: int) -> list[int]:
        """How many vision tokens images of these heights and widths become: see :func:`penstock.presets.count_tokens`."""
        return count_tokens(self._configuration, sizes, **model)


class FeatureExtractor(_Processor):
    """A feature extractor of speech made from a model's own configuration; arguments as for :class:`ImageProcessor`."""

    _input = "audio"

    def __call__(
        self, raw_speech: object, sampling_rate: int | None = None, return_tensors: str | None = None
    ) -> Features:
        """What the model is given of one sound, or of several.

        Args:
            raw_speech: a sound, or a list of them: one-dimensional, of float.
            sampling_rate: of the sounds in Hz; checked if it is given.
            return_tensors: `np`, `pt` or None, as for images.

        Raises:
            ValueError: the sampling rate is not the model's, or a sound is empty or has several channels.
        """
        wanted = getattr(self._family, "sampling_rate", None)
        if sampling_rate not in (None, wanted):
            raise ValueError(f"The model takes sounds of {wanted} Hz, and these are of {sampling_rate} Hz")
        sounds = [np.ascontiguousarray(np.asarray(sound, np.float32)) for sound in _several(raw_speech)]
        for number, sound in enumerate(sounds):
            if sound.ndim != 1 or not sound.size:
                raise ValueError(f"Sound {number}: expected one channel of samples. Got the shape {sound.shape}")
        return self._features(sounds, return_tensors)


def _collected(name: str, value: object, kind: str | None) -> object:
    if kind is None:
        return value
    if kind not in ("np", "pt"):
        raise ValueError(f"`return_tensors` is 'np', 'pt' or None. Got: {kind!r}")
    if isinstance(value, list):
        if any(isinstance(each, np.ndarray) for each in value):
            shapes = sorted({each.shape for each in value})
            raise ValueError(
                f"Images of the sizes {shapes} do not fit into one tensor of `{name}`: leave `return_tensors` out"
            )
        value = np.array(value)
    if kind == "np":
        return value
    import torch

    return torch.from_numpy(value)


def _several(sounds: object) -> Sequence[object]:
    """Sounds as a sequence; a list of numbers is one sound."""
    if isinstance(sounds, np.ndarray):
        return list(sounds) if sounds.ndim > 1 else [sounds]
    if isinstance(sounds, (list, tuple)) and sounds and not isinstance(sounds[0], (int, float)):
        return sounds
    return [sounds]


def _pixels(image: object, number: int) -> np.ndarray:
    """An image of uint8, contiguous, of shape (H, W, 3)."""
    from PIL import Image

    if isinstance(image, Image.Image):
        return np.asarray(_opaque(image).convert("RGB"))
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim != 3 or _CHANNELS not in (array.shape[0], array.shape[2]):
        raise ValueError(
            f"Image {number}: expected a PIL image, or uint8 of shape (H, W, 3) or (3, H, W). "
            f"Got {array.dtype} of shape {array.shape}"
        )
    # As `transformers` does it where both could be meant.
    planar = array.shape[0] == _CHANNELS
    return np.ascontiguousarray(array.transpose(1, 2, 0) if planar else array)


def _opaque(image: Image.Image) -> Image.Image:
    """An image of PIL upon white, if parts of it may be transparent."""
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return image
    from PIL import Image

    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
