"""The results of processors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class Features(dict[str, object]):
    """The inputs of a model, by name; also available as attributes."""

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no {name!r}, only {', '.join(self)}") from None

    @property
    def data(self) -> dict[str, object]:
        """All values, as in `BatchFeature`."""
        return dict(self)

    def to(self, *args: object, **kwargs: object) -> Features:
        """Return a copy with tensors on another device or of another type; for the arguments, see PyTorch's `Tensor.to`."""
        return Features({name: _moved(value, args, kwargs) for name, value in self.items()})


def _moved(value: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    move, floats = getattr(value, "to", None), getattr(value, "is_floating_point", None)
    if move is None or floats is None:
        return value
    if not floats():
        import torch

        # As in `BatchFeature`, integer tensors keep their type.
        args = tuple(each for each in args if not isinstance(each, torch.dtype))
        kwargs = {key: each for key, each in kwargs.items() if key != "dtype"}
    moved: object = move(*args, **kwargs)
    return moved


def collected(values: Mapping[str, object], kind: str | None, bfloat16: str) -> Features:
    """Return the values as arrays (`np`), as tensors (`pt`) or unchanged (None); the value named ``bfloat16`` becomes a
    tensor of that type.

    Raises:
        ValueError: the values of a name do not fit into one tensor, or the kind is unknown.
    """
    if kind not in (None, "np", "pt"):
        raise ValueError(f"`return_tensors` must be 'np', 'pt' or None. Got: {kind!r}")
    features = Features({name: _collected(name, value, kind) for name, value in values.items()})
    if kind == "pt" and bfloat16:
        import torch

        features[bfloat16] = _moved(features[bfloat16], (torch.bfloat16,), {})
    return features


def _collected(name: str, value: object, kind: str | None) -> object:
    if kind is None or _stays_list(value):
        return value
    if isinstance(value, list):
        is_nested = any(isinstance(one, list) for one in value)
        arrays = [each for one in value for each in (one if isinstance(one, list) else [one])]
        shapes = sorted({each.shape for each in arrays if isinstance(each, np.ndarray)})
        if len(shapes) > 1 or (shapes and is_nested):
            raise ValueError(
                f"Results of the shapes {shapes} do not fit into one tensor of `{name}`: leave `return_tensors` out"
            )
        value = np.array(value)
    if kind == "np":
        return value
    import torch

    return torch.from_numpy(value)


def _stays_list(value: object) -> bool:
    """Return whether a value remains a list: a list of words, a list with numbers for each prompt, or an empty list."""
    if not isinstance(value, list):
        return False
    return (
        not value
        or isinstance(value[0], str)
        or (isinstance(value[0], list) and not isinstance(value[0][0], np.ndarray))
    )
