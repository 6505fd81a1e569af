"""The kinds of values in a sample, and which function implements an operation for each kind."""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from enum import Enum

import numpy as np

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._pixels import Pixels, has_pixel_mode, held, is_picture, is_pil
from penstock.plugin.torchvision._typing import Canvas, Function, Leaf, Nested, Params, Tensor

_FUNCTIONS: dict[str, dict[str, Function]] = {}
_REGISTERED: dict[str, dict[type, Function]] = {}
FORMATS = ("XYXY", "XYWH", "CXCYWH", "XYWHR", "CXCYWHR", "XYXYXYXY")
"""The formats of boxes; the last three are for rotated boxes."""

_NAMES = {"Image": "image", "Video": "video", "Mask": "mask", "BoundingBoxes": "boxes", "KeyPoints": "points"}


def kind_of(value: object) -> str | None:
    """Return the kind of a value: `pixels` (a PIL image or an array), `tensor`, `image`, `video`, `mask`, `boxes` or
    `points`; None: something else.
    """
    if isinstance(value, Pixels) or is_pil(value):
        return "pixels"
    if isinstance(value, np.ndarray):
        return "pixels" if is_picture(value) else None
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if type(value) is torch.Tensor:
        return "tensor"
    classes = tv_tensors.classes()
    for name, kind in _NAMES.items():
        if isinstance(value, getattr(classes, name)):
            return kind
    return None if isinstance(value, classes.TVTensor) else "tensor"


def is_user_subclass(value: object) -> bool:
    """Return whether a value is a tensor of a class that the user derived directly from `TVTensor`."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or type(value) is torch.Tensor:
        return False
    return isinstance(value, tv_tensors.classes().TVTensor) and kind_of(value) is None


def kind_of_type(cls: type) -> str | None:
    """Return the kind of values of a class: see :func:`kind_of`; arrays are `pixels`."""
    if issubclass(cls, (Pixels, np.ndarray)) or any(
        kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in cls.__mro__
    ):
        return "pixels"
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(cls, torch.Tensor):
        return None
    classes = tv_tensors.classes()
    for name, kind in _NAMES.items():
        if issubclass(cls, getattr(classes, name)):
            return kind
    return None if issubclass(cls, classes.TVTensor) else "tensor"


NOT_OF_IMAGES = frozenset({"uniform_temporal_subsample"})
"""Functions for tensors and videos only, which return images unchanged."""


def function_for(name: str, *kinds: str) -> Callable[[Function], Function]:
    """Return a decorator that declares a function as the implementation of ``name`` for some kinds of values.

    For `boxes`, the function takes a tensor, the format and the canvas, and returns a tensor and a canvas; for `points`, the same
    without the format; for `mask`, the tensor has at least three dimensions. The kind `tensor` includes images; videos are included only
    if `video` is among the kinds. `picture` is for PIL images whose modes are not stored as pixels; the function takes and returns PIL
    images.
    """

    def declare(function: Function) -> Function:
        for kind in kinds:
            _FUNCTIONS.setdefault(name, {})[kind] = function
        return function

    return declare


def unsupported_value(name: str, kind: type) -> TypeError:
    """Return the error for a value of an unsupported type."""
    return TypeError(f"`{name}` takes {', '.join(_FUNCTIONS.get(name, {}))}. Got: {kind}")


def function_of(name: str, kind: str) -> Function | None:
    """Return the function declared as ``name`` for a kind of values."""
    return _FUNCTIONS.get(name, {}).get(kind)


def refuse_twice(name: str, kind: type) -> None:
    """Raise an error if a function was registered for this class.

    Raises:
        ValueError: the class has a function for ``name`` already.
    """
    if kind in _REGISTERED.get(name, {}):
        raise ValueError(f"`{name}` already has a kernel registered for {kind}")


def register(name: str, kind: type, function: Function) -> None:
    """Register a function as the implementation of ``name`` for a class of the user.

    Raises:
        ValueError: the class has a function for ``name`` already.
    """
    refuse_twice(name, kind)
    _REGISTERED.setdefault(name, {})[kind] = function


def registered(name: str, kind: type) -> Function | None:
    """Return the function that the user has registered for a class or one of its bases, up to this package's classes."""
    known = _REGISTERED.get(name)
    if not known:
        return None
    for parent in kind.__mro__:
        if parent in known:
            return known[parent]
        if parent.__name__ in _NAMES:
            return None
    return None


def call(name: str, value: Leaf, *args: object, or_pass: bool = False, **kwargs: object) -> Leaf:
    """Apply the function ``name`` to a value.

    Args:
        name: the name of a function in `torchvision.transforms.v2.functional`.
        value: an image, a tensor, or any other value in a sample.
        or_pass: whether to return a value unchanged if there is no function for its kind.

    Raises:
        TypeError: there is no function for the value's kind.
    """
    custom = registered(name, type(value))
    if custom is not None:
        return custom(value, *args, **kwargs)
    kind = kind_of(value)
    if kind == "pixels" and is_pil(value) and not has_pixel_mode(value):
        kind = "picture"
    stands_for_image = kind == "image" and name not in NOT_OF_IMAGES
    function = _FUNCTIONS[name].get("tensor" if stands_for_image else kind or "")
    if function is None:
        if or_pass:
            return value
        raise unsupported_value(name, type(value))
    if kind == "pixels":
        result = function(held(value), *args, **kwargs)
        return result if isinstance(value, Pixels) else released(result)
    if kind in ("tensor", "picture"):
        return function(value, *args, **kwargs)
    return _typed(kind or "", function, value, args, kwargs)


