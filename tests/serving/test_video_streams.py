"""Video models on a real Triton: one request, and a response for each batch of sequences."""

from __future__ import annotations

import contextlib
import io
import queue
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from penstock import fn, pipeline_def
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.serving.server import LocalServer
from penstock.tensors import TensorListCPU

sys.path.insert(0, str(Path(__file__).parent))

from served import add_model, stopped_later

pytestmark = pytest.mark.exhaustive

HEIGHT, WIDTH = 32, 48
PADDED = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=3, num_threads=1)
def clips():
    return fn.experimental.inputs.video(sequence_length=5, name="INPUT", last_sequence_policy="pad")
"""
BRIGHTER = """
import time
from penstock import fn, pipeline_def, types

def wait(frames):
    time.sleep(0.1)
    return frames

@pipeline_def(batch_size=2, num_threads=1)
def brighter():
    frames = fn.experimental.inputs.video(sequence_length=4, name="clip")
    more = fn.external_source(name="more", dtype=types.INT32, ndim=0)
    frames = fn.python_function(frames, function=wait, batch_processing=True)
    return fn.cast(frames + more, dtype=types.INT32, name="frames"), fn.copy(more, name="added")
"""
SPLIT = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=1, output_dtype=types.UINT8, output_ndim=[5, 4])
def split():
    clip = fn.external_source(name="INPUT", ndim=1, dtype=types.UINT8)
    frames = fn.experimental.decoders.video(clip)
    padded = fn.pad(frames, axis_names="F", align=5)
    return fn.reshape(padded, shape=[-1, 5, 32, 48, 3], name="OUTPUT"), fn.reinterpret(frames, layout="FHWC", name="IMAGES")
"""
DECOUPLED = 'backend: "penstock"\nmax_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n'
CONFIGURATIONS = {
    "clips": (PADDED, DECOUPLED + 'input [ { name: "INPUT" dims: [ 1, -1 ] } ]\noutput [ { name: "OUTPUT" } ]\n'),
    "brighter": (BRIGHTER, DECOUPLED + "instance_group [ { count: 2 kind: KIND_CPU } ]\n"),
    "one": (BRIGHTER.replace("sleep(0.1)", "sleep(0.3)"), DECOUPLED),
    "whole": (PADDED, 'backend: "penstock"\noutput [ { name: "OUTPUT" } ]\n'),
    "split": (
        SPLIT,
        'backend: "penstock"\nparameters { key: "split_along_outer_axis" value { string_value: "OUTPUT:IMAGES" } }\n',
    ),
}


def clip(frames: int, first: int = 20, kind: str = "libvpx-vp9", container: str = "webm") -> np.ndarray:
    """Return a video of frames with one grey value each, each brighter than the previous one."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as file:
        stream = file.add_stream(kind, rate=25)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = "yuvj420p" if kind == "mjpeg" else "yuv420p"
        for number in range(frames):
            pixels = np.full((HEIGHT, WIDTH, 3), (first + 5 * number) % 250, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    return np.frombuffer(buffer.getvalue(), np.uint8)


def numbers(sequence: np.ndarray, first: int = 20) -> list[int]:
    """Return the numbers that a sequence's frames have in a video of :func:`clip`; negative for black frames, which are padding."""
    return np.rint((sequence.mean(axis=(1, 2, 3)) - first) / 5).astype(int).tolist()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    for name, (source, config) in CONFIGURATIONS.items():
        add_model(repository, name, config, source)
    with stopped_later(LocalServer(repository, model_host=model_host)) as running:
        yield running


