"""`experimental.inputs.video`: a fed clip yields several batches."""

from __future__ import annotations

import io
from typing import Any

import av
import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types

FRAMES, HEIGHT, WIDTH = 10, 32, 48


def _encoded(frames: int) -> np.ndarray:
    """Return a clip of plain frames, each brighter than the one before."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="webm") as file:
        stream = file.add_stream("libvpx-vp9", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(frames):
            pixels = np.full((HEIGHT, WIDTH, 3), 20 + 15 * number, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    return np.frombuffer(buffer.getvalue(), np.uint8)


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    return _encoded(FRAMES)


def _pipeline(batch_size: int = 3, **arguments: Any) -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=1, device_id=None, exec_pipelined=False, exec_async=False)
    def define() -> Any:
        return fn.experimental.inputs.video(name="clip", **{"sequence_length": 2, **arguments})

    return define()


def _numbers(pipeline: Pipeline) -> list[list[int]]:
    """Run a batch; return, for each sample, its frames' numbers, which their brightness tells; -1 for black frames."""
    (batch,) = pipeline.run()
    assert (batch.dtype, batch.layout()) == (types.UINT8, "FHWC")
    assert all(sample.shape[1:] == (HEIGHT, WIDTH, 3) for sample in map(np.asarray, batch))
    return [np.rint((np.asarray(sample).mean(axis=(1, 2, 3)) - 20) / 15).astype(int).tolist() for sample in batch]


def test_sequences_follow_each_other_over_the_batches_and_the_clips(clip: np.ndarray) -> None:
    pipeline = _pipeline()
    pipeline.feed_input("clip", [clip])
    pipeline.feed_input("clip", np.array([[_encoded(3)]]))
    assert _numbers(pipeline) == [[0, 1], [2, 3], [4, 5]]
    assert _numbers(pipeline) == [[6, 7], [8, 9]]
    assert _numbers(pipeline) == [[0, 1], [2]]
    with pytest.raises(RuntimeError, match="No data was provided to the InputOperator"):
        pipeline.run()


def test_the_last_sequence_is_padded_with_black_frames(clip: np.ndarray) -> None:
    pipeline = _pipeline(2, sequence_length=7, last_sequence_policy="pad")
    pipeline.feed_input("clip", [clip])
    assert _numbers(pipeline) == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, -1, -1, -1, -1]]


def test_the_other_inputs_follow_its_batch_size(clip: np.ndarray) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def define() -> Any:
        frames = fn.experimental.inputs.video(name="clip", sequence_length=4)
        return fn.crop(frames, crop=(8, 8)), fn.random.uniform(range=(0, 1))

    pipeline = define()
    pipeline.feed_input("clip", [clip])
    frames, numbers = pipeline.run()
    assert [tuple(shape) for shape in frames.shape()] == [(4, 8, 8, 3), (4, 8, 8, 3), (2, 8, 8, 3)]
    assert len(numbers) == 3


def test_what_is_no_video_fails_at_its_turn(clip: np.ndarray) -> None:
    pipeline = _pipeline(batch_size=8)
    for data in ([clip], [np.arange(100, dtype=np.uint8)], [clip.astype(np.int32)], [clip]):
        pipeline.feed_input("clip", data)
    assert len(_numbers(pipeline)) == 5
    with pytest.raises(RuntimeError, match="Failed to create video decoder"):
        pipeline.run()
    with pytest.raises(RuntimeError, match="uint8"):
        pipeline.run()
    assert len(_numbers(pipeline)) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"last_sequence_policy": "drop"}, "`last_sequence_policy` is not supported: drop"),
        ({"sequence_length": 0}, "`sequence_length` must be positive"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        _pipeline(**arguments).build()