def _typed(kind: str, function: Function, value: Tensor, args: tuple[object, ...], kwargs: Params) -> Leaf:
    wrap, plain = functools.partial(tv_tensors.classes().wrap, like=value), _plain(value)
    if kind in ("image", "video"):
        result = function(plain, *args, **kwargs)
        return tuple(map(wrap, result)) if isinstance(result, tuple) else wrap(result)
    if kind == "mask":
        flat = plain.ndim < 3
        result = function(plain.unsqueeze(0) if flat else plain, *args, **kwargs)
        return wrap(result.squeeze(0) if flat else result)
    if kind == "points":
        result, canvas = function(plain, canvas_of(value), *args, **kwargs)
        return wrap(result, canvas_size=canvas)
    box = Boxes(value)
    result, canvas = function(plain, box, *args, **kwargs)
    return wrap(result, canvas_size=canvas)


def _plain(value: Tensor) -> Tensor:
    return value.as_subclass(sys.modules["torch"].Tensor)


class Boxes:
    """The metadata of bounding boxes.

    Attributes:
        kind, format: the format as the user specified it, and its name: `XYXY`, `XYWH` or `CXCYWH`, or for rotated boxes
            `XYWHR`, `CXCYWHR` or `XYXYXYXY`.
        canvas: the height and width of the image.
        clamping: how boxes are clamped to the canvas, `soft` or `hard`; None: they are not clamped.
    """

    def __init__(self, boxes: Leaf) -> None:
        self.kind: Enum = boxes.format
        self.format = format_name(self.kind)
        self.canvas = canvas_of(boxes)
        self.clamping: str | None = boxes.clamping_mode


def canvas_of(value: Leaf) -> Canvas:
    """Return the height and width of the image to which boxes or points belong."""
    height, width = value.canvas_size
    return height, width


def format_name(kind: object) -> str:
    """Return the name of a format of boxes.

    Raises:
        KeyError: there is no such format.
    """
    name = str(getattr(kind, "value", kind)).upper()
    if name not in FORMATS:
        raise KeyError(f"{name} is not a format of boxes; use one of {', '.join(FORMATS)}")
    return name


def size_of(value: Leaf) -> tuple[int, int]:
    """Return the height and width of an image, or of the image to which boxes or points belong.

    Raises:
        TypeError: the value has no size.
    """
    return dimensions_of(value)[1:]


def dimensions_of(value: Leaf) -> tuple[int, int, int]:
    """Return the number of channels, the height and the width; see :func:`size_of`."""
    kind = kind_of(value)
    if kind == "pixels":
        if is_pil(value):
            return len(value.getbands()), value.height, value.width
        pixels = held(value)
        return (pixels.channels, *pixels.size)
    if kind in ("boxes", "points"):
        return (0, *canvas_of(value))
    if kind is None or value.ndim < 2:
        raise TypeError(
            f"An image must have a height and a width. Got: {getattr(value, 'shape', type(value).__name__)}"
        )
    channels = value.shape[-3] if value.ndim > 2 else 1
    return int(channels), int(value.shape[-2]), int(value.shape[-1])


def released(value: Leaf) -> Leaf:
    """Return one or several `Pixels` in the form in which the caller passed the images."""
    if isinstance(value, tuple):
        return tuple(map(released, value))
    return value.released() if isinstance(value, Pixels) else value


def leaves_of(sample: Nested) -> tuple[list[Leaf], Callable[[list[Leaf]], Nested]]:
    """Return all values in a sample's nested containers, and a function that returns the same containers with other values."""
    leaves: list[Leaf] = []
    rebuild = _walk(sample, leaves)

    def rebuilt(values: list[Leaf]) -> Nested:
        return rebuild(iter(values))

    return leaves, rebuilt


def _walk(value: Nested, leaves: list[Leaf]) -> Callable[[Iterator[Leaf]], Nested]:
    if isinstance(value, dict) and type(value) in (dict, OrderedDict, defaultdict):
        keys, parts = list(value), [_walk(part, leaves) for part in value.values()]
        if isinstance(value, defaultdict):
            factory = value.default_factory
            return lambda values: defaultdict(factory, ((key, part(values)) for key, part in zip(keys, parts)))
        kind = type(value)
        return lambda values: kind((key, part(values)) for key, part in zip(keys, parts))
    if type(value) in (list, tuple, deque) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        kind, parts = type(value), [_walk(part, leaves) for part in value]
        if hasattr(value, "_fields"):
            return lambda values: kind(*(part(values) for part in parts))
        return lambda values: kind(part(values) for part in parts)
    leaves.append(value)
    return next
