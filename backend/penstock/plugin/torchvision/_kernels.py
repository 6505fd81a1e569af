"""The kernels, each of which is a function for one kind of tensor: `resize_image`, `resize_mask` and so on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._kinds import (
    NOT_OF_IMAGES,
    call,
    format_name,
    function_of,
    kind_of_type,
    refuse_twice,
    register,
    registered,
    unsupported_value,
)
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import Function, Leaf, Tensor

# For each kernel: the metadata parameters after the tensor or the first argument, and whether the result includes the canvas (`both`).
_BOXES = """
    affine format canvas_size -> boxes; center_crop format canvas_size -> both; crop format -> both;
    elastic format canvas_size -> boxes; horizontal_flip format canvas_size -> boxes; pad format canvas_size -> both;
    perspective format canvas_size -> boxes; resized_crop format -> both; rotate format canvas_size -> both;
    vertical_flip format canvas_size -> boxes; resize canvas_size -> both
"""
_POINTS = """
    affine canvas_size -> both; center_crop canvas_size -> both; crop -> both; elastic canvas_size -> points;
    horizontal_flip canvas_size -> points; pad canvas_size -> both; perspective canvas_size -> points;
    resized_crop -> both; rotate canvas_size -> both; vertical_flip canvas_size -> points; resize canvas_size -> both
"""
_FUNCTIONALS: dict[str, Function] = {}
_UNCLAMPED = ("horizontal_flip", "vertical_flip")
_PIXEL_PARAMETERS = ("interpolation", "antialias", "fill")
_Parameter = inspect.Parameter


class ExplicitBoxes(NamedTuple):
    """Metadata of boxes in a plain tensor, with the same attributes as :class:`Boxes`."""

    format: str
    canvas: tuple[int, int]
    clamping: str | None


def _signature(functional: Function, first: str, *, without: tuple[str, ...] = ()) -> list[_Parameter]:
    parameters = list(inspect.signature(functional).parameters.values())
    return [parameters[0].replace(name=first)] + [each for each in parameters[1:] if each.name not in without]


def _named(kernel: Function, name: str, parameters: list[_Parameter], like: Function) -> Function:
    kernel.__name__ = kernel.__qualname__ = name
    kernel.__module__ = like.__module__
    kernel.__doc__ = f"`{like.__name__}` of a plain tensor: {parameters[0].name}."
    kernel.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return kernel


def _on_images(functional: Function, suffix: str, inner: Function) -> Function:
    parameters = _signature(functional, suffix)
    signature = inspect.Signature(parameters)

    def kernel(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs).arguments
        image = bound.pop(suffix)
        plain = _plain(image)
        result = inner(plain, **bound)
        # If the function changed the values in place, return the caller's object, whose class remains.
        return image if result is plain else result

    return _named(kernel, f"{functional.__name__}_{suffix}", parameters, functional)


def _on_masks(functional: Function, inner: Function) -> Function:
    without = () if functional.__name__ == "resize" else ("interpolation",)
    parameters = _signature(functional, "mask", without=(*without, "antialias"))
    signature = inspect.Signature(parameters)

    def kernel(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs).arguments
        mask = _plain(bound.pop("mask"))
        flat = mask.ndim < 3
        result = inner(mask.unsqueeze(0) if flat else mask, **bound)
        return result.squeeze(0) if flat else result

    return _named(kernel, f"{functional.__name__}_mask", parameters, functional)


def _on_geometry(functional: Function, suffix: str, inner: Function, metadata_names: list[str], gives: str) -> Function:
    """Return the kernel of ``functional`` for boxes or points; ``inner`` is its implementation."""
    name = functional.__name__
    parameters = _signature(functional, suffix, without=_PIXEL_PARAMETERS)
    metadata = [_Parameter(each, _Parameter.POSITIONAL_OR_KEYWORD) for each in metadata_names]
    position = 2 if (name, suffix) == ("resize", "keypoints") else 1
    parameters[position:position] = metadata
    if suffix == "bounding_boxes":
        if name == "resize":
            parameters.append(_Parameter("format", _Parameter.POSITIONAL_OR_KEYWORD, default="XYXY"))
        if name not in _UNCLAMPED:
            parameters.append(_Parameter("clamping_mode", _Parameter.POSITIONAL_OR_KEYWORD, default="soft"))
    signature = inspect.Signature(parameters)

    def kernel(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs).arguments
        values = _plain(bound.pop(suffix))
        # Crops have no parameter `canvas_size`, as the new canvas follows from their arguments.
        height, width = bound.pop("canvas_size", (0, 0))
        if suffix == "bounding_boxes":
            kind, clamping = format_name(bound.pop("format", "XYXY")), bound.pop("clamping_mode", "soft")
            result, after = inner(values, ExplicitBoxes(kind, (height, width), clamping), **bound)
        else:
            result, after = inner(values, (height, width), **bound)
        return (result, after) if gives == "both" else result

    return _named(kernel, f"{name}_{suffix}", parameters, functional)


def _specified(text: str) -> dict[str, tuple[list[str], str]]:
    found = {}
    for line in text.split(";"):
        words, gives = line.split("->")
        name, *metadata = words.split()
        found[name] = (metadata, gives.strip())
    return found


def public_kernels(functionals: dict[str, Function]) -> dict[str, Function]:
    """Return the kernels of these functions by the kernels' names; from then on, kernels may be registered for the functions."""
    _FUNCTIONALS.update(functionals)
    boxes, points = _specified(_BOXES), _specified(_POINTS)
    found: dict[str, Function] = {}
    for functional in functionals.values():
        name = functional.__name__
        for suffix, kind in (("image", "tensor"), ("video", "video")):
            inner = function_of(name, kind)
            if inner is not None and not (suffix == "image" and name in NOT_OF_IMAGES):
                kernel = _on_images(functional, suffix, inner)
                found[kernel.__name__] = kernel
        mask = function_of(name, "mask")
        if mask is not None and name != "to_dtype":
            found[f"{name}_mask"] = _on_masks(functional, mask)
        for suffix, kind, specified in (("bounding_boxes", "boxes", boxes), ("keypoints", "points", points)):
            if name in specified:
                inner = function_of(name, kind)
                assert inner is not None
                found[f"{name}_{suffix}"] = _on_geometry(functional, suffix, inner, *specified[name])
    return found


