"""`pillow_function`: functions with the exact results of Pillow, for pipelines that replace torchvision's transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.kernels import pillow
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.operator import Shape


@dataclass(frozen=True)
class _Asked:
    """The parameters of a call.

    Attributes:
        numbers: the values of `arguments`.
        filter, fill, padding_mode: the arguments of these names.
    """

    numbers: Sequence[float]
    filter: str
    fill: Sequence[float]
    padding_mode: str


@dataclass(frozen=True)
class _Function:
    """A function of images.

    Attributes:
        names: the names of the values in `arguments`; if the last name ends with dots, it stands for any number of values.
        compute: the function.
        shape: returns the shape of the result for an image of a given shape; by default, the same shape.
    """

    names: tuple[str, ...]
    compute: Callable[[np.ndarray, _Asked], np.ndarray]
    shape: Callable[[Shape, _Asked], Shape] = lambda shape, asked: shape


def _of_numbers(function: Callable[..., np.ndarray], *names: str) -> _Function:
    return _Function(names, lambda image, asked: function(image, *asked.numbers))


def _convolved(image: np.ndarray, asked: _Asked) -> np.ndarray:
    return pillow.convolve(image, _kernel(asked.numbers))


def _kernel(numbers: Sequence[float]) -> np.ndarray:
    """Return the filter that ``numbers`` (columns, rows, then weights) describe, float32 of shape (rows, columns).

    Raises:
        ValueError: the number of weights is not rows x columns, or the number of rows or columns is even.
    """
    columns, rows, *weights = numbers
    if len(weights) != columns * rows or not columns % 2 or not rows % 2:
        raise ValueError(
            f"A filter must have odd sides and rows x columns weights. Got {columns:g} x {rows:g} and {len(weights)} weights"
        )
    return np.array(weights, np.float32).reshape(int(rows), int(columns))


def _padded(image: np.ndarray, asked: _Asked) -> np.ndarray:
    left, top, right, bottom = map(int, asked.numbers)
    return pillow.pad(image, left, top, right, bottom, asked.fill, asked.padding_mode)


def _padded_shape(shape: Shape, asked: _Asked) -> Shape:
    left, top, right, bottom = map(int, asked.numbers)
    return shape[0] + top + bottom, shape[1] + left + right, shape[2]


def _rotated_shape(shape: Shape, asked: _Asked) -> Shape:
    return (*pillow.rotated_extents(shape[0], shape[1], asked.numbers[0], bool(asked.numbers[1])), shape[2])


_FUNCTIONS = {
    "adjust_brightness": _of_numbers(pillow.adjust_brightness, "factor"),
    "adjust_contrast": _of_numbers(pillow.adjust_contrast, "factor"),
    "adjust_saturation": _of_numbers(pillow.adjust_saturation, "factor"),
    "adjust_sharpness": _of_numbers(pillow.adjust_sharpness, "factor"),
    "adjust_hue": _of_numbers(pillow.adjust_hue, "factor"),
    "adjust_gamma": _of_numbers(pillow.adjust_gamma, "gamma", "gain"),
    "posterize": _Function(("bits",), lambda image, asked: pillow.posterize(image, int(asked.numbers[0]))),
    "solarize": _of_numbers(pillow.solarize, "threshold"),
    "autocontrast": _of_numbers(pillow.autocontrast),
    "equalize": _of_numbers(pillow.equalize),
    "invert": _of_numbers(pillow.invert),
    "grayscale": _Function(
        ("channels",),
        lambda image, asked: pillow.grey(image, int(asked.numbers[0])),
        lambda shape, asked: (*shape[:2], int(asked.numbers[0])),
    ),
    "affine": _Function(
        ("a", "b", "c", "d", "e", "f"),
        lambda image, asked: pillow.affine(image, asked.numbers, asked.filter, asked.fill),
    ),
    "perspective": _Function(
        ("a", "b", "c", "d", "e", "f", "g", "h"),
        lambda image, asked: pillow.affine(image, asked.numbers, asked.filter, asked.fill),
    ),
    "rotate": _Function(
        ("angle", "expand"),
        lambda image, asked: pillow.rotate(
            image, asked.numbers[0], asked.filter, bool(asked.numbers[1]), fill=asked.fill
        ),
        _rotated_shape,
    ),
    "convolve": _Function(("columns", "rows", "weights..."), _convolved),
    "pad": _Function(
        ("left", "top", "right", "bottom"),
        _padded,
        _padded_shape,
    ),
}


def _listed() -> str:
    listed = (
        f"`{name}` ({', '.join(known.names)})" if known.names else f"`{name}`" for name, known in _FUNCTIONS.items()
    )
    return ", ".join(listed)


@register_operator
class PillowFunction(Operator):
    """Applies a function to images; results equal those of Pillow bit for bit.

    Functions are those that `torchvision.transforms.v2` applies to PIL's images. For images of two or more channels,
    `convolve` gives the results of PyTorch's `conv2d`.

    >>> brighter = fn.pillow_function(images, function="adjust_brightness", arguments=[1.5])  # doctest: +SKIP
    """

    schema = Schema(
        name="PillowFunction",
        inputs=(
            Input(
                "input", ("HWC", "FHWC"), doc="Images of uint8, of 1 (mode L), 2 (LA), 3 (RGB) or 4 channels (RGBA)."
            ),
        ),
        arguments=(
            Argument("arguments", "float[]", [], "Its arguments, in order.", example=[1.5]),
            Argument("fill", "float[]", [0.0], "Fill value of warps and `pad`: one, or one for each channel."),
            Argument(
                "function",
                "string",
                "adjust_brightness",
                f"Which, and what its `arguments` are: {_listed()}. Those of warps tell where pixels come from.",
                choices=tuple(_FUNCTIONS),
                exempt="Each takes its own arguments.",
            ),
            Argument("interpolation", "string", "nearest", "Of warps.", choices=tuple(pillow.FILTERS)),
            Argument("padding_mode", "string", "constant", "Of `pad`.", choices=pillow.PAD_MODES),
        ),
        sequences=True,
        examples=(
            Example({"function": "adjust_contrast", "arguments": [1.5]}),
            Example({"function": "rotate", "arguments": [30.0, 1.0], "interpolation": "bicubic"}),
            Example({"function": "pad", "arguments": [3.0, 4.0, 5.0, 6.0], "padding_mode": "edge"}),
        ),
        shown=(on_photo(function="adjust_sharpness", arguments=[3.0]),),
        equivalents=(
            Equivalent("PIL.ImageEnhance", "With the factor."),
            Equivalent("PIL.ImageOps", "The functions of these names."),
            Equivalent("torchvision.transforms.v2.functional", "On images of PIL."),
        ),
    )

    def setup(self) -> None:
        name, numbers = self.args["function"], self.args["arguments"]
        if name not in _FUNCTIONS:
            raise ValueError(f"`function` must be one of {', '.join(_FUNCTIONS)}. Got: {name!r}")
        self._function = _FUNCTIONS[name]
        names = self._function.names
        more = bool(names) and names[-1].endswith("...")
        if len(numbers) < len(names) or (len(numbers) > len(names) and not more):
            expected = ", ".join(self._function.names) or "none"
            raise ValueError(f"`arguments` of `{name}` must be: {expected}. Got: {len(numbers)} values")
        for argument, known in (("interpolation", tuple(pillow.FILTERS)), ("padding_mode", pillow.PAD_MODES)):
            if self.args[argument] not in known:
                raise ValueError(f"`{argument}` must be one of {', '.join(known)}. Got: {self.args[argument]!r}")
        if name == "convolve":
            _kernel(numbers)
        self._asked = _Asked(numbers, self.args["interpolation"], self.args["fill"], self.args["padding_mode"])

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(UINT8, self.input_layout(workspace), batch.ndim())]

    def infer(self, sample: Sample) -> Shape:
        shape = self._function.shape(sample.shapes[0], self._asked)
        if min(shape) < 0 or not 1 <= sample.shapes[0][2] <= 4:
            raise RuntimeError(f"`{self.args['function']}` does not support images of shape {list(sample.shapes[0])}")
        return shape

    def compute(self, sample: Sample) -> None:
        image = np.ascontiguousarray(sample.inputs[0])
        if image.size:
            sample.outputs[0][...] = self._function.compute(image, self._asked)
        else:
            sample.outputs[0][...] = 0
