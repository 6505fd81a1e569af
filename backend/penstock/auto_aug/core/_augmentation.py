"""One augmentation: an operation together with the range of its magnitudes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penstock import fn, types
from penstock.auto_aug.core import _args
from penstock.graph import DataNode, constant_node, current_scope
from penstock.graph.autograph import Tools

_KEEP = object()


class SignedBin:
    """A magnitude bin with a random sign.

    Args:
        bin: the index of the magnitude: a number, or a node.
        sign: a node: 0 for positive, 1 for negative.
    """

    def __init__(self, bin: int | DataNode, sign: DataNode) -> None:
        self.bin = bin
        self.sign = sign

    @property
    def index(self) -> DataNode:
        """The index into the parameters of all magnitudes, where each magnitude is followed by its negative."""
        return 2 * self.bin + self.sign if isinstance(self.bin, DataNode) else self.sign

    def __getitem__(self, stage: int) -> SignedBin:
        """Return the bin for one of several consecutive augmentations."""
        return SignedBin(self.bin[stage] if isinstance(self.bin, DataNode) else self.bin, self.sign[stage])


def signed_bin(
    magnitude_bin: int | DataNode,
    random_sign: DataNode | None = None,
    seed: int | None = None,
    shape: Sequence[int] | int | None = None,
) -> SignedBin:
    """Return a magnitude bin with a random sign; all augmentations called with the bin get the same sign.

    Args:
        magnitude_bin: index of the magnitude: a number, or a node of INT32.
        random_sign: a node of INT32: 0 for positive, 1 for negative; by default drawn with equal probabilities.
        seed: the seed of the random draw.
        shape: the shape of the random draw; default: a single value.

    >>> aug_bin = signed_bin(5)  # doctest: +SKIP
    >>> image = rotate(image, magnitude_bin=aug_bin, num_magnitude_bins=10)  # doctest: +SKIP
    """
    if not isinstance(magnitude_bin, (DataNode, int, np.integer)):
        raise TypeError(f"The `magnitude_bin` must be an int or a DataNode of ints, got {magnitude_bin!r}")
    if random_sign is None:
        random_sign = fn.random.uniform(values=[0, 1], dtype=types.INT32, seed=seed, shape=shape)
    return SignedBin(magnitude_bin, random_sign)


class Augmentation:
    """An operation on samples whose strength is a magnitude; made by :func:`augmentation`.

    Args:
        op: the function that is called with the samples, the parameter and keyword arguments.
        mag_range: the lowest and highest magnitude, or an array with the magnitude of each bin; None: the operation has no
            magnitude, and gets None as its parameter.
        randomly_negate: whether half of the samples, at random, get the negative magnitude.
        mag_to_param: converts a magnitude to the parameter, a number or an array; by default the parameter is the magnitude.
        param_device: the device of the parameter: ``cpu``, ``gpu``, or ``auto``, which is the samples' device.
        name: the name in messages and policies; by default the name of ``op``.
    """

    def __init__(
        self,
        op: Callable[..., DataNode],
        mag_range: tuple[float, float] | np.ndarray | None = None,
        randomly_negate: bool | None = None,
        mag_to_param: Callable[[float], ArrayLike] | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ) -> None:
        self._op = op
        self._given = {
            "mag_range": mag_range,
            "mag_to_param": mag_to_param,
            "randomly_negate": randomly_negate,
            "param_device": param_device,
            "name": name,
        }
        count = _args.positional_count(op)
        if count < 2:
            raise ValueError(
                f"The {op} accepts {count} positional argument(s), but the functions decorated with `@augmentation` must accept at "
                "least two: the samples and the parameter."
            )

    def __repr__(self) -> str:
        settings = [f"{key}={value!r}" for key, value in self._given.items() if value is not None]
        return f"Augmentation({', '.join([repr(self._op), *settings])})"

    @property
    def op(self) -> Callable[..., DataNode]:
        """The operation."""
        return self._op

    @property
    def mag_range(self) -> tuple[float, float] | np.ndarray | None:
        """The lowest and highest magnitude, or an array with the magnitude of each bin."""
        return self._given["mag_range"]  # type: ignore[return-value]

    @property
    def mag_to_param(self) -> Callable[[float], ArrayLike]:
        """Converts a magnitude to the parameter."""
        return self._given["mag_to_param"] or np.asarray  # type: ignore[return-value]

    @property
    def randomly_negate(self) -> bool:
        """Whether half of the samples, at random, get the negative magnitude."""
        return bool(self._given["randomly_negate"])

    @property
    def param_device(self) -> str:
        """The device of the parameter."""
        return self._given["param_device"] or "cpu"  # type: ignore[return-value]

    @property
    def name(self) -> str:
        """The name in messages and policies."""
        return self._given["name"] or self._op.__name__  # type: ignore[return-value]

    def __call__(
        self, data: DataNode, *, magnitude_bin: object = None, num_magnitude_bins: int | None = None, **kwargs: object
    ) -> DataNode:
        """Return the augmented samples.

        Args:
            data: the samples.
            magnitude_bin: the bin of the magnitude: a number, a node of INT32, or a :func:`signed_bin`.
            num_magnitude_bins: how many magnitudes the range is divided into.
            kwargs: the keyword arguments for the operation; those that it does not accept are ignored.

        Raises:
            MissingArgException: the operation needs a keyword argument that the call lacks.
            ValueError: the operation needs a magnitude bin that the call lacks.
            IndexError: the bin is outside of ``[0, num_magnitude_bins)``.
        """
        parameter = self._parameter(magnitude_bin, num_magnitude_bins, getattr(data, "device", None) or "cpu")
        missing = _args.missing(self._op, kwargs)
        if missing:
            raise _args.MissingArgException(
                f"The augmentation `{self.name}` requires following named argument(s) which were not provided to the call: "
                f"{', '.join(missing)}.",
                self,
                missing,
            )
        op = self._op if current_scope().conditions is None else Tools.callee(self._op)
        return op(data, parameter, **_args.accepted(self._op, kwargs))

    def augmentation(
        self,
        mag_range: object = _KEEP,
        randomly_negate: object = _KEEP,
        mag_to_param: object = _KEEP,
        param_device: object = _KEEP,
        name: object = _KEEP,
        augmentation_cls: type[Augmentation] | None = None,
    ) -> Augmentation:
        """Return the same operation with other settings. Settings that are not passed stay the same; None sets the default."""
        changes = {
            "mag_range": mag_range,
            "randomly_negate": randomly_negate,
            "mag_to_param": mag_to_param,
            "param_device": param_device,
            "name": name,
        }
        settings: Any = self._given | {key: value for key, value in changes.items() if value is not _KEEP}
        return (augmentation_cls or type(self))(self._op, **settings)

    def _parameter(self, magnitude_bin: Any, bins: int | None, data_device: str) -> object:
        magnitudes = self._get_magnitudes(bins)
        if magnitudes is None:
            return None
        if magnitude_bin is None:
            raise ValueError(
                f"The augmentation `{self.name}` has `mag_range`, so it requires `magnitude_bin`, which selects the magnitude."
            )
        if self.randomly_negate and not isinstance(magnitude_bin, SignedBin):
            warnings.warn(
                f"The augmentation `{self.name}` was declared with `randomly_negate=True`, but unsigned `magnitude_bin` was passed "
                "to the augmentation call: the signs are drawn here. Where a batch is split among augmentations, draw them once "
                "before: `signed_bin(magnitude_bin)`.",
                UserWarning,
                stacklevel=3,
            )
            magnitude_bin = signed_bin(magnitude_bin)
        index = magnitude_bin.bin if isinstance(magnitude_bin, SignedBin) else magnitude_bin
        if not isinstance(index, DataNode):
            magnitudes = magnitudes[self._checked(index, len(magnitudes))][None]
        if self.randomly_negate:
            # Each magnitude is followed by its negative, as :attr:`SignedBin.index` assumes.
            parameter = constant_node(self._map_mags_to_params([s * m for m in magnitudes for s in (1, -1)]))
            parameter = parameter[magnitude_bin.index]
        elif isinstance(index, DataNode):
            parameter = constant_node(self._map_mags_to_params(magnitudes))[index]
        else:
            parameter = constant_node(self._map_mag_to_param(magnitudes[0]))
        on_gpu = self.param_device == "gpu" or (self.param_device == "auto" and data_device == "gpu")
        return parameter.gpu() if on_gpu else parameter

    def _get_magnitudes(self, num_magnitude_bins: int | None) -> np.ndarray | None:
        """Return the magnitude of each bin."""
        magnitudes = self.mag_range
        if magnitudes is None:
            return None
        if isinstance(magnitudes, np.ndarray):
            if num_magnitude_bins not in (None, len(magnitudes)):
                raise ValueError(
                    f"The `mag_range` of the augmentation `{self.name}` is an array of length {len(magnitudes)}, but "
                    f"`num_magnitude_bins` is {num_magnitude_bins}."
                )
            return magnitudes
        if num_magnitude_bins is None:
            raise ValueError(
                f"The `num_magnitude_bins` argument is missing in the call of the `{self.name}` augmentation."
            )
        if not hasattr(magnitudes, "__len__") or len(magnitudes) != 2:
            raise ValueError(
                "The `mag_range` must be a tuple of the lowest and the highest magnitude, or an array of all magnitudes. Got "
                f"`{magnitudes}` for augmentation `{self.name}`."
            )
        return np.linspace(*magnitudes, num_magnitude_bins, dtype=np.float32)

    def _checked(self, index: object, bins: int) -> int:
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"The magnitude bin of `{self.name}` must be an integer or a DataNode, got {index!r}.")
        if not 0 <= index < bins:
            raise IndexError(f"The magnitude bin of `{self.name}` must be from `[0, {bins - 1}]`, got {index}.")
        return int(index)

    def _map_mag_to_param(self, magnitude: float) -> np.ndarray:
        """Return the parameter for a magnitude, as an array."""
        parameter = self.mag_to_param(magnitude)
        parts = parameter if isinstance(parameter, (list, tuple)) else [parameter]
        if any(isinstance(part, DataNode) for part in parts):
            raise TypeError(
                f"The `mag_to_param` callback of `{self.name}` augmentation returned a `DataNode`. The callback must return parameter "
                f"that is `np.ndarray` or can become one, for it is computed once, when the pipeline is defined: call "
                "operators in the augmentation itself."
            )
        return np.array(parameter)

    def _map_mags_to_params(self, magnitudes: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the parameters for several magnitudes, which must have equal shapes and types, as one array."""
        parameters = [self._map_mag_to_param(magnitude) for magnitude in magnitudes]
        first = parameters[0]
        for parameter, magnitude in zip(parameters, magnitudes):
            if (parameter.shape, parameter.dtype) != (first.shape, first.dtype):
                raise ValueError(
                    f"The `mag_to_param` callback of `{self.name}` augmentation must return the arrays of the same type and shape "
                    f"for all magnitudes. For {magnitudes[0]} it has shape {first.shape} and type {first.dtype}; for {magnitude} the "
                    f"returned array has shape {parameter.shape} and type {parameter.dtype}."
                )
        return np.array(parameters)


def augmentation(
    function: Callable[..., Any] | None = None,
    *,
    mag_range: tuple[float, float] | np.ndarray | None = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], ArrayLike] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Turn a function of the samples and a parameter into an :class:`Augmentation`.

    >>> @augmentation(mag_range=(0, 30), randomly_negate=True)
    ... def turned(data, angle, fill_value=128):
    ...     return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)
    """

    def decorate(function: Callable[..., DataNode]) -> Augmentation:
        if isinstance(function, Augmentation):
            raise TypeError(
                "The `@augmentation` was applied to already decorated Augmentation. Change its settings with "
                f"`{function.name}.augmentation(...)`."
            )
        if not callable(function):
            raise TypeError(
                f"The `@augmentation` decorator was used to decorate the object that is not callable: {function!r}."
            )
        return (augmentation_cls or Augmentation)(
            function, mag_range, randomly_negate, mag_to_param, param_device, name
        )

    return decorate if function is None else decorate(function)


def row_of(values: np.ndarray, index: DataNode) -> DataNode:
    """Return a node with one row of ``values`` for each sample: the row that the sample's ``index`` selects."""
    return constant_node(values)[index]
