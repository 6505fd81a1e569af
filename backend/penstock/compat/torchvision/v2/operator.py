"""The module ``nvidia.dali.experimental.torchvision.v2.operator``: base classes for user-defined transforms, to use in `Compose` or to
call.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from penstock import dynamic, fn, pipeline_def, types
from penstock.compat.torchvision._devices import check_device
from penstock.graph import DataNode
from penstock.pipeline import Pipeline
from penstock.plugin.torchvision._typing import Function, Leaf  # private: wraps the plugin

__all__ = [
    "ArgumentValidateRule",
    "DataValidateRule",
    "Operator",
    "adjust_input",
    "get_HWC_from_layout_dynamic",
    "get_HWC_from_layout_pipeline",
    "get_input_shape_dynamic",
]

Value = dynamic.Tensor | dynamic.Batch
_INPUT = "input_data"
_IMAGE_NDIM = 3
_GRAY, _MODES = "L", ("L", "RGB", "RGBA")


class DataValidateRule(ABC):
    """A check of an operator's input."""

    @classmethod
    @abstractmethod
    def verify(cls, data: object) -> None:
        """Raise an error if the data is invalid; in a `Compose`, it is a node of the graph."""


class ArgumentValidateRule(ABC):
    """A check of an operator's arguments."""

    @classmethod
    @abstractmethod
    def verify(cls, **kwargs: object) -> None:
        """Raise an error unless the arguments, all of which are present, are valid."""


class Operator(ABC):
    """A transform for `Compose`, defined by operators of a pipeline.

    Args:
        device: the device that computes the transform: `cpu` or `gpu`.
        kwargs: the keyword arguments that `arg_rules` check.

    Attributes:
        arg_rules: the checks of the arguments, which run when the operator is constructed.
        input_rules: the checks of the input, which run when the pipeline of a `Compose` is defined.
        preprocess_data: converts the input to what `_kernel` takes; None: no conversion.
    """

    arg_rules: ClassVar[Sequence[type[ArgumentValidateRule]]] = ()
    input_rules: ClassVar[Sequence[type[DataValidateRule]]] = ()
    preprocess_data: ClassVar[Callable[[DataNode], object] | None] = None

    def __init__(self, device: str = "cpu", **kwargs: object) -> None:
        self.device = check_device(device)
        self.verify_args(**kwargs)

    @classmethod
    def verify_args(cls, **kwargs: object) -> None:
        """Run all checks of arguments."""
        for rule in cls.arg_rules:
            rule.verify(**kwargs)

    @classmethod
    def verify_data(cls, data_input: object) -> None:
        """Run all checks of the input."""
        for rule in cls.input_rules:
            rule.verify(data_input)

    @abstractmethod
    def _kernel(self, data_input: Leaf) -> DataNode:
        """Compute the result from the input, or from the return value of `preprocess_data`."""

    def __call__(self, data_input: object) -> object:
        raise RuntimeError(f"Operator {self!r} is not directly callable. Use it only inside Compose pipeline.")

    def _invoke(self, data_input: DataNode) -> DataNode:
        """Define the whole operator, with its preprocessing, in the pipeline of a `Compose`."""
        self.verify_data(data_input)
        if self.device == "gpu":
            data_input = data_input.gpu()
        # Looked up on the class, so that a plain function is not bound to the object.
        preprocess = type(self).preprocess_data
        return self._kernel(data_input if preprocess is None else preprocess(data_input))


class OperatorSteps:
    """Successive operators of a `Compose`; for each layout and number of images, they run in one pipeline.

    Args:
        operators: the operators, in their order.
        settings: the settings of the pipelines, with the names in DALI's `Compose`.
    """

    def __init__(self, operators: Sequence[Operator], **settings: object) -> None:
        self._operators, self._settings = operators, settings
        self._pipelines: dict[tuple[str, int], Pipeline] = {}

    def __call__(self, data: Leaf) -> Leaf:
        """Return the operators' result for a PIL image, or a tensor of shape (C, H, W) or (N, C, H, W)."""
        images, layout = _arrays(data)
        (batch,) = self._pipeline(layout, len(images)).run(**{_INPUT: images})
        results = [np.array(each) for each in batch.as_cpu()]
        if layout == "HWC":
            return _as_picture(results[0])
        import torch

        tensor = torch.from_numpy(results[0] if data.ndim == _IMAGE_NDIM else np.stack(results))
        return tensor.to(data.device)

    def _pipeline(self, layout: str, count: int) -> Pipeline:
        if (layout, count) not in self._pipelines:
            on_gpu = any(operator.device == "gpu" for operator in self._operators)

            @pipeline_def(enable_conditionals=True)
            def transforming() -> DataNode:
                node = fn.external_source(name=_INPUT, layout=layout)
                for operator in self._operators:
                    node = operator._invoke(node)
                return node

            settings = {"num_threads": 1, "device_id": 0 if on_gpu else None, **self._settings}
            self._pipelines[layout, count] = transforming(
                **{**settings, "batch_size": count, "prefetch_queue_depth": 1}
            )
        return self._pipelines[layout, count]


