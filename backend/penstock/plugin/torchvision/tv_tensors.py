"""Tensors with metadata: torchvision's classes, or, if torchvision is not installed, equivalent ones."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import BoxFormat, Canvas, Device, DType, Function, Leaf, Tensor

_PUBLIC = (
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "KeyPoints",
    "Mask",
    "TVTensor",
    "Video",
    "is_rotated_bounding_format",
    "set_return_type",
    "wrap",
)


class _BoundingBoxFormat(enum.Enum):
    """The format of boxes: the meaning of each box's numbers."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


class _ReturnType:
    """Sets the type that operations on `tv_tensors` return: permanently, or, if used as a context, until its end.

    Args:
        keep: whether operations return the class of their input rather than a plain tensor.
    """

    keep = False

    def __init__(self, keep: bool) -> None:
        self._before, _ReturnType.keep = _ReturnType.keep, keep

    def __enter__(self) -> _ReturnType:
        return self

    def __exit__(self, *raised: object) -> None:
        _ReturnType.keep = self._before


def _tensor(data: object, dtype: DType | None, device: Device | None, requires_grad: bool | None) -> Tensor:
    grows = data.requires_grad if requires_grad is None and isinstance(data, torch().Tensor) else bool(requires_grad)
    return torch().as_tensor(data, dtype=dtype, device=device).requires_grad_(grows)


@cache
def classes() -> ModuleType:
    """Return the module `torchvision.tv_tensors`, or its substitute."""
    # Some wheels of torchvision cannot be loaded with a PyTorch for another platform.
    with contextlib.suppress(ImportError, RuntimeError):
        return importlib.import_module("torchvision.tv_tensors")
    return _defined()


def _defined() -> ModuleType:
    """Define classes like torchvision's, derived from PyTorch's tensors, and return them as a module."""
    base = torch().Tensor

    class TVTensor(base):  # type: ignore[misc, valid-type]
        """A tensor with a declared kind of content; operations on it return plain tensors."""

        _metadata_names: tuple[str, ...] = ()

        def __new__(
            cls,
            data: object,
            *,
            dtype: DType | None = None,
            device: Device | None = None,
            requires_grad: bool | None = None,
            **metadata: object,
        ) -> Leaf:
            return cls.wrap(_tensor(data, dtype, device, requires_grad), None, **metadata)

        @classmethod
        def wrap(cls, tensor: Tensor, like: object, **metadata: object) -> Tensor:
            """Return a tensor as an object of this class, with the metadata of ``like``."""
            result = tensor.as_subclass(cls)
            for name in cls._metadata_names:
                setattr(result, name, metadata[name] if name in metadata else getattr(like, name, None))
            return result

        @classmethod
        def __torch_function__(
            cls,
            function: Function,
            types: Sequence[type],
            args: Sequence[object] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            with torch()._C.DisableTorchFunctionSubclass():  # private: documented for subclasses
                result = function(*args, **(kwargs or {}))
            keeps = function in (base.clone, base.to, base.detach, base.requires_grad_, base.pin_memory)
            like = next((each for each in args if isinstance(each, cls)), None)
            if isinstance(result, base) and like is not None and (_ReturnType.keep or (keeps and like is args[0])):
                return cls.wrap(result, like)
            return result.as_subclass(base) if isinstance(result, cls) else result

    class Image(TVTensor):
        """An image, or several: (..., C, H, W)."""

    class Video(TVTensor):
        """A video, or several: (..., T, C, H, W)."""

    class Mask(TVTensor):
        """A mask, or several: (..., H, W)."""

    class KeyPoints(TVTensor):
        """Points (..., 2): x and y, in an image of `canvas_size`."""

        _metadata_names = ("canvas_size",)

    class BoundingBoxes(TVTensor):
        """Boxes (N, 4), or rotated boxes (N, 5) or (N, 8), in `format`, in an image of `canvas_size`."""

        _metadata_names = ("format", "canvas_size", "clamping_mode")

        def __new__(
            cls,
            data: object,
            *,
            format: BoxFormat,
            canvas_size: Canvas,
            clamping_mode: str | None = "soft",
            dtype: DType | None = None,
            device: Device | None = None,
            requires_grad: bool | None = None,
        ) -> Leaf:
            kind = _BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
            rows = _tensor(data, dtype, device, requires_grad)
            rows = rows.unsqueeze(0) if rows.ndim == 1 else rows
            if rows.ndim != 2:
                raise ValueError(f"A tensor of boxes must have two dimensions. Got {rows.ndim}")
            if clamping_mode not in (None, "soft", "hard"):
                raise ValueError(f"`clamping_mode` must be soft, hard or None. Got: {clamping_mode!r}")
            if is_rotated_bounding_format(kind) and not rows.is_floating_point():
                raise ValueError(f"Rotated boxes must have a floating-point type. Got: {rows.dtype}")
            return cls.wrap(rows, None, format=kind, canvas_size=tuple(canvas_size), clamping_mode=clamping_mode)

    def wrap(wrappee: Tensor, *, like: Leaf, **metadata: object) -> Tensor:
        """Return a tensor as an object of the class of ``like``, with its metadata."""
        return type(like).wrap(wrappee, like, **metadata)

    def is_rotated_bounding_format(format: BoxFormat) -> bool:
        """Return whether boxes of this format are rotated."""
        name = format if isinstance(format, str) else getattr(format, "value", None)
        if not isinstance(name, str):
            raise ValueError(f"`format` must be a name or a BoundingBoxFormat. Got: {type(format)}")
        return name in ("XYWHR", "CXCYWHR", "XYXYXYXY")

    def set_return_type(return_type: str) -> _ReturnType:
        """Set whether operations return the type of their input (`TVTensor`), or plain tensors (`Tensor`).

        If the returned object is used as a context manager, the setting applies until the context ends.
        """
        if return_type.lower() not in ("tensor", "tvtensor"):
            raise ValueError(f"`return_type` must be 'TVTensor' or 'Tensor'. Got: {return_type!r}")
        return _ReturnType(return_type.lower() == "tvtensor")

    module = ModuleType("penstock.plugin.torchvision.tv_tensors.defined")
    defined = (_BoundingBoxFormat, BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video)
    for name, kind in zip(_PUBLIC, (*defined, is_rotated_bounding_format, set_return_type, wrap)):
        setattr(module, name, kind)
    return module


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(classes(), name)
