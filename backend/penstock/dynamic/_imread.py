"""``imread``: images from files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

import numpy as np

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import call
from penstock.dynamic._devices import DeviceLike
from penstock.dynamic._signatures import imread_signature
from penstock.dynamic._syntax import interface_of
from penstock.dynamic._tensor import Tensor
from penstock.schema import find_schema


def imread(
    filepaths: str | PathLike[str] | Sequence[str | PathLike[str]] | Tensor | Batch,
    /,
    *,
    device: DeviceLike = "cpu",
    **arguments: object,
) -> Tensor | Batch:
    """Read and decode image files.

    Args:
        filepaths: a path, which gives a tensor; a list of paths, which gives a batch; or a tensor or batch of the characters of paths.
        device: the device that decodes.
        arguments: arguments of ``decoders.image``, e.g. ``output_type``.

    Returns:
        Images of uint8 with the layout HWC, in RGB unless ``output_type`` says otherwise.
    """
    if isinstance(filepaths, (Tensor, Batch)):
        names: Tensor | Batch = filepaths
    elif isinstance(filepaths, (list, tuple)):
        names = Batch([_characters(path) for path in filepaths])
    else:
        names = _characters(filepaths)
    encoded = call(interface_of("io__file__Read"), (names,), {})
    decoded = call(interface_of("decoders__Image"), (encoded,), arguments, None, device)
    assert isinstance(decoded, (Tensor, Batch)), "one output"
    return decoded


def publish() -> None:
    """Replace ``**arguments`` in the signature of :func:`imread` by the decoder's arguments."""
    imread.__signature__ = imread_signature(imread, find_schema("decoders__Image"))  # type: ignore[attr-defined]


def _characters(path: object) -> Tensor:
    if isinstance(path, Tensor):
        return path
    if not isinstance(path, (str, PathLike)):
        raise TypeError(f"A path must be a string or a pathlib.Path, got {type(path).__name__}")
    return Tensor(np.frombuffer(str(fspath(path)).encode(), np.uint8))
