"""`experimental.inputs.video`: returns a video that the program feeds, over several batches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from penstock.data_types import UINT8
from penstock.errors import PenstockError
from penstock.kernels.codecs.decoding import Decoding
from penstock.kernels.codecs.video import Clip, CorruptVideoError, open_video
from penstock.schema import Argument, FedBatch, InputOperator, Schema, Workspace, register_operator
from penstock.schema.libraries import PYAV
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.tensor import host_view

_POLICIES = ("partial", "pad")


@dataclass
class _Clip:
    """A fed video.

    Attributes:
        ticket: identifies what was fed.
        video: the open video; None if it could not be opened.
        next_frame: the number of the next frame to return.
        error: the reason why the video could not be opened.
    """

    ticket: object
    video: Clip | None = None
    error: Exception | None = None
    next_frame: int = 0

    @property
    def remaining(self) -> int:
        """The number of frames that are not returned yet."""
        return len(self.video) - self.next_frame if self.video is not None else 0


@register_operator
class VideoInput(InputOperator):
    """Returns the frames of a fed video in order. Each sample is a sequence of consecutive frames (uint8, FHWC, RGB).

    A fed batch must be the contents of one video file. Each run returns the next sequences of the video, at most a batch of them; the
    last batch of a video may be smaller. Then the next video in the queue begins. Needs PyAV: ``pip install
    penstock-triton[video]``.

    >>> frames = fn.experimental.inputs.video(name="clip", sequence_length=16)  # doctest: +SKIP
    >>> pipeline.feed_input("clip", [np.fromfile("clip.mp4", np.uint8)])  # doctest: +SKIP
    """

    schema = Schema(
        name="experimental__inputs__Video",
        devices=("cpu", "mixed"),
        needs=(PYAV,),
        arguments=(
            Argument("affine", "bool", True, "Accepted for compatibility."),
            Argument("blocking", "bool", False, "Wait for a video, instead of failing, if there is none."),
            Argument(
                "last_sequence_policy",
                "string",
                "partial",
                "What happens to a video's last sequence if there are too few frames: `partial` makes it shorter, "
                "`pad` adds black frames.",
            ),
            Argument("no_copy", "bool", False, "Use the fed memory in place until it is opened."),
            Argument("sequence_length", "int32", doc="Frames in a sequence.", required=True),
        ),
        stateful=True,
    )

    multi_run = True

    def setup(self) -> None:
        super().setup()
        policy = self.args["last_sequence_policy"]
        if policy not in _POLICIES:
            raise ValueError(
                f"Provided `last_sequence_policy` is not supported: {policy}. Use one of {', '.join(_POLICIES)}"
            )
        if self.args["sequence_length"] < 1:
            raise ValueError(f"`sequence_length` must be positive, got {self.args['sequence_length']}")
        self._clips: deque[_Clip] = deque()

    def _add(self, fed: FedBatch) -> None:
        """Add a video to the queue. If it cannot be opened, the run that would return its first frames fails."""
        try:
            self._clips.append(_Clip(fed.ticket, _opened(fed.batch, self.decoding)))
        except (ValueError, PenstockError) as error:
            self._clips.append(_Clip(fed.ticket, error=error))

    def drop(self) -> None:
        with self._lock:
            self._clips.clear()

    @property
    def waiting(self) -> int:
        """The number of videos that have frames left or could not be opened."""
        return len(self._clips)

    def has_data(self) -> bool:
        return bool(self._clips)

    def pending_batch_size(self) -> int | None:
        clip = next(iter(self._clips), None)
        if clip is None or clip.error is not None:
            return None
        return -(-clip.remaining // self.args["sequence_length"])

    def run(self, workspace: Workspace) -> None:
        if not self._clips:
            raise RuntimeError("No data was provided to the InputOperator. Make sure to feed it properly.")
        clip = self._clips[0]
        self.taken = clip.ticket
        if clip.error is not None:
            self._clips.popleft()
            raise clip.error
        sequences = [self._sequence(clip) for _ in range(workspace.batch_size) if clip.remaining]
        if not clip.remaining:
            self._clips.popleft()
        batch = TensorListCPU.of_samples(sequences, "FHWC")
        workspace.outputs = [TensorListGPU.upload(batch) if workspace.device == "gpu" else batch]

    def _sequence(self, clip: _Clip) -> np.ndarray:
        assert clip.video is not None
        length = self.args["sequence_length"]
        count = min(length, clip.remaining)
        frames = clip.video.frames(range(clip.next_frame, clip.next_frame + count))
        clip.next_frame += count
        if count == length or self.args["last_sequence_policy"] == "partial":
            return frames
        return np.concatenate([frames, np.zeros((length - count, *frames.shape[1:]), np.uint8)])


def _opened(batch: TensorList, decoding: Decoding) -> Clip:
    if not len(batch):
        raise ValueError("A batch without samples was fed; expected the contents of one video file")
    if batch.dtype != UINT8:
        raise ValueError(f"Expected the contents of a video file, of type uint8; got {batch.dtype}")
    # As in DALI, use the bytes of the first sample, whatever its shape, and ignore other samples.
    sample = host_view((batch.as_cpu() if isinstance(batch, TensorListGPU) else batch).samples[0])
    try:
        video = open_video(np.ascontiguousarray(sample).reshape(-1), decoding)
    except CorruptVideoError as error:
        raise ValueError(f"Failed to create video decoder for provided video data. {error}") from error
    if not len(video):
        raise ValueError("Failed to create video decoder for provided video data: the video has no frames")
    decoding.limits.check_video(len(video), (*video.size, 3))
    return video
