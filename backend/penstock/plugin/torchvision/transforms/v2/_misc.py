"""Transforms that change values, and data that belongs to an image."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._kinds import Boxes, canvas_of, kind_of, leaves_of
from penstock.plugin.torchvision._random import numbers, torch
from penstock.plugin.torchvision._settings import pair_of, range_of
from penstock.plugin.torchvision._typing import DType, Floats, Function, Leaf, Nested, Params, Tensor
from penstock.plugin.torchvision.transforms.v2._transform import Applied, BuiltinTransform, Transform

_TENSORS = {"Tensor", "Image", "Video"}
_IMAGES = ("tensor", "image", "video")
LabelsGetter: TypeAlias = str | Function | None
"""`default`, or a function that finds the labels in a sample, or None if there are no labels."""


class Identity(BuiltinTransform):
    """Returns the sample unchanged."""

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return inpt


class Lambda(Transform):
    """Applies a user-defined function.

    Args:
        lambd: the function, which takes a value of the sample.
        types: the types of values for which it is called; other values remain unchanged.
    """

    def __init__(self, lambd: Function, *types: type) -> None:
        self.lambd = lambd
        self.types = types or (object,)

    def wanted(self, leaves: list[Leaf]) -> list[bool]:
        return [isinstance(leaf, self.types) for leaf in leaves]

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return self.lambd(inpt)

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", "")
        return ", ".join(filter(None, [name, f"types={[kind.__name__ for kind in self.types]}"]))


class LinearTransformation(BuiltinTransform):
    """Flattens an image to a vector, subtracts a mean vector, and multiplies the result by a matrix.

    Args:
        transformation_matrix: a matrix of shape (n, n), where n is C * H * W.
        mean_vector: a vector of n values.
    """

    kinds = frozenset(_IMAGES)

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        shape = tuple(transformation_matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"`transformation_matrix` must be square. Got: {shape}")
        if mean_vector.shape[0] != shape[0]:
            raise ValueError(
                f"`mean_vector` must have as many values as the matrix has rows, {shape[0]}. Got: {mean_vector.shape[0]}"
            )
        if transformation_matrix.device != mean_vector.device or transformation_matrix.dtype != mean_vector.dtype:
            raise ValueError(
                "`transformation_matrix` and `mean_vector` must be on the same device and have the same dtype"
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def check_inputs(self, flat_inputs: list[Leaf]) -> None:
        _refuse_pixels(self, flat_inputs)

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        count = len(self.mean_vector)
        if inpt.shape[-3:].numel() != count:
            raise ValueError(f"The matrix is for {count} values. Got an image of {tuple(inpt.shape[-3:])}")
        rows = inpt.as_subclass(torch().Tensor).reshape(-1, count) - self.mean_vector
        result = rows.mm(self.transformation_matrix.to(rows.dtype)).reshape(inpt.shape)
        return result if kind_of(inpt) == "tensor" else tv_tensors.classes().wrap(result, like=inpt)


def _refuse_pixels(transform: Transform, leaves: list[Leaf]) -> None:
    if any(kind_of(leaf) == "pixels" and not isinstance(leaf, np.ndarray) for leaf in leaves):
        raise TypeError(f"{type(transform).__name__} takes tensors, and not PIL's images: convert them with ToImage")


class Normalize(Applied):
    """Computes ``(x - mean) / std`` for each channel of floats.

    Args:
        mean, std: the mean and standard deviation of each channel.
        inplace: whether to change the tensor in place.
    """

    function = "normalize"

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std = list(mean), list(std)
        self.inplace = inplace

    def check_inputs(self, flat_inputs: list[Leaf]) -> None:
        _refuse_pixels(self, flat_inputs)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"mean": self.mean, "std": self.std, "inplace": self.inplace}


class GaussianBlur(Applied):
    """Blurs with a Gaussian filter. PIL images need PyTorch.

    Args:
        kernel_size: the size across and down, or one number for both; sizes must be odd.
        sigma: the standard deviation of the filter, or the range from which it is drawn.
    """

    function = "gaussian_blur"

    def __init__(self, kernel_size: int | Sequence[int], sigma: Floats = (0.1, 2.0)) -> None:
        self.kernel_size = pair_of(kernel_size, "kernel_size")
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError(f"`kernel_size` must be odd and positive. Got: {kernel_size}")
        self.sigma = range_of(sigma, "sigma")
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"`sigma` must be a positive number or a range of positive numbers. Got: {sigma}")

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """Return a random standard deviation."""
        return numbers().between(sigma_min, sigma_max)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        sigma = self.get_params(*self.sigma)
        return {"kernel_size": list(self.kernel_size), "sigma": [sigma, sigma]}


class GaussianNoise(Applied):
    """Adds normally distributed noise.

    Args:
        mean, sigma: the mean and standard deviation of the noise, on a scale on which white is 1.
        clip: whether to clip values to the range from black to white.
    """

    function = "gaussian_noise"

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"mean": self.mean, "sigma": self.sigma, "clip": self.clip}


class ToDtype(BuiltinTransform):
    """Converts to another type.

    Args:
        dtype: the type of images, e.g. `torch.float32` or "float32"; or a dictionary of types by the class of a value, in which
            the key `others` is for all other classes; None: the type does not change.
        scale: whether to scale values so that white remains white.
    """

    kinds = frozenset({"tensor", "image", "video", "mask", "boxes", "points"})

    def __init__(self, dtype: DType | str | Mapping[type | str, DType | None], scale: bool = False) -> None:
        named = type(dtype).__name__ == "dtype"
        if not isinstance(dtype, (dict, str)) and not named:
            raise ValueError(f"`dtype` must be a type, its name, or a dictionary of them. Got: {dtype!r}")
        if isinstance(dtype, Mapping) and {"Tensor"} < {getattr(kind, "__name__", "") for kind in dtype} & _TENSORS:
            warnings.warn(
                "`dtype` names types for plain tensors and for images: a plain `torch.Tensor` will *not* be transformed beside "
                "an image",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        dtype: DType | str | None
        if isinstance(self.dtype, Mapping):
            if type(inpt) not in self.dtype and "others" not in self.dtype:
                raise ValueError(f"`dtype` has neither {type(inpt).__name__} nor 'others'")
            dtype = self.dtype.get(type(inpt), self.dtype.get("others"))
        else:
            dtype = self.dtype if kind_of(inpt) in _IMAGES else None
        if dtype is None:
            if self.scale and kind_of(inpt) in _IMAGES:
                warnings.warn("`scale` is set, but no type for images: no scaling will be done", stacklevel=2)
            return inpt
        dtype = getattr(torch(), dtype) if isinstance(dtype, str) else dtype
        return self.call("to_dtype", inpt, dtype=dtype, scale=self.scale)


class ConvertImageDtype(BuiltinTransform):
    """Converts to another type, and scales values so that white remains white.

    Args:
        dtype: a type of PyTorch, or its name; float32 by default.
    """

    kinds = frozenset({"tensor", "image", "video", "mask", "boxes", "points"})

    def __init__(self, dtype: DType | str = "float32") -> None:
        self.dtype = dtype

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        dtype = getattr(torch(), self.dtype) if isinstance(self.dtype, str) else self.dtype
        return self.call("to_dtype", inpt, dtype=dtype, scale=True)


def labels_of(getter: LabelsGetter) -> Function:
    """Return a function that finds the labels in a sample.

    Raises:
        ValueError: the value is neither `default`, a function nor None.
    """
    if getter == "default":
        return _labels
    if getter is None:
        return _no_labels
    if callable(getter):
        return getter
    raise ValueError(f"`labels_getter` must be 'default', a function or None. Got: {getter!r}")


def _no_labels(sample: Nested) -> None:
    """Return no labels."""


def _labels(sample: Nested) -> Nested:
    """Return the labels of a sample that is a dictionary, or whose second value is one: the value `labels`, or one with
    `label` in its name.
    """
    sample = sample[1] if isinstance(sample, (tuple, list)) else sample
    if kind_of(sample) == "tensor":
        return sample
    if isinstance(sample, Mapping):
        exact = [key for key in sample if str(key).lower() == "labels"]
        for key in exact or [key for key in sample if "label" in str(key).lower()]:
            return sample[key]
    raise ValueError(
        "No labels were found in the sample: give a `labels_getter` that finds them, or None if there are none"
    )


class _Sanitizing(BuiltinTransform):
    """Removes invalid boxes or points, and their labels."""

    takes_pixels = True
    kind = ""
    also: tuple[str, ...] = ()

    def __init__(self, labels_getter: LabelsGetter) -> None:
        self.labels_getter = labels_getter
        self._labels_of = labels_of(labels_getter)

    def valid(self, values: Tensor) -> Tensor:
        """Return a mask of the boxes or points that are valid."""
        raise NotImplementedError

    def run(self, sample: Nested) -> Nested:
        found = self._labels_of(sample)
        labels = [] if found is None else list(found) if isinstance(found, (tuple, list)) else [found]
        if not all(isinstance(label, torch().Tensor) for label in labels):
            raise ValueError(f"Labels must be tensors. Got: {[type(label).__name__ for label in labels]}")
        leaves, rebuilt = leaves_of(sample)
        values = next((leaf for leaf in leaves if kind_of(leaf) == self.kind), None)
        if values is None:
            raise ValueError(f"The sample holds no {self.kind}")
        if any(len(label) != len(values) for label in labels):
            raise ValueError(f"There are {len(values)} {self.kind}, but {[len(label) for label in labels]} labels")
        stay = self.valid(values)
        results = []
        for leaf in leaves:
            is_label = any(leaf is label for label in labels)
            if not is_label and kind_of(leaf) not in (self.kind, *self.also):
                results.append(leaf)
                continue
            if len(leaf) != len(stay) and not is_label:
                results.append(leaf)
                continue
            good = leaf.as_subclass(torch().Tensor)[stay]
            results.append(good if kind_of(leaf) == "tensor" else tv_tensors.classes().wrap(good, like=leaf))
        return rebuilt(results)


class SanitizeBoundingBoxes(_Sanitizing):
    """Removes boxes that are too small or outside the image, and their labels and masks.

    Args:
        min_size, min_area: the smallest side and the smallest area of boxes that remain; at least 1.
        labels_getter: a function that finds the labels, or other tensors with an entry for each box, in a sample; by
            default, a value named like labels.
    """

    kind = "boxes"
    also = ("mask",)

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: LabelsGetter = "default") -> None:
        super().__init__(labels_getter)
        for name, value in (("min_size", min_size), ("min_area", min_area)):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1. Got: {value}")
        self.min_size, self.min_area = min_size, min_area

    def valid(self, values: Tensor) -> Tensor:
        from penstock.plugin.torchvision._on_boxes import valid_boxes

        info, plain = Boxes(values), values.as_subclass(torch().Tensor)
        return valid_boxes(plain, info.format, info.canvas, self.min_size, self.min_area)


class SanitizeKeyPoints(_Sanitizing):
    """Removes points outside the image, and their labels.

    Args:
        labels_getter: see `SanitizeBoundingBoxes`.
    """

    kind = "points"

    def __init__(self, labels_getter: LabelsGetter = None) -> None:
        super().__init__(labels_getter)

    def valid(self, values: Tensor) -> Tensor:
        from penstock.plugin.torchvision._on_boxes import valid_points

        return valid_points(values.as_subclass(torch().Tensor), canvas_of(values))


class UniformTemporalSubsample(Applied):
    """Selects frames of a video at equal distances.

    Args:
        num_samples: the number of frames.
    """

    function = "uniform_temporal_subsample"

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"num_samples": self.num_samples}
