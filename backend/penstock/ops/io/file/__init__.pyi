# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `file`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from penstock.ops import OperatorFace

class Read(OperatorFace):
    """Gives the bytes of the files that the input names: each sample holds a path's characters, in UTF-8.

    >>> paths = fn.external_source(lambda: [np.frombuffer(b"photo.jpg", np.uint8)])
    >>> images = fn.decoders.image(fn.io.file.read(paths))  # doctest: +SKIP

    Runs on: cpu.

    Args:
        filepaths: Paths of files: the bytes of UTF-8 text, uint8 of shape (n,).

    Keyword args:
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        dont_use_mmap (bool, default False): Accepted for compatibility.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
        use_o_direct (bool, default False): Accepted for compatibility.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        preserve: bool | None = False,
        use_o_direct: bool | None = False,
    ) -> None: ...
    @_overload
    def __call__(
        self,
        filepaths: DataNode | _TensorLike,
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        preserve: bool | None = False,
        use_o_direct: bool | None = False,
    ) -> DataNode: ...
    @_overload
    def __call__(
        self,
        filepaths: list[DataNode],
        /,
        *,
        device: str | None = None,
        name: str | None = None,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        dont_use_mmap: bool | None = False,
        preserve: bool | None = False,
        use_o_direct: bool | None = False,
    ) -> list[DataNode]: ...