class Stream:
    """A client's stream, which has one request at a time."""

    def __init__(self, server: LocalServer) -> None:
        self._got: queue.Queue[Any] = queue.Queue()
        self._client = tritonclient.grpc.InferenceServerClient(server.grpc_url)
        self._client.start_stream(lambda result, error: self._got.put(error or result))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave(cancel=False)

    def leave(self, cancel: bool = True) -> None:
        self._client.stop_stream(cancel_requests=cancel)
        self._client.close()

    def send(self, model: str, **inputs: np.ndarray) -> None:
        tensors = []
        for name, data in inputs.items():
            tensors.append(tritonclient.grpc.InferInput(name, list(data.shape), "UINT8" if data.ndim > 1 else "INT32"))
            tensors[-1].set_data_from_numpy(data)
        self._client.async_stream_infer(model, tensors, enable_empty_final_response=True)

    def next(self) -> Any:
        """Return the next answer; None after the last one. Errors are also returned, not raised."""
        got = self._got.get(timeout=30)
        if isinstance(got, Exception):
            return got
        parameters = got.get_response().parameters
        return None if parameters["triton_final_response"].bool_param and not got.get_response().outputs else got

    def rest(self) -> list[Any]:
        """Return all answers until the last one."""
        return list(iter(self.next, None))


@pytest.fixture
def stream(server: LocalServer) -> Iterator[Stream]:
    with Stream(server) as opened:
        yield opened


@pytest.mark.parametrize(("kind", "container"), [("libvpx-vp9", "webm"), ("mjpeg", "avi"), ("libx264", "mp4")])
def test_a_video_is_answered_batch_by_batch(stream: Stream, kind: str, container: str) -> None:
    for frames in (33, 30):
        stream.send("clips", INPUT=clip(frames, kind=kind, container=container)[None])
        answers = [answer.as_numpy("OUTPUT") for answer in stream.rest()]
        assert [answer.shape for answer in answers] == [
            (3, 5, HEIGHT, WIDTH, 3),
            (3, 5, HEIGHT, WIDTH, 3),
            (1, 5, HEIGHT, WIDTH, 3),
        ][: -(-frames // 15)]
        given = [number for answer in answers for sequence in answer for number in numbers(sequence)]
        assert given[:frames] == list(range(frames))
        assert all(number < 0 for number in given[frames:])


def test_a_shorter_last_sequence_has_an_answer_of_its_own(stream: Stream) -> None:
    stream.send("brighter", clip=clip(14)[None], more=np.array([7], np.int32))
    answers = stream.rest()
    assert [numbers(sequence - 7) for answer in answers for sequence in answer.as_numpy("frames")] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [12, 13],
    ]
    assert [answer.as_numpy("frames").shape[:2] for answer in answers] == [(2, 4), (1, 4), (1, 2)]
    # The request's other input applies to each sequence in the video.
    assert [answer.as_numpy("added").reshape(-1).tolist() for answer in answers] == [[7, 7], [7], [7]]


def test_what_goes_with_a_video_is_one_sample_or_one_for_each_of_a_batch(stream: Stream) -> None:
    # The last batch has only one sequence, which gets the first sample of the other input.
    stream.send("one", clip=clip(12)[None], more=np.array([7, 9], np.int32))
    assert [answer.as_numpy("added").reshape(-1).tolist() for answer in stream.rest()] == [[7, 9], [7]]
    stream.send("one", clip=clip(12)[None], more=np.array([7, 8, 9], np.int32))
    (error,) = stream.rest()
    assert "input 'more' holds 3 samples: send one, or 2" in str(error)


@pytest.mark.parametrize("model", ["one", "brighter"])
def test_streams_at_the_same_time_are_not_mixed(server: LocalServer, model: str) -> None:
    with Stream(server) as first, Stream(server) as second:
        for number, stream in enumerate((first, second)):
            stream.send(model, clip=clip(16 + 4 * number, 20 + 40 * number)[None], more=np.array([number], np.int32))
        for number, stream in enumerate((first, second)):
            answers = [answer.as_numpy("frames") - number for answer in stream.rest()]
            given = [n for answer in answers for sequence in answer for n in numbers(sequence, 20 + 40 * number)]
            assert given == list(range(16 + 4 * number))


def test_an_error_on_the_way_ends_its_stream_alone(stream: Stream) -> None:
    broken = clip(40, kind="mjpeg", container="avi").copy()
    starts = [match.start() for match in re.finditer(rb"\xff\xd8\xff", broken.tobytes())]
    broken[starts[30] : starts[31] - 8] = 0
    stream.send("clips", INPUT=broken[None])
    *answers, error = stream.rest()
    assert [numbers(s)[0] for answer in answers for s in answer.as_numpy("OUTPUT")] == [0, 5, 10, 15, 20, 25]
    assert isinstance(error, InferenceServerException)
    assert "inputs.video" in str(error)
    stream.send("clips", INPUT=clip(10)[None])
    assert len(stream.rest()) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((1, 100), np.uint8), "Failed to open the video"),
        (clip(3)[None, :200], "Failed to open the video"),
    ],
)
def test_what_is_no_video_is_refused(stream: Stream, data: np.ndarray, message: str) -> None:
    stream.send("clips", INPUT=data)
    (error,) = stream.rest()
    assert isinstance(error, InferenceServerException)
    assert message in str(error)


