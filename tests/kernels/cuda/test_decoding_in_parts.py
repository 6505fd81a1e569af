"""Images that are resized before the next ones are decoded to the same GPU memory give the same results as if all images were decoded
first.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simplejpeg
from broken_batches import good, saved

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs import image_codec_gpu, jpeg_gpu, turns
from penstock.kernels.codecs.gpu import host_decoder, kernel_decoder
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.nvimgcodec import on_gpu
from penstock.kernels.codecs.nvimgcodec.decoder import BatchDecoder
from penstock.kernels.codecs.nvimgcodec.library import Backend, Share
from penstock.kernels.cuda import alike_images, resample
from penstock.operators.decoders.decode_in_parts import DecodeInParts
from penstock.operators.image.resize_normalize import ResizeNormalize
from penstock.runtime.batches import Batch
from penstock.runtime.inline_queue import InlineQueue
from penstock.serving.pipeline_runner import BegunBatch, PipelineRunner
from penstock.tensors import TensorListCPU

RNG = np.random.default_rng(11)
RESIZE: dict[str, Any] = {"resize_shorter": 20.0}
NORMAL: dict[str, Any] = {"crop": (16, 12), "mean": [120.0, 110.0, 100.0], "std": [60.0, 50.0, 40.0]}
SMOOTH: dict[str, Any] = {"jpeg_fancy_upsampling": True}


class NoPythonApi:
    """A decoder that decodes nothing, so that other formats than JPEG are decoded on the CPU."""

    def __init__(self, *_settings: object) -> None:
        pass

    def decode(self, images: Sequence[Any], *_how: object) -> list[None]:
        return [None] * len(images)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the memory for samples to one or two images, so that only a few images are decoded together."""
    monkeypatch.setattr(jpeg_gpu, "_COEFFICIENT_BYTES_PER_PART", 40_000)
    monkeypatch.setattr(jpeg_gpu, "_SAMPLE_BYTES_PER_PART", 15_000)
    monkeypatch.setattr(image_codec_gpu, "library", lambda: None)
    monkeypatch.setattr(image_codec_gpu, "PythonApi", NoPythonApi)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list to which each completed batch appends whether its images were resized while they were decoded."""
    told: list[bool] = []
    original = DecodeInParts.run

    def noted(self: DecodeInParts, workspace: Any) -> None:
        original(self, workspace)
        told.append(workspace.begun.following is not None)

    monkeypatch.setattr(DecodeInParts, "run", noted)
    return told


def photographs(count: int = 7) -> list[np.ndarray]:
    samplings = [0, 1, 2]
    return [saved(height=33 + 5 * k, width=71 - 4 * k, subsampling=samplings[k % 3]) for k in range(count)]


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the CPU's decoders reject all images: otherwise they would accept files with missing data."""

    def refuse(*_: object) -> None:
        raise CorruptImageError("some codes are missing")

    monkeypatch.setattr(host_decoder, "decode", refuse)


Define = Callable[[Any], Any]


def a(images: Any, resize: dict[str, Any] = RESIZE, normalize: dict[str, Any] = NORMAL, **decode: Any) -> Any:
    decoded = fn.decoders.image(images, device="mixed", **SMOOTH | decode)
    return fn.crop_mirror_normalize(fn.resize(decoded, **resize), **normalize)


def made(define: Define, batches: Sequence[list[np.ndarray]], passes: list[str] | None = None, **settings: Any) -> Any:
    waiting = iter(batches)

    @pipeline_def(**{"batch_size": 24, "num_threads": 2, "device_id": 0, "prefetch_queue_depth": 2} | settings)
    def pipeline() -> Any:
        return define(fn.external_source(lambda: next(waiting), batch=True))

    return pipeline(passes=passes) if passes is not None else pipeline()


def run(define: Define, batches: Sequence[list[np.ndarray]], passes: list[str] | None = None) -> list[list[np.ndarray]]:
    pipe = made(define, batches, passes)
    return [[np.array(sample) for sample in pipe.run()[0].as_cpu()] for _ in batches]


def assert_equal(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]]) -> None:
    for batch, other in zip(ours, theirs, strict=True):
        for sample, expected in zip(batch, other, strict=True):
            np.testing.assert_array_equal(sample, expected)


