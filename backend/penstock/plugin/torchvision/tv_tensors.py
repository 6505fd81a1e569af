"""Tensors that say what they are: torchvision's own classes where it is installed, or else equivalent classes."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import BoxFormat, Canvas, Function, Leaf, Tensor

_PUBLIC = ("BoundingBoxFormat", "BoundingBoxes", "Image", "KeyPoints", "Mask", "TVTensor", "Video", "wrap")


class _BoundingBoxFormat(enum.Enum):
    """What the numbers of a box are."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"


@cache
def classes() -> ModuleType:
    """The module `torchvision.tv_tensors`, or what stands for it."""
    # Some wheels do not load beside a PyTorch for another machine.
    with contextlib.suppress(ImportError, RuntimeError):
        return importlib.import_module("torchvision.tv_tensors")
    return _defined()


def _defined() -> ModuleType:
    """Classes like torchvision's, derived from PyTorch's tensors."""
    base = torch().Tensor

    class TVTensor(base):  # type: ignore[misc, valid-type]
        """A tensor that says what it holds; results of operations on it do not."""

        _said: tuple[str, ...] = ()

        def __new__(cls, data: object, **said: object) -> Leaf:
            return cls.wrap(torch().as_tensor(data), None, **said)

        @classmethod
        def wrap(cls, tensor: Tensor, like: object, **said: object) -> Tensor:
            """A tensor as one of this kind."""
            result = tensor.as_subclass(cls)
            for name in cls._said:
                setattr(result, name, said[name] if name in said else getattr(like, name, None))
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
            keeps = function in (base.clone, base.to, base.detach, base.requires_grad_)
            if keeps and isinstance(args[0], cls):
                return cls.wrap(result, args[0])
            return result.as_subclass(base) if isinstance(result, cls) else result

    class Image(TVTensor):
        """(..., C, H, W)."""

    class Video(TVTensor):
        """(..., T, C, H, W)."""

    class Mask(TVTensor):
        """(..., H, W)."""

    class KeyPoints(TVTensor):
        """(..., 2): x and y, in an image of `canvas_size`."""

        _said = ("canvas_size",)

    class BoundingBoxes(TVTensor):
        """(N, 4) in `format`, in an image of `canvas_size`."""

        _said = ("format", "canvas_size", "clamping_mode")

        def __new__(
            cls, data: object, *, format: BoxFormat, canvas_size: Canvas, clamping_mode: str | None = "soft"
        ) -> Leaf:
            kind = _BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
            rows = torch().as_tensor(data)
            rows = rows.unsqueeze(0) if rows.ndim == 1 else rows
            return cls.wrap(rows, None, format=kind, canvas_size=tuple(canvas_size), clamping_mode=clamping_mode)

    def wrap(wrappee: Tensor, *, like: Leaf, **said: object) -> Tensor:
        """A tensor as one of the kind of another."""
        return type(like).wrap(wrappee, like, **said)

    module = ModuleType("penstock.plugin.torchvision.tv_tensors.defined")
    defined = (_BoundingBoxFormat, BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video, wrap)
    for name, kind in zip(_PUBLIC, defined):
        setattr(module, name, kind)
    return module


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(classes(), name)