def test_two_videos_in_a_request_are_refused(stream: Stream) -> None:
    stream.send("one", clip=np.stack([clip(3), clip(3)]), more=np.array([0, 0], np.int32))
    (error,) = stream.rest()
    assert "one sample" in str(error)


def test_a_stream_that_nobody_waits_for_any_more_ends(server: LocalServer, stream: Stream) -> None:
    def samples() -> float:
        with urllib.request.urlopen(server.metrics_url) as answer:
            found = re.findall(r'penstock_samples_total\{model="one",version="1"\} (\S+)', answer.read().decode())
        return float(found[0]) if found else 0

    before = samples()
    leaving = Stream(server)
    leaving.send("one", clip=clip(400, 20)[None], more=np.array([0], np.int32))
    leaving.next()
    leaving.leave()
    began = time.monotonic()
    stream.send("one", clip=clip(4)[None], more=np.array([9], np.int32))
    (answer,) = stream.rest()
    assert numbers(answer.as_numpy("frames")[0] - 9) == [0, 1, 2, 3]
    # Without the cancellation, the 50 batches would have taken more than 15 seconds.
    assert time.monotonic() - began < 12
    time.sleep(0.6)
    assert samples() - before < 40


def infer(server: LocalServer, model: str, data: np.ndarray) -> Any:
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        tensor = tritonclient.grpc.InferInput("INPUT", list(data.shape), "UINT8")
        tensor.set_data_from_numpy(data)
        return client.infer(model, [tensor])


def test_a_model_that_is_not_decoupled_answers_with_the_whole_video(server: LocalServer) -> None:
    answer = infer(server, "whole", clip(33)[None]).as_numpy("OUTPUT")
    assert answer.shape == (7, 5, HEIGHT, WIDTH, 3)
    assert [numbers(sequence)[0] for sequence in answer] == [0, 5, 10, 15, 20, 25, 30]
    with pytest.raises(InferenceServerException, match="Failed to open the video"):
        infer(server, "whole", np.zeros((1, 50), np.uint8))


def test_decoded_videos_are_split_along_their_outer_axis(server: LocalServer) -> None:
    files = [clip(12), clip(7, 60)]
    longest = max(map(len, files))
    answer = infer(server, "split", np.stack([np.pad(file, (0, longest - len(file))) for file in files]))
    # Both videos' sequences are padded to the longer one.
    assert answer.as_numpy("OUTPUT").shape == (3 + 3, 5, HEIGHT, WIDTH, 3)
    images = answer.as_numpy("IMAGES")
    assert images.shape == (12 + 7, HEIGHT, WIDTH, 3)
    assert numbers(images[:12]) == list(range(12))
    assert numbers(images[12:], 60) == list(range(7))


def test_what_is_left_of_a_stream_is_gone_before_the_next() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def define() -> Any:
        return fn.experimental.inputs.video(name="clip", sequence_length=2, device="cpu")

    with define() as pipeline:
        runner = PipelineRunner(pipeline)
        batches = {"clip": TensorListCPU([clip(10)])}
        with contextlib.closing(runner.stream(batches)) as left:
            assert len(next(left).outputs[0]) == 2
        assert not runner.sources["clip"].has_data()
        assert [len(result.outputs[0]) for result in runner.stream(batches)] == [2, 2, 1]