@pytest.mark.parametrize(
    "define",
    [
        a,
        lambda images: a(images, normalize=NORMAL | {"mirror": fn.random.coin_flip(seed=5)}),
        lambda images: a(images, normalize=NORMAL | {"mirror": 1, "output_layout": "HWC", "dtype": types.FLOAT16}),
        lambda images: a(images, {"size": (9, 14), "interp_type": types.INTERP_CUBIC}, {"pad_output": True}),
        lambda images: a(images, {"size": (9, 14), "roi_start": (5, 2), "roi_end": (30, 40)}, {}),
        lambda images: a(images, normalize={"mean": [9.0]}, output_type=types.GRAY),
        lambda images: a(images, output_type=types.BGR),
        lambda images: a(images, jpeg_fancy_upsampling=False),
    ],
)
def test_results_are_those_of_images_that_are_all_kept(define: Define, followed: list[bool]) -> None:
    images = photographs()
    batches = [images, images[::-1], images[:4], [images[2]] * 5, images[:1]]
    found = run(define, batches)
    assert followed == [True] * len(batches)
    assert_equal(found, run(define, batches, []))


def test_windows_are_resized_in_strips_whatever_the_widths_of_images(
    monkeypatch: pytest.MonkeyPatch, followed: list[bool]
) -> None:
    # The windows of these images end before the images end.
    images = photographs(3)
    expected = run(a, [images], [])
    used: list[bool] = []
    chosen = resample.chosen

    def noted(planned: tuple[int, ...], *how: Any) -> Any:
        used.append(planned[1] > 0)
        return chosen(planned, *how)

    monkeypatch.setattr(resample, "STRIP_LIMITS", resample.STRIP_LIMITS._replace(least_blocks=1, least_rows=1))
    monkeypatch.setattr(alike_images, "chosen", noted)
    assert_equal(run(a, [images]), expected)
    assert followed == [True]
    # The rows of these images, for example of 71 pixels, are not multiples of four bytes, but the rows of their windows are.
    assert used == [True]


@pytest.fixture
def slow_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the consumer is slow, so that batches complete while the next ones are being read."""
    monkeypatch.setattr(InlineQueue, "_consumer_is_slower", lambda _self: True)


def run_slowly(pipe: Any) -> list[np.ndarray]:
    """Run one batch, wait until all batches that have begun are decoded, and return the result."""
    outputs = [np.array(sample) for sample in pipe.run()[0].as_cpu()]
    waiting = [started for started in pipe._queue._queue._started if isinstance(started, Batch)]
    deadline = time.monotonic() + 20
    while not all(work.begun.first.begun.is_ready for batch in waiting for work in batch.begun.values()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return outputs


def test_files_are_read_while_the_batch_before_is_completed(
    followed: list[bool], slow_consumer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    # Begin no batches other than the prefetched ones.
    monkeypatch.setattr(turns, "TURNS", 1)
    monkeypatch.setattr(kernel_decoder, "_MAX_PIXELS_TO_BEGIN_AHEAD", 0)
    for name in ("prepare", "begin", "run"):
        original = getattr(DecodeInParts, name)

        def noted(self: DecodeInParts, workspace: Any, original: Any = original, name: str = name) -> Any:
            done.append(name)
            return original(self, workspace)

        monkeypatch.setattr(DecodeInParts, name, noted)
    images = photographs()
    batches = [images, images[::-1], images[:4], [images[2]] * 5, images[1:], images[:3]]
    pipe = made(a, batches)
    first = run_slowly(pipe)
    done.clear()
    found = [first, *(run_slowly(pipe) for _ in batches[1:4])]
    assert done == ["prepare", "run", "begin"] * 3
    assert_equal(found, run(a, batches, [])[:4])


def test_a_batch_that_cannot_be_read_fails_in_its_turn(slow_consumer: None) -> None:
    images = photographs()
    pipe = made(a, [images, images[::-1], images, [images[0], np.zeros(0, np.uint8)], images])
    expected = run(a, [images, images[::-1]], [])
    found = [run_slowly(pipe) for _ in range(3)]
    assert_equal(found, [*expected, expected[0]])
    with pytest.raises(ValueError, match="sample #1"):
        pipe.run()


@pytest.mark.parametrize("library", [True, False])
def test_images_of_other_decoders_are_resized_when_these_are_done(
    library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that Penstock's kernels do not support are decoded by nvImageCodec."""

    def on_cpu(_device: int, threads: int, *_shares: object) -> BatchDecoder:
        return BatchDecoder(None, threads, [Share(Backend.CPU_ONLY)])

    monkeypatch.undo()
    monkeypatch.setattr(on_gpu, "BatchDecoder", on_cpu)
    monkeypatch.setattr(image_codec_gpu, "PythonApi", NoPythonApi)
    monkeypatch.setattr(image_codec_gpu, "_MIN_BATCH_FOR_KERNELS", 3)
    monkeypatch.setattr(jpeg_gpu, "_COEFFICIENT_BYTES_PER_PART", 40_000)
    monkeypatch.setattr(jpeg_gpu, "_SAMPLE_BYTES_PER_PART", 15_000)
    if not library:
        monkeypatch.setattr(image_codec_gpu, "library", lambda: None)
    images = [*photographs(), saved(height=80, width=90, progressive=True)]
    mirrored: Define = lambda data: a(  # noqa: E731
        data, normalize=NORMAL | {"mirror": fn.random.coin_flip(seed=5)}, jpeg_fancy_upsampling=False
    )
    told: list[tuple[int, int]] = []
    original = image_codec_gpu.GpuImageDecoder.collect_fused

    def noted(self: Any, begun: Any, *how: Any) -> Any:
        late = original(self, begun, *how)
        told.append((len(begun.jobs), len(late)))
        return late

    monkeypatch.setattr(image_codec_gpu.GpuImageDecoder, "collect_fused", noted)
    # The kernels support no image of the last batch, so the next step cannot read images from their memory.
    batches = [images, images[::-1], images[2:5], images[7:] * 2]
    assert_equal(run(mirrored, batches), run(mirrored, batches, []))
    assert told == [(8, 1), (8, 1), (3, 0)]