def _plain(value: Tensor) -> Tensor:
    if not isinstance(value, torch().Tensor):
        raise TypeError(f"Kernels take tensors. Got: {type(value)}")
    return value if type(value) is torch().Tensor else value.as_subclass(torch().Tensor)


def register_kernel(functional: Function | str, tv_tensor_cls: type) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as ``functional``'s kernel for a user-defined class.

    Args:
        functional: a function of this module, or its name.
        tv_tensor_cls: a class derived from `tv_tensors.TVTensor`, other than the classes in `tv_tensors`.

    Raises:
        ValueError: there is no such function or class, or the class has a kernel already.
    """
    name = functional if isinstance(functional, str) else getattr(functional, "__name__", "")
    known = _FUNCTIONALS.get(name)
    if known is None and isinstance(functional, str):
        raise ValueError(f"Could not find functional with name {name!r} in transforms.v2.functional")
    if known is None or (known is not functional and not isinstance(functional, str)):
        raise ValueError(f"Kernels can only be registered on functionals of transforms.v2. Got: {functional}")
    classes = tv_tensors.classes()
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, classes.TVTensor)):
        raise ValueError(f"Kernels can only be registered for subclasses of TVTensor. Got: {tv_tensor_cls}")
    if tv_tensor_cls in vars(classes).values():
        raise ValueError(f"Kernels cannot be registered for the builtin tv_tensor classes. Got: {tv_tensor_cls}")
    name = getattr(known, "__name__", name)
    refuse_twice(name, tv_tensor_cls)

    def declare(kernel: Function) -> Function:
        register(name, tv_tensor_cls, kernel)
        return kernel

    return declare


def _unchanged(inpt: Leaf, *args: object, **kwargs: object) -> Leaf:
    return inpt


def get_kernel(functional: Function, input_type: type, *, allow_passthrough: bool = False) -> Function:
    """Return the kernel that ``functional`` calls for values of a type.

    Args:
        functional: a function of this module.
        input_type: the type of the value.
        allow_passthrough: whether to return, for a type that the function does not accept, a kernel that returns its argument unchanged.

    Raises:
        TypeError: the function does not accept the type.
        ValueError: the function has no kernels.
    """
    name = functional.__name__
    custom = registered(name, input_type)
    if custom is not None:
        return custom
    kind = kind_of_type(input_type)
    if kind is not None and function_of(name, "tensor" if kind == "image" else kind) is not None:
        return functools.partial(call, name)
    if function_of(name, "tensor") is None:
        raise ValueError(f"`{name}` has no kernels")
    if allow_passthrough:
        return _unchanged
    raise unsupported_value(name, input_type)