def _arrays(data: Leaf) -> tuple[list[np.ndarray], str]:
    """Return images as arrays, and their layout.

    Raises:
        TypeError: a value is neither a PIL image nor a tensor.
        ValueError: the mode of a PIL image is not supported.
    """
    from PIL import Image

    if isinstance(data, Image.Image):
        if data.mode not in _MODES:
            raise ValueError(f"Mode {data.mode} is not supported: use one of {', '.join(_MODES)}")
        pixels = np.array(data)
        return [pixels[..., None] if data.mode == _GRAY else pixels], "HWC"
    if not hasattr(data, "detach") or data.ndim < _IMAGE_NDIM:
        raise TypeError(f"Expected a PIL image, or a tensor of shape (C, H, W) or (N, C, H, W). Got: {type(data)}")
    # `pil_to_tensor` and `permute` leave the channels of each pixel interleaved in memory.
    array = data.detach().cpu().contiguous().numpy()
    return [array] if array.ndim == _IMAGE_NDIM else list(array), "CHW"


def _as_picture(pixels: np.ndarray) -> Leaf:
    """Return pixels of shape (H, W, C) as a PIL image."""
    from PIL import Image

    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def adjust_input(func: Callable[..., Value]) -> Function:
    """Decorate a function that uses dynamic mode, so that it takes and returns PIL images or PyTorch tensors.

    The first argument is converted to a dynamic-mode tensor of layout HWC or CHW, or to a batch of these. Its argument `device`, if
    it has one, selects the device.
    """
    signature = inspect.signature(func)

    @functools.wraps(func)
    def adjusted(inpt: Leaf, *args: object, **kwargs: object) -> Leaf:
        device = signature.bind_partial(inpt, *args, **kwargs).arguments.get("device", "cpu")
        images, layout = _arrays(inpt)
        is_batch = layout == "CHW" and inpt.ndim > _IMAGE_NDIM
        picture: Value = dynamic.batch(images, layout=layout) if is_batch else dynamic.tensor(images[0], layout=layout)
        output = func(picture if "cpu" in str(device) else picture.gpu(), *args, **kwargs).evaluate()
        if layout == "HWC":
            return _as_picture(np.array(output.cpu()))
        import torch

        whole = dynamic.as_tensor(output) if isinstance(output, dynamic.Batch) else output
        return torch.from_numpy(np.array(whole.cpu())).to(inpt.device)

    return adjusted


def get_input_shape_dynamic(inpt: Value) -> tuple[int, ...]:
    """Return the shape of a tensor, or of the samples of a batch, which must have equal shapes."""
    if isinstance(inpt, dynamic.Tensor):
        return inpt.shape
    if isinstance(inpt, dynamic.Batch):
        return inpt.shape[0]
    raise TypeError(f"Expected a tensor or a batch of dynamic mode. Got: {type(inpt)}")


def get_HWC_from_layout_dynamic(inpt: Value) -> tuple[int, int, int]:
    """Return height, width and channels of images in dynamic mode.

    Raises:
        ValueError: the layout is not one of HWC, FHWC, CHW and FCHW.
    """
    shape, layout = get_input_shape_dynamic(inpt), str(inpt.layout)
    if layout.endswith(("HWC", "CHW")):
        height, width, channels = (shape[layout.index(letter)] for letter in "HWC")
        return height, width, channels
    if layout.endswith("HW"):
        return shape[-2], shape[-1], 1
    raise ValueError(f"Unsupported layout: {layout!r}. Expected one of HWC, FHWC, CHW, FCHW.")


def get_HWC_from_layout_pipeline(data_input: DataNode) -> tuple[DataNode, DataNode, DataNode, DataNode]:
    """Return the images in a pipeline, and nodes with their height, width and channels."""
    shape = data_input.shape()
    first, second, third = shape[-3], shape[-2], shape[-1]
    is_planar = fn.cast(data_input.property("layout")[-3] == ord("C"), dtype=types.INT64)
    height, width = first + is_planar * (second - first), second + is_planar * (third - second)
    return height, width, third + is_planar * (first - third), data_input