def test_parts_of_any_size(monkeypatch: pytest.MonkeyPatch, followed: list[bool]) -> None:
    images = photographs()
    expected = run(a, [images], [])
    for at_once, samples in ((1, 1), (40_000, 1), (1 << 30, 20_000), (20_000, 1 << 30)):
        monkeypatch.setattr(jpeg_gpu, "_COEFFICIENT_BYTES_PER_PART", at_once)
        monkeypatch.setattr(jpeg_gpu, "_SAMPLE_BYTES_PER_PART", samples)
        assert_equal(run(a, [images]), expected)
    assert all(followed)


def damaged(file: np.ndarray) -> np.ndarray:
    """Return the file without some of its codes; only reading the codes shows that they are missing."""
    return np.concatenate([file[: -len(file) // 8], file[-2:]])


def unsafe() -> np.ndarray:
    """Return a file that the GPU's kernels leave to the CPU, because decoders may differ about its pixels."""
    black_and_white = np.where(RNG.integers(0, 2, (48, 64, 1)) > 0, np.uint8(255), np.uint8(0)).repeat(3, 2)
    file = np.frombuffer(simplejpeg.encode_jpeg(black_and_white, 100), np.uint8).copy()
    for place in np.flatnonzero((file[:-1] == 0xFF) & (file[1:] == 0xDB)).tolist():
        length = int(file[place + 2]) << 8 | int(file[place + 3])
        for begin in range(place + 4, place + 2 + length, 65):
            file[begin + 1 : begin + 65] = 40
    return file


def isolated(
    define: Define, batches: Sequence[list[np.ndarray]], passes: list[str] | None = None
) -> tuple[list[tuple[dict[int, str], list[np.ndarray | None]]], Any]:
    """Return, for each batch, the errors and the results of the other samples; and also the pipeline."""
    pipe = made(
        lambda _: define(fn.external_source(name="encoded")), [], passes, exec_async=False, exec_pipelined=False
    )
    pipe.build()
    found = []
    for batch in batches:
        pipe.feed_input("encoded", batch)
        result = pipe.executor.run_once(isolate=True)
        errors = {place: str(error) for place, error in result.failures.items()}
        samples = [np.array(sample) for sample in result.outputs[0].as_cpu()]
        found.append((errors, [None if place in errors else sample for place, sample in enumerate(samples)]))
    return found, pipe


def test_images_that_are_left_to_the_cpu_are_resized_afterwards(followed: list[bool]) -> None:
    images = photographs()
    batches = [
        [*images[:3], unsafe(), *images[3:]],
        [unsafe()] * 3,
        [unsafe(), *images],
    ]
    drawn: Define = lambda data: a(data, normalize=NORMAL | {"mirror": fn.random.coin_flip(seed=5)})  # noqa: E731
    assert_equal(run(drawn, batches), run(drawn, batches, []))
    assert followed == [True] * len(batches)


@pytest.mark.usefixtures("strict")
def test_an_image_that_fails_fails_alone(followed: list[bool]) -> None:
    images = photographs()
    batches = [[*images[:2], damaged(images[3]), *images[2:]], images, [damaged(file) for file in images], images[::-1]]
    (ours, _), (theirs, _) = (isolated(a, batches, passes) for passes in (None, []))
    assert followed == [True] * len(batches)
    assert [sorted(errors) for errors, _ in ours] == [[2], [], [*range(len(images))], []]
    assert [errors for errors, _ in ours] == [errors for errors, _ in theirs]
    for (_, samples), (_, others) in zip(ours, theirs, strict=True):
        for sample, other in zip(samples, others, strict=True):
            np.testing.assert_array_equal(sample, other)


@pytest.mark.usefixtures("strict")
def test_an_error_names_the_decoder_and_the_image(followed: list[bool]) -> None:
    images = photographs()
    pipe = made(a, [[*images[:2], damaged(images[3])], images])
    with pytest.raises(RuntimeError, match=r"(?s)decoders\.image.*sample #2"):
        pipe.run()
    assert not followed


@pytest.mark.usefixtures("strict")
def test_images_that_fail_are_left_out_where_that_is_asked_for(followed: list[bool]) -> None:
    images = photographs()
    batches = [[*images[:2], damaged(images[3]), *images[2:]], images]
    skipping: Define = lambda data: a(data, on_error="skip")  # noqa: E731
    found = run(skipping, batches)
    assert followed == [True] * 2
    assert_equal(found, run(a, [images, images], []))


@pytest.mark.parametrize("room", [0, 20_000, 60_000])
def test_without_memory_for_all(room: int, monkeypatch: pytest.MonkeyPatch, followed: list[bool]) -> None:
    images = photographs()
    expected = run(a, [images], [])
    cuda = sys.modules["cupy"].cuda
    alloc = cuda.alloc

    def limited(size: int) -> Any:
        if size > room + 4096:
            raise MemoryError
        return alloc(size)

    # Limit only the decoder's allocations, and not those of tables and results.
    held = SimpleNamespace(cuda=SimpleNamespace(**vars(cuda) | {"alloc": limited}))
    monkeypatch.setattr(jpeg_gpu, "require_cupy", lambda: held)
    assert_equal(run(a, [images]), expected)
    assert followed == [True]


def test_batches_without_memory_for_their_results_are_begun_without_them(
    monkeypatch: pytest.MonkeyPatch, followed: list[bool]
) -> None:
    images = photographs()
    expected = run(a, [images], [])
    failed: list[bool] = []

    def follow(_self: ResizeNormalize, _workspace: Any) -> Any:
        failed.append(True)
        raise MemoryError

    monkeypatch.setattr(ResizeNormalize, "follow", follow)
    assert_equal(run(a, [images]), expected)
    assert failed
    assert followed == [False]


@pytest.mark.parametrize(
    "batch",
    [good(), [*photographs(), saved("PNG")]],
    ids=["of all kinds", "with a PNG"],
)
def test_other_batches_are_decoded_before_they_are_resized(batch: list[np.ndarray], followed: list[bool]) -> None:
    assert_equal(run(a, [batch, batch]), run(a, [batch, batch], []))
    assert followed == [False, False]


def test_what_is_used_elsewhere_is_kept(followed: list[bool]) -> None:
    def both(images: Any) -> Any:
        decoded = fn.decoders.image(images, device="mixed", **SMOOTH)
        return fn.crop_mirror_normalize(fn.resize(decoded, **RESIZE), **NORMAL), decoded

    run(both, [photographs()])
    assert not followed


def test_arguments_that_come_from_the_gpu_do_not_hold_up_decoding(followed: list[bool]) -> None:
    def shaped(images: Any) -> Any:
        other = fn.decoders.image(images, device="mixed", **SMOOTH)
        mirror = fn.cast(other.shape(dtype=types.INT32)[0] > 45, dtype=types.INT32)
        return a(images, normalize=NORMAL | {"mirror": mirror})

    images = photographs()
    assert_equal(run(shaped, [images]), run(shaped, [images], []))
    assert not followed


def test_a_batch_that_nobody_waits_for_keeps_its_memory_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[bool] = []
    monkeypatch.setattr("penstock.kernels.codecs.gpu.pending.follow", lambda *_: joined.append(True))
    images = photographs()
    pipe = made(a, [images] * 5, prefetch_queue_depth=2)
    pipe.run()
    before = len(joined)
    del pipe
    gc.collect()
    assert len(joined) > before


@pytest.mark.parametrize(("most", "ahead"), [(1 << 20, 2), (1, 1)])
def test_a_batch_more_is_begun_unless_it_takes_much_memory(
    most: int, ahead: int, monkeypatch: pytest.MonkeyPatch, followed: list[bool]
) -> None:
    monkeypatch.setattr(kernel_decoder, "_MAX_PIXELS_TO_BEGIN_AHEAD", most)
    # Begin no additional batches when batches are small.
    monkeypatch.setattr(turns, "_MAX_PIXELS_OF_TINY_BATCH", 0)
    monkeypatch.setattr(turns, "_MAX_PIXELS_OF_SMALL_IMAGE", 0)
    images, given = photographs(9), 0

    @pipeline_def(batch_size=24, num_threads=2, device_id=0, prefetch_queue_depth=2)
    def pipeline() -> Any:
        def source() -> list[np.ndarray]:
            nonlocal given
            given += 1
            return images

        return a(fn.external_source(source))

    running: Any = pipeline()
    for _ in range(4):
        running.run()
    assert given == 4 + ahead
    assert all(followed)


@pytest.mark.usefixtures("strict")
def test_results_are_counted(followed: list[bool]) -> None:
    images = photographs()
    _, pipe = isolated(a, [images, [*images, damaged(images[0])], images[:1]])
    (counts,) = pipe.executor.plan.fusion_statistics().values()
    assert followed == [True] * 3
    assert counts == {"fused": 2 * len(images) + 1}


def test_results_go_on_from_a_checkpoint(followed: list[bool], tmp_path: Path) -> None:
    for number, file in enumerate(photographs()):
        (tmp_path / f"{number}.jpg").write_bytes(file.tobytes())

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, seed=3, enable_checkpointing=True)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(files=sorted(map(str, tmp_path.glob("*.jpg"))), name="files", random_shuffle=True)
        return a(encoded, normalize=NORMAL | {"mirror": fn.random.coin_flip()})

    def results(pipe: Any, count: int) -> list[list[np.ndarray]]:
        return [[np.array(sample) for sample in pipe.run()[0].as_cpu()] for _ in range(count)]

    pipe, apart = pipeline(), pipeline(passes=[])
    assert_equal(results(pipe, 2), results(apart, 2))
    state = pipe.checkpoint()
    expected = results(pipe, 3)
    assert_equal(results(pipeline(checkpoint=state), 3), expected)
    assert_equal(expected, results(apart, 3))
    assert any(followed)


def test_batches_of_requests_are_begun_while_the_previous_one_is_decoded() -> None:
    @pipeline_def(batch_size=8, num_threads=2, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return a(fn.external_source(name="encoded", dtype=types.UINT8, ndim=1))

    images, broken = photographs(), saved()[:300]
    batches = [images[:3], [images[3], broken, images[4]], images[2:7], [broken]]
    runner = PipelineRunner(pipeline())

    def begun(batch: list[np.ndarray]) -> BegunBatch:
        return runner.begin({"encoded": TensorListCPU(batch)}, len(batch))

    def outcome(result: Any) -> tuple[list[np.ndarray], list[int]]:
        return [np.array(sample) for sample in result.outputs[0].as_cpu()], sorted(result.failures)

    alone = [outcome(runner.complete(begun(batch))) for batch in batches]
    assert [failed for _, failed in alone] == [[], [1], [], [0]]
    # As in a server, another thread completes a batch while this one begins the next.
    with ThreadPoolExecutor(1) as thread:
        overlapped, before = [], begun(batches[0])
        for batch in batches[1:]:
            completing = thread.submit(runner.complete, before)
            before = begun(batch)
            overlapped.append(outcome(completing.result()))
        overlapped.append(outcome(runner.complete(before)))
    assert [failed for _, failed in overlapped] == [failed for _, failed in alone]
    assert_equal([samples for samples, _ in overlapped], [samples for samples, _ in alone])
