# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""Operators of the family `inputs`."""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.types import DALIDataType, DALIImageType, DALIInterpType
from penstock.ops import OperatorFace

class Video(OperatorFace):
    """Gives the frames of a fed video in order: each sample a sequence of them (uint8, FHWC, RGB).

    A batch that is fed is the contents of one video file. Runs give its sequences, as many as the pipeline's batch size at a
    time, until it is over; the last batch of a video may have fewer. Then the next video that was fed begins. It needs PyAV:
    ``pip install penstock[video]``.

    >>> frames = fn.experimental.inputs.video(name="clip", sequence_length=16)  # doctest: +SKIP
    >>> pipeline.feed_input("clip", [np.fromfile("clip.mp4", np.uint8)])  # doctest: +SKIP

    Runs on: cpu, mixed.

    Keyword args:
        sequence_length (int, required): Frames in a sequence.
        affine (bool, default True): Accepted for compatibility.
        blocking (bool, default False): A run waits until a video is fed, rather than to fail.
        bytes_per_sample_hint (int | Sequence[int], default [0]): Accepted for compatibility; buffers grow as needed.
        last_sequence_policy (str, default 'partial'): A video's last sequence, where too few frames are left for it: `partial` has fewer, `pad` adds black ones.
        no_copy (bool, default False): Use the fed memory in place until it is opened.
        preserve (bool, default False): Keep the operator even if no output of the pipeline depends on it.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        affine: bool | None = True,
        blocking: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        last_sequence_policy: str | None = "partial",
        no_copy: bool | None = False,
        preserve: bool | None = False,
        sequence_length: int = ...,
    ) -> None: ...
    def __call__(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        affine: bool | None = True,
        blocking: bool | None = False,
        bytes_per_sample_hint: int | _Sequence[int] | _ndarray | None = ...,
        last_sequence_policy: str | None = "partial",
        no_copy: bool | None = False,
        preserve: bool | None = False,
        sequence_length: int = ...,
    ) -> DataNode: ...
