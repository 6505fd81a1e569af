"""Image processors in the place of those of `transformers`: the same call, the same values, in parallel and without Python.

>>> processor = ImageProcessor.from_pretrained("models/clip")  # doctest: +SKIP
>>> inputs = processor(images, return_tensors="pt")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from penstock.presets import preset

__all__ = ["Features", "ImageProcessor"]

_BATCH = 32
_CHANNELS = 3


class Features(dict[str, object]):
    """What a model is given, by name; names are attributes as well."""

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no {name!r}, only {', '.join(self)}") from None


class ImageProcessor:
    """An image processor made from a model's own configuration; see :func:`penstock.presets.preset`.

    Args:
        configuration: a folder that holds `preprocessor_config.json`, that file, or what it holds.
        backend: whose arithmetic: `torchvision` or `pil`.
        num_threads: how many images are processed at a time; by default, as many as there are processors.
    """

    def __init__(
        self,
        configuration: str | Path | Mapping[str, object],
        *,
        backend: str = "torchvision",
        num_threads: int | None = None,
    ) -> None:
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
    ) -> ImageProcessor:
        """The processor of the model in a folder, which is not sought anywhere else.

        Raises:
            FileNotFoundError: there is no configuration.
        """
        return cls(folder, backend=backend, num_threads=num_threads)

    def __call__(self, images: object, return_tensors: str | None = None) -> Features:
        """The `pixel_values` of one image, or of several.

        Args:
            images: of PIL, or arrays or tensors of uint8, of shape (H, W, 3) or (3, H, W).
            return_tensors: `np`: one array (images, 3, H, W); `pt`: one tensor; None: a list of arrays.

        Raises:
            ValueError: an image has another type or shape, or tensors are asked for and images differ in size.
        """
        given = list(images) if isinstance(images, (list, tuple)) else [images]
        pixels = [_pixels(image, number) for number, image in enumerate(given)]
        batches = (pixels[start : start + _BATCH] for start in range(0, len(pixels), _BATCH))
        values = [np.array(sample) for batch in batches for sample in self._pipeline.run(images=batch)[0]]
        return Features(pixel_values=_collected(values, return_tensors))

    preprocess = __call__


def _collected(values: Sequence[np.ndarray], kind: str | None) -> object:
    if kind is None:
        return list(values)
    if kind not in ("np", "pt"):
        raise ValueError(f"`return_tensors` is 'np', 'pt' or None. Got: {kind!r}")
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        raise ValueError(f"Images of the sizes {sorted(shapes)} do not fit into one tensor: leave `return_tensors` out")
    stacked = np.stack(values)
    if kind == "np":
        return stacked
    import torch

    return torch.from_numpy(stacked)


def _pixels(image: object, number: int) -> np.ndarray:
    """An image of uint8, contiguous, of shape (H, W, 3)."""
    array = np.asarray(image.convert("RGB") if hasattr(image, "convert") else image)
    if array.dtype != np.uint8 or array.ndim != 3 or _CHANNELS not in (array.shape[0], array.shape[2]):
        raise ValueError(
            f"Image {number}: expected a PIL image, or uint8 of shape (H, W, 3) or (3, H, W). "
            f"Got {array.dtype} of shape {array.shape}"
        )
    # As `transformers` does it where both could be meant.
    planar = array.shape[0] == _CHANNELS
    return np.ascontiguousarray(array.transpose(1, 2, 0) if planar else array)
