"""Calls of image processors as in programs: with images in several forms, other arguments, or attributes assigned before."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from configurations import CONFIGURATIONS
from processors import as_arrays, class_of, pictures
from settings import REFUSED, digest

from penstock.plugin.transformers import ImageProcessor

_COUNT, _MOST, _SHAPE = 3, 90, (50, 60)


def forms(tensor: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """Return images in several forms, by the forms' names.

    ``tensor`` makes a tensor from an array; for processors that are tested without PyTorch, it returns the array.
    """
    images = [picture.image for picture in pictures(_COUNT, _MOST)]
    arrays = [np.asarray(image) for image in images]
    batch = np.stack([np.asarray(image.resize(_SHAPE)) for image in images])
    planes = np.ascontiguousarray(arrays[0].transpose(2, 0, 1))
    return {
        "an image": images[0],
        "a list": images,
        "a tuple of arrays": tuple(arrays),
        "an image and an array": [images[0], arrays[1]],
        "lists": [images[:2], images[2:]],
        "lists of one": [images[:1], images[1:2]],
        "lists of arrays": [arrays[:1], arrays[1:]],
        "an array": arrays[0],
        "a tensor": tensor(planes),
        "a tensor of pixels": tensor(arrays[0]),
        "an array of images": batch,
        "arrays of images": [batch, batch],
        "a tensor of images": tensor(np.ascontiguousarray(batch.transpose(0, 3, 1, 2))),
        "nothing": [],
        "a path": "no such photograph.jpg",
        "gray numbers": arrays[0][..., 0],
    }


_ARGUMENTS: tuple[dict[str, object], ...] = (
    {"input_data_format": "channels_last"},
    {"input_data_format": "channels_first"},
    {"input_data_format": "CHW"},
    {"data_format": "channels_first"},
    {"data_format": "channels_last"},
    {"device": "cpu"},
    {"disable_grouping": True},
    {"do_resize": None},
    {"do_resize": False, "do_normalize": False},
    {"do_rescale": False},
    {"size": {"height": 21, "width": 21}},
    {"size": {"shortest_edge": 300, "longest_edge": 900}},
    {"image_mean": [0.1, 0.2, 0.3]},
    {"resample": 2},
    {"quality": 9},
    {"images_kwargs": {"do_resize": False}},
)
_ASSIGNED: tuple[dict[str, object], ...] = (
    {"do_resize": None},
    {"do_normalize": False},
    {"do_rescale": False},
    {"size": {"height": 21, "width": 21}},
    {"size": [30, 34]},
    {"size": {"shortest_edge": 300, "longest_edge": 900}},
    {"max_pixels": 6400},
    {"default_to_square": False},
    {"image_mean": [0.1, 0.2, 0.3]},
    {"resample": 2},
    {"quality": 9},
)
"""Attributes that are assigned after a processor is constructed."""
# Configurations for which Penstock's processor has results for some calls in which transformers' class fails: LLaVA-OneVision and
# ViViT with arrays of images, Emu3 with tensors, Llama 3.2 with an assigned size, Video-LLaVA with images of one row.
BEYOND = ("onevision-small", "mllama-small", "emu3-small", "vivit-small", "video-llava-image-small")


def _calls(tensor: Callable[[np.ndarray], Any]) -> list[tuple[str, Any, Mapping[str, object]]]:
    given = forms(tensor)
    told = [(form, images, {}) for form, images in given.items()]
    return told + [(f"{arguments}", given["an array"], arguments) for arguments in _ARGUMENTS]


def recorded_calls(name: str, backend: str) -> str:
    """Return digests of the results of transformers' processor for all calls, in order, separated by spaces."""
    import torch

    def result(images: Any, arguments: Mapping[str, object], assigned: Mapping[str, object]) -> dict[str, Any]:
        processor = class_of(CONFIGURATIONS[name], backend).from_dict(_without_types(CONFIGURATIONS[name]))
        _assign(processor, assigned)
        return as_arrays(processor(images, return_tensors="pt", **arguments))

    calls = [(images, arguments, {}) for _, images, arguments in _calls(torch.from_numpy)]
    after = [(_picture(), {}, assigned) for assigned in _ASSIGNED]
    return " ".join(digest(partial(result, *call)) for call in (*calls, *after))


def _picture() -> np.ndarray:
    """Return the image for processors with assigned attributes."""
    return np.asarray(next(iter(pictures(1, _MOST))).image)


def _assign(processor: Any, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        setattr(processor, name, copy.deepcopy(value))


def _without_types(configuration: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in configuration.items() if not key.endswith("_type")}


def wrong_calls(name: str, backend: str, recorded: str) -> list[str]:
    """Return a line for each call in which Penstock's processor has a wrong result.

    Wrong is a result other than that of transformers' class and, except for the configurations of `BEYOND`, any result where that
    class fails. Penstock's processor may refuse any call.
    """
    processor = ImageProcessor(CONFIGURATIONS[name], backend=backend)

    def assigned(values: Mapping[str, object]) -> Mapping[str, Any]:
        changed = ImageProcessor(CONFIGURATIONS[name], backend=backend)
        _assign(changed, values)
        return changed(_picture(), return_tensors="np")

    results = [
        (what, partial(processor, images, return_tensors="np", **arguments))
        for what, images, arguments in _calls(np.asarray)
    ]
    results += [(f"assigned {values}", partial(assigned, values)) for values in _ASSIGNED]
    told = []
    for (what, result), expected in zip(results, recorded.split(" "), strict=True):
        got = digest(result)
        if got not in (REFUSED, expected) and not (expected == REFUSED and name in BEYOND):
            told.append(f"{name}, {backend}: {what}: expected {expected}, got {got}")
    return told


def taken(name: str, backend: str) -> dict[str, bool]:
    """Return, by the name of each form of images, whether Penstock's processor accepts it."""
    processor = ImageProcessor(CONFIGURATIONS[name], backend=backend)
    given = forms(np.asarray)
    return {form: digest(partial(processor, images, return_tensors="np")) != REFUSED for form, images in given.items()}
