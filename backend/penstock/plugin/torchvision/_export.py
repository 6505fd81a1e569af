"""Pipelines, and models for Triton, with the results of a `Compose`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from penstock import fn, types
from penstock.errors import PenstockError
from penstock.graph import DataNode
from penstock.pipeline import Pipeline, pipeline_def
from penstock.plugin.torchvision._on_tensors.degradations import blur_kernel
from penstock.plugin.torchvision._pixels import joined_fill
from penstock.plugin.torchvision._settings import borders_of, filter_name
from penstock.plugin.torchvision._translated import steps_of
from penstock.plugin.torchvision._typing import Function, Params
from penstock.plugin.torchvision.transforms import v2
from penstock.plugin.torchvision.transforms.v2._finish import scaling_of
from penstock.plugin.torchvision.transforms.v2._transform import RandomlyApplied
from penstock.serving.export import FILES, export_model

INPUT, OUTPUT = "images", "output"
_BATCH_SIZE = 32


class ExportError(PenstockError, ValueError):
    """Raised if a transform cannot become part of a pipeline."""


@dataclass(frozen=True)
class _Traced:
    """Images in a pipeline, at some step of a transform.

    Attributes:
        node: a node with images, uint8 (H, W, C) or float (C, H, W).
        stage: what the transform has at this step: `pil` images, `tensor` (of uint8), or `float` tensors.
        channels: the number of channels of the images.
    """

    node: DataNode
    stage: str = "pil"
    channels: int = 3

    def through(self, node: DataNode) -> _Traced:
        """Return images at the same stage, with the output ``node`` of an operator."""
        return replace(self, node=node)


_Trace = Callable[..., _Traced]


def _resize(transform: v2.Resize, images: _Traced) -> _Traced:
    reference = "pil" if images.stage == "pil" else "torchvision"
    name = filter_name(transform.interpolation)
    size: Params = {}
    if transform.size is None:
        size["resize_longer"] = transform.max_size
    elif len(transform.size) == 2:
        size["size"] = list(transform.size)
    else:
        size["resize_shorter"] = transform.size[0]
        if transform.max_size is not None:
            size["max_size"] = [transform.max_size] * 2
    if images.stage == "pil":
        name = "nearest" if name == "nearest-exact" else name
    elif not name.startswith("nearest"):
        size["antialias"] = bool(transform.antialias)
    return images.through(fn.resize(images.node, reference=reference, interpolation=name, **size))


def _center_crop(transform: v2.CenterCrop, images: _Traced) -> _Traced:
    cropped = fn.crop(
        images.node,
        crop=list(transform.size),
        rounding="torchvision",
        out_of_bounds_policy="pad",
        fill_values=[0],
    )
    return images.through(cropped)


def _flip(horizontal: int, vertical: int) -> _Trace:
    return lambda transform, images: images.through(fn.flip(images.node, horizontal=horizontal, vertical=vertical))


def _pad(transform: v2.Pad, images: _Traced) -> _Traced:
    if isinstance(transform.fill, dict):
        raise ExportError("`Pad` with a `fill` for each type is not exported: a model gets only images")
    padded = fn.pillow_function(
        images.node,
        function="pad",
        arguments=list(borders_of(transform.padding)),
        fill=list(joined_fill(transform.fill)),
        padding_mode=transform.padding_mode,
    )
    return images.through(padded)


def _pillow(name: str, *numbers: Callable[..., float]) -> _Trace:
    """Return a function that exports a transform of PIL images; ``numbers`` read arguments from the transform."""

    def trace(transform: object, images: _Traced) -> _Traced:
        if images.stage != "pil":
            raise ExportError(
                f"`{type(transform).__name__}` can only be exported for PIL images, not for tensors: put it before the "
                "conversion to tensors"
            )
        arguments = [float(number(transform)) for number in numbers]
        return images.through(fn.pillow_function(images.node, function=name, arguments=arguments))

    return trace


def _rotation(transform: v2.RandomRotation, images: _Traced) -> _Traced:
    angle, other = transform.degrees
    if angle != other or transform.center is not None or images.stage != "pil" or isinstance(transform.fill, dict):
        raise ExportError("`RandomRotation` can only be exported for PIL images, with a fixed angle, about the middle")
    rotated = fn.pillow_function(
        images.node,
        function="rotate",
        # Rounded to single precision, like an angle that is drawn at random.
        arguments=[float(np.float32(angle)), float(transform.expand)],
        interpolation=filter_name(transform.interpolation).replace("nearest-exact", "nearest"),
        fill=list(joined_fill(transform.fill)),
    )
    return images.through(rotated)


def _blur(transform: v2.GaussianBlur, images: _Traced) -> _Traced:
    sigma, other = transform.sigma
    if sigma != other or images.stage != "pil":
        raise ExportError("`GaussianBlur` can only be exported for PIL images, with a fixed `sigma`")
    kernel = blur_kernel(transform.kernel_size, [float(np.float32(sigma))] * 2)
    blurred = fn.pillow_function(
        images.node, function="convolve", arguments=[*transform.kernel_size, *kernel.ravel().tolist()]
    )
    return images.through(blurred)


def _to_tensor(transform: object, images: _Traced) -> _Traced:
    return replace(images, stage="tensor")


def _to_picture(transform: v2.ToPILImage, images: _Traced) -> _Traced:
    if transform.mode not in (None, "L" if images.channels == 1 else "RGB"):
        raise ExportError(f"`ToPILImage` can only be exported without a `mode`. Got: {transform.mode!r}")
    return replace(images, stage="pil")


def _to_dtype(transform: v2.ToDtype | v2.ConvertImageDtype, images: _Traced) -> _Traced:
    if not str(transform.dtype).endswith("uint8"):
        raise ExportError(
            f"`{type(transform).__name__}` can only be exported for uint8 or, with `scale=True`, float32. Got: {transform.dtype}"
        )
    return images


def _rgb(transform: v2.RGB, images: _Traced) -> _Traced:
    if images.channels == 3:
        return images
    return replace(images, node=fn.cat(*[images.node] * 3, axis=2), channels=3)


def _grayscale(transform: v2.Grayscale, images: _Traced) -> _Traced:
    traced = _pillow("grayscale", lambda transform: transform.num_output_channels)(transform, images)
    return replace(traced, channels=transform.num_output_channels)


def _unchanged(transform: object, images: _Traced) -> _Traced:
    return images


_TRACES: dict[type, _Trace] = {
    v2.Identity: _unchanged,
    v2.ToPureTensor: _unchanged,
    v2.Resize: _resize,
    v2.CenterCrop: _center_crop,
    v2.Pad: _pad,
    v2.RandomHorizontalFlip: _flip(horizontal=1, vertical=0),
    v2.RandomVerticalFlip: _flip(horizontal=0, vertical=1),
    v2.RandomRotation: _rotation,
    v2.GaussianBlur: _blur,
    v2.Grayscale: _grayscale,
    v2.RGB: _rgb,
    v2.RandomInvert: _pillow("invert"),
    v2.RandomEqualize: _pillow("equalize"),
    v2.RandomAutocontrast: _pillow("autocontrast"),
    v2.RandomPosterize: _pillow("posterize", lambda transform: transform.bits),
    v2.RandomSolarize: _pillow("solarize", lambda transform: transform.threshold),
    v2.RandomAdjustSharpness: _pillow("adjust_sharpness", lambda transform: transform.sharpness_factor),
    v2.PILToTensor: _to_tensor,
    v2.ToImage: _to_tensor,
    v2.ToPILImage: _to_picture,
    v2.ToDtype: _to_dtype,
    v2.ConvertImageDtype: _to_dtype,
}


def traced(transform: Function, images: DataNode) -> DataNode:
    """Apply a transform to uint8 images (H, W, 3) in the definition of a pipeline.

    Args:
        transform: a transform of this package, of torchvision (`transforms` or `transforms.v2`), of timm
            (`create_transform`), or the return value of a torchvision `weights.transforms()`.
        images: RGB, of layout HWC.

    Returns:
        The transform's result: images (H, W, C) of uint8, or tensors (C, H, W) of uint8 or float.

    Raises:
        ExportError: a transform is random, or no operator does the same.
    """
    steps, position, state = steps_of(transform), 0, _Traced(images)
    while position < len(steps):
        if state.stage == "float" and type(steps[position]) not in (v2.Identity, v2.ToPureTensor):
            raise ExportError(f"`{type(steps[position]).__name__}` comes after the conversion to floats: put it before")
        count = 1
        if state.stage == "pil" and scaling_of(steps[position:]) is not None:
            state, count = _scaled(state, steps[position:])
        elif state.stage == "tensor" and scaling_of([v2.ToImage(), steps[position]]) is not None:
            state, count = _scaled(state, [v2.ToImage(), *steps[position:]])
            count -= 1
        else:
            state = _step(steps[position], state)
        position += count
    return fn.transpose(state.node, perm=[2, 0, 1]) if state.stage == "tensor" else state.node


def _scaled(images: _Traced, steps: Sequence[Function]) -> tuple[_Traced, int]:
    """Return the floats that the first steps make, and the number of these steps."""
    found = scaling_of(list(steps))
    assert found is not None
    count, reference, _ = found
    mean: list[float] = []
    std: list[float] = []
    following = steps[count] if len(steps) > count else None
    if type(following) is v2.Normalize:
        mean, std = following.mean, following.std
        count += 1
    node = fn.rescale_normalize(images.node, divisor=255.0, mean=mean, std=std, reference=reference)
    return _Traced(node, "float"), count


def _step(transform: Function, images: _Traced) -> _Traced:
    name = type(transform).__name__
    trace = _TRACES.get(type(transform))
    if trace is None:
        known = ", ".join(sorted(kind.__name__ for kind in _TRACES))
        library = type(transform).__module__.partition(".")[0]
        whose = "" if library == "penstock" else f" of {library}"
        raise ExportError(
            f"`{name}`{whose} is not exported: it is random, rounds differently from torchvision's second version, or is not one "
            f"of {known}, ToTensor and Normalize"
        )
    if isinstance(transform, RandomlyApplied):
        if transform.p not in (0.0, 1.0):
            raise ExportError(f"`{name}` is random, with a probability of {transform.p:g}, and models must not be")
        if not transform.p:
            return images
    return trace(transform, images)


def pipeline(
    transform: Function,
    *,
    batch_size: int = _BATCH_SIZE,
    encoded: bool = True,
    orientation: bool = False,
    device_id: int | None = None,
    num_threads: int = 1,
    prefetch_queue_depth: int = 1,
) -> Pipeline:
    """Return a pipeline that computes what a transform returns for `PIL.Image.open(file).convert("RGB")`.

    The input of the pipeline is called `images`, and the output `output`.

    Args:
        transform: a transform of this package, of torchvision (`transforms` or `transforms.v2`), of timm
            (`create_transform`), or the return value of a torchvision `weights.transforms()`.
        batch_size: the largest number of images at a time.
        encoded: whether the input is encoded files (JPEG, PNG and so on); otherwise, it is RGB images of uint8, of layout HWC.
        orientation: whether to turn images upright by their Exif data; in PIL, `ImageOps.exif_transpose` does this.
        device_id: the number of the GPU that transforms images that the host has decoded, with the same results; None: no GPU.
        num_threads, prefetch_queue_depth: the pipeline's number of threads and prefetch queue depth.

    Raises:
        ExportError: a transform is random, or no operator does the same.
    """

    @pipeline_def(
        batch_size=batch_size, num_threads=num_threads, prefetch_queue_depth=prefetch_queue_depth, device_id=device_id
    )
    def transforming() -> DataNode:
        if encoded:
            files = fn.external_source(name=INPUT, dtype=types.UINT8, ndim=1)
            images = fn.decoders.on_white(files, device="cpu", adjust_orientation=orientation, drop_alpha=True)
        else:
            images = fn.external_source(name=INPUT, dtype=types.UINT8, layout="HWC")
        images = images if device_id is None else images.gpu()
        return fn.copy(traced(transform, images), name=OUTPUT)

    made: Pipeline = transforming()
    return made


def export(
    transform: Function,
    model: str | Path,
    *,
    batch_size: int = _BATCH_SIZE,
    orientation: bool = False,
    version: int = 1,
) -> list[Path]:
    """Write a model for Triton that takes encoded images and returns the results of a transform.

    Args:
        transform: a transform of this package, of torchvision (`transforms` or `transforms.v2`), of timm
            (`create_transform`), or the return value of a torchvision `weights.transforms()`.
        model: the folder to write, e.g. ``model_repository/preprocess``; its name is the name of the model.
        batch_size: the model's largest batch.
        orientation: whether to turn images upright by their Exif data.
        version: the model's version.

    Returns:
        The paths of the files written.

    Raises:
        ExportError: a transform is random, or no operator does the same.

    Example:
        >>> export(v2.Compose([v2.Resize(256), v2.CenterCrop(224), v2.ToTensor()]), "models/resized")  # doctest: +SKIP
    """
    made = pipeline(transform, batch_size=batch_size, orientation=orientation)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / FILES["json"]
        made.save(str(saved))
        return export_model(saved, model, batch_size=batch_size, version=version)
