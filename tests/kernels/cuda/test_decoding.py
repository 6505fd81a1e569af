"""Decoding for the GPU, with Penstock's kernels, and with nvImageCodec's CPU decoder in place of the JPEG engine."""

from __future__ import annotations

import gc
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import simplejpeg
from broken_batches import check_broken_batches, running
from failing_codec import failing_codec
from PIL import Image

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs import image_codec_gpu, jpeg_gpu, turns
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.gpu import host_decoder, pending
from penstock.kernels.codecs.gpu.jpegs import JpegRequest
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_description import EncodedFiles, ImageHeader
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.limits import Limits
from penstock.kernels.codecs.nvimgcodec import on_gpu
from penstock.kernels.codecs.nvimgcodec.decoder import BatchDecoder
from penstock.kernels.codecs.nvimgcodec.library import Backend, Share
from penstock.schema.workspace import Workspace
from penstock.tensors import TensorList

Define = Callable[[Any, str], Any]


@pytest.fixture(autouse=True)
def decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_cpu(_device: int, threads: int, *_shares: object) -> BatchDecoder:
        return BatchDecoder(None, threads, [Share(Backend.CPU_ONLY)])

    class NoPythonApi:
        """A decoder that decodes nothing, so that other formats than JPEG are decoded on the CPU."""

        def __init__(self, *_settings: object) -> None:
            pass

        def decode(self, images: Sequence[Any], *_how: object) -> list[None]:
            return [None] * len(images)

    monkeypatch.setattr(on_gpu, "BatchDecoder", on_cpu)
    monkeypatch.setattr(image_codec_gpu, "PythonApi", NoPythonApi)


def saved(kind: str = "JPEG", height: int = 40, width: int = 56, **options: Any) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([128 + 100 * np.sin(x / 20), 128 + 100 * np.cos(y / 15), (x + y) / 2 % 256], -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def turned(orientation: int) -> np.ndarray:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(exif=exif)


def photographs(count: int) -> list[np.ndarray]:
    options: list[dict[str, Any]] = [{}, {"subsampling": 0}, {"progressive": True}]
    return [saved(height=30 + k, width=50 + 2 * k, **options[k % 3]) for k in range(count)]


def run(define: Define, encoded: Sequence[np.ndarray], device: str) -> list[np.ndarray]:
    @pipeline_def(batch_size=len(encoded), num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return define(fn.external_source(lambda: list(encoded)), device)

    return [np.array(sample) for sample in pipeline().run()[0].as_cpu()]


SMOOTH: dict[str, Any] = {"jpeg_fancy_upsampling": True}
BY_ENGINE = {"hw_decoder_load": 0.65}


def whole(data: Any, device: str, **how: Any) -> Any:
    return fn.decoders.image(data, device=device, **(how or SMOOTH))


@pytest.mark.parametrize(
    "define",
    [
        whole,
        lambda x, device, **how: fn.decoders.image(x, device=device, adjust_orientation=False, **how),
        lambda x, device, **how: fn.decoders.image(x, device=device, output_type=types.GRAY, **how),
        lambda x, device, **how: fn.decoders.image(x, device=device, output_type=types.BGR, **how),
        lambda x, device, **how: fn.decoders.image_crop(x, device=device, crop=(20, 30), crop_pos_x=0.1, **how),
        lambda x, device, **how: fn.decoders.image_random_crop(x, device=device, seed=4, **how),
        lambda x, device, **how: fn.resize(fn.decoders.image(x, device=device, **how), size=(12, 10)),
    ],
)
@pytest.mark.parametrize(("how", "nearly"), [(SMOOTH, 0), (BY_ENGINE, 1)], ids=["by our kernels", "by the engine"])
def test_images_are_those_of_the_cpu(define: Callable[..., Any], how: dict[str, Any], nearly: int) -> None:
    encoded = [*photographs(4), *(turned(k) for k in range(1, 9)), saved("PNG"), saved(height=21, width=33)]

    def defined(data: Any, device: str) -> Any:
        return define(data, device, **how)

    for ours, theirs in zip(run(defined, encoded, "mixed"), run(defined, encoded, "cpu"), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=nearly)


def from_the_top() -> np.ndarray:
    """Return a BMP whose rows are stored from the top, which its negative height says."""
    image = saved("BMP", height=17, width=22).copy()
    image[22:26] = np.frombuffer((-17).to_bytes(4, "little", signed=True), np.uint8)
    return image


@pytest.mark.parametrize(
    "define",
    [
        *(partial(whole, output_type=kind, **SMOOTH) for kind in (types.RGB, types.BGR, types.GRAY)),
        lambda x, device: fn.decoders.image_crop(
            x, device=device, crop=(9, 13), crop_pos_x=0.3, crop_pos_y=0.8, **SMOOTH
        ),
        lambda x, device: fn.decoders.image_slice(
            x, device=device, start=[4, 5], end=[13, 20], axis_names="HW", **SMOOTH
        ),
        lambda x, device: fn.resize(whole(x, device), size=(12, 10)),
    ],
)
def test_uncompressed_images(define: Define) -> None:
    """The rows of BMPs have some bytes at the end that are no pixels, unless the width is divisible by 4."""
    plain = [saved(kind, height=15 + k, width=20 + k) for kind in ("BMP", "TIFF") for k in range(4)]
    encoded = [*plain, from_the_top(), saved("TIFF", compression="tiff_lzw"), *photographs(3), saved("PNG")]
    expected = run(define, encoded, "cpu")
    for order in (range(len(encoded)), range(len(plain)), [len(plain) - 1], [len(plain)]):
        found = run(define, [encoded[k] for k in order], "mixed")
        for k, own in zip(order, found, strict=True):
            np.testing.assert_allclose(own, expected[k], atol=1)


def test_uncompressed_images_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU decodes none of them."""
    monkeypatch.setattr(host_decoder, "decode", refused)
    encoded = [saved("BMP"), saved("TIFF"), saved("BMP", width=33), from_the_top()]
    for ours, data in zip(run(whole, encoded, "mixed"), encoded, strict=True):
        np.testing.assert_array_equal(ours, np.asarray(Image.open(io.BytesIO(data.tobytes()))))


def refused(*_: object) -> None:
    raise AssertionError("the CPU has been asked to decode an image")


def test_chroma_is_repeated_unless_it_is_to_be_smooth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_codec_gpu, "_MIN_BATCH_FOR_KERNELS", 3)
    encoded = [saved(), saved(height=41, subsampling=1), saved(subsampling=0)]
    for ours, data in zip(run(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed"), encoded):
        theirs = simplejpeg.decode_jpeg(data.tobytes(), "RGB", fastdct=False, fastupsample=True)
        np.testing.assert_array_equal(ours, theirs)


def test_who_decodes_an_image_depends_on_the_image_and_the_pipeline_alone() -> None:
    files = [saved(), saved(progressive=True), saved(height=41), saved(height=90, progressive=True), saved(height=50)]
    shapes = [(height, 56, 3) for height in (40, 40, 41, 90, 50)]
    jobs = pending.Jobs(EncodedFiles(files), read_headers(files), None, shapes)
    baseline, everything = [[0, 2, 4], [1, 3]], [[0, 1, 2, 3, 4]]
    few: dict[str, Any] = {"max_batch_size": 7}
    cases = (({}, baseline), ({"given": True}, everything), (few, everything), ({**few, **SMOOTH}, baseline))
    for how, parts in cases:
        begun = decoder(**how).submit(jobs)
        assert [list(part.taken) for part in begun.parts] == parts
        assert [list(map(bool, part.join())) for part in begun.parts] == [[True] * len(part) for part in parts]
    for chosen, is_begun in (((2, 4), True), ((0, 1), False), ((0,), True), ((3,), False)):
        assert (begun_together(decoder(), [files[k] for k in chosen]) is not None) == is_begun


@pytest.mark.parametrize("crops", [False, True])
@pytest.mark.parametrize("load", [None, 1.0])
def test_the_engine_may_fail(load: float | None, crops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Baseline JPEGs have the same pixels as from the engine; other files have another decoder anyway."""

    codec = failing_codec(monkeypatch)

    def failing(_device: int, threads: int, _first: Any, _second: Any, _options: str, spares: bool) -> BatchDecoder:
        codec.refuse_next()
        return BatchDecoder(None, threads, [Share(Backend.CPU_ONLY)], [Share(Backend.CPU_ONLY)], "", spares)

    monkeypatch.setattr(on_gpu, "BatchDecoder", failing)
    by_kernels = []
    begin = jpeg_gpu.JpegDecoder.begin

    def noted(self: Any, scans: Any, *arguments: Any) -> Any:
        by_kernels.append(int(scans.taken.sum()))
        return begin(self, scans, *arguments)

    monkeypatch.setattr(jpeg_gpu.JpegDecoder, "begin", noted)
    baseline = [saved(), turned(6), saved(height=42, subsampling=1), saved(height=30, width=40)]
    files = [saved(progressive=True), *baseline, saved()[:-200]]

    @pipeline_def(batch_size=len(files), num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        how: dict[str, Any] = {"device": "mixed"} | ({} if load is None else {"hw_decoder_load": load})
        data = fn.external_source(name="encoded")
        return fn.decoders.image_crop(data, crop=(20, 30), **how) if crops else fn.decoders.image(data, **how)

    made: Any = pipeline()
    made.build()

    def run(encoded: list[np.ndarray], failed: list[int]) -> list[np.ndarray]:
        made.feed_input("encoded", encoded)
        result = made.executor.run_once(isolate=True)
        assert list(result.failures) == failed
        return [np.array(image) for image in result.outputs[0].as_cpu()]

    images = run(files, [5])
    assert by_kernels == ([4] if load is None else [])
    assert [run([file], [])[0].tobytes() for file in files[:5]] == [image.tobytes() for image in images[:5]]
    for file, image in zip(files[:5], images):
        smooth = load is not None or file is files[0]
        header = read_header(file)
        expected = np.empty(header.shape(types.RGB), np.uint8)
        decode(file, header, expected, smooth=smooth)
        top, left = (expected.shape[0] - 20) // 2, (expected.shape[1] - 30) // 2
        if crops:
            expected = expected[top:, left:][:20, :30]
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize("served", [False, True])
def test_images_of_served_models_are_decoded_by_our_kernels_too(served: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_codec_gpu, "_MIN_BATCH_FOR_KERNELS", 3)
    by_kernels = []
    begin = jpeg_gpu.JpegDecoder.begin

    def noted(self: Any, *arguments: Any) -> Any:
        by_kernels.append(self)
        return begin(self, *arguments)

    monkeypatch.setattr(jpeg_gpu.JpegDecoder, "begin", noted)
    encoded = [saved(), saved(height=41), saved(subsampling=0)]

    @pipeline_def(batch_size=3, num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(name="encoded"), device="mixed")

    running: Any = pipeline()
    running.build()
    running.feed_input("encoded", encoded)
    result = running.executor.run_once(isolate=served)
    assert not result.failures
    assert len(by_kernels) == 1
    together = [np.array(image) for image in result.outputs[0].as_cpu()]
    for image, file in zip(together, encoded):
        running.feed_input("encoded", [file])
        (alone,) = running.executor.run_once(isolate=served).outputs[0].as_cpu()
        np.testing.assert_array_equal(np.array(alone), image)
    assert len(by_kernels) == 4


def read_headers(files: Sequence[np.ndarray]) -> Sequence[ImageHeader]:
    return [read_header(file) for file in files]


@pytest.mark.parametrize("padding", [0, 1, 1000])
def test_zeros_after_an_image_are_ignored(padding: int) -> None:
    encoded = [np.concatenate([saved(), np.zeros(padding, np.uint8)])]
    np.testing.assert_array_equal(run(whole, encoded, "mixed")[0], run(whole, [saved()], "cpu")[0])


def decoder(given: bool = False, max_batch_size: int = 24, **arguments: Any) -> image_codec_gpu.GpuImageDecoder:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(lambda: [saved()]), device="mixed", **arguments)

    running: Any = pipeline()
    running.build()
    (step,) = running.executor.plan.early
    return image_codec_gpu.GpuImageDecoder(step.operator.args, given, num_threads=1, max_batch_size=max_batch_size)


def begun_together(
    decoder: image_codec_gpu.GpuImageDecoder, files: list[np.ndarray], decoding: Decoding = FREELY
) -> pending.PendingDecode | None:
    request = decoder.read_jpegs(EncodedFiles(files), decoding)
    return None if request is None else decoder.submit_jpegs(request)


@pytest.mark.every_case
@pytest.mark.parametrize("other", [turned(6), saved("PNG"), saved()[:-200], np.zeros(50, np.uint8), saved(height=400)])
@pytest.mark.parametrize("given", [False, True])
def test_ordinary_jpegs_are_begun_without_a_look_at_each(other: np.ndarray, given: bool) -> None:
    few = Decoding(limits=Limits(pixels=100 * 100))
    begun = begun_together(decoder(given), [saved(), saved(height=41, subsampling=0)], few)
    assert begun is not None
    assert [list(part.join()) for part in begun.parts] == [[1, 1]]
    assert list(begun.jobs.shapes) == [(40, 56, 3), (41, 56, 3)]
    assert begun_together(decoder(given), [saved(), other], few) is None


@pytest.mark.parametrize("arguments", [{"dtype": types.FLOAT}, {"output_type": types.YCbCr}])
def test_images_to_be_converted_are_looked_at(arguments: dict[str, Any]) -> None:
    assert begun_together(decoder(**arguments), [saved()]) is None


def test_a_thousand_broken_batches_leave_nothing_behind() -> None:
    check_broken_batches(0, lambda: 0)


def resized(images: Any) -> Any:
    return fn.resize(images, size=(8, 9))


def normalized(images: Any) -> Any:
    return fn.crop_mirror_normalize(resized(images), crop=(4, 4), mean=[1.0, 2.0, 3.0], output_layout="CHW")


@pytest.mark.parametrize("define", [resized, normalized])
def test_broken_images_fail_alike_whether_others_are_in_their_batch_or_none(define: Any) -> None:
    pipe, whole = running(0, define), saved()
    errors = []
    for encoded in ([whole[:300], whole], [whole[:300]], [whole[:300], whole[:200]]):
        pipe.feed_input("encoded", encoded)
        errors.append(str(pipe.executor.run_once(isolate=True).failures[0]))
    pipe.close()
    assert len(set(errors)) == 1
    assert "decode" in errors[0]


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize(
    "define",
    [
        lambda data: fn.decoders.image(data, device="mixed"),
        lambda data: fn.decoders.image(data, device="mixed", **SMOOTH),
        lambda data: resized(fn.decoders.image(data, device="mixed")),
        lambda data: fn.crop_mirror_normalize(
            resized(fn.decoders.image(data, device="mixed", **SMOOTH)), mirror=fn.random.coin_flip()
        ),
        lambda data: fn.decoders.on_white(data, device="mixed"),
    ],
)
def test_a_batch_ends_although_images_were_broken(define: Callable[[Any], Any]) -> None:
    files = [
        saved(),
        saved()[:-200],
        saved(progressive=True),
        np.zeros(50, np.uint8),
        saved("PNG"),
        saved("PNG")[:-200],
    ]

    @pipeline_def(batch_size=len(files), num_threads=2, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return define(fn.external_source(name="encoded"))

    made: Any = pipeline()
    made.build()

    def live() -> int:
        made.feed_input("encoded", files)
        assert sorted(made.executor.run_once(isolate=True).failures) == [1, 3, 5]
        return sum(issubclass(type(each), (TensorList, Workspace)) for each in gc.get_objects())

    first = live()
    assert [live() for _ in range(5)] == [first] * 5


def test_broken_images_fail_alone() -> None:
    encoded = [saved(), saved()[:-200], turned(6), np.zeros(50, np.uint8), saved("PNG"), saved()]

    @pipeline_def(batch_size=len(encoded), num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        images = fn.decoders.image(fn.external_source(name="encoded"), device="mixed")
        return fn.crop_mirror_normalize(fn.resize(images, size=(8, 9)), mirror=fn.random.coin_flip(seed=1))

    running: Any = pipeline()
    running.build()
    for _ in range(3):
        running.feed_input("encoded", encoded)
        result = running.executor.run_once(isolate=True)
        assert sorted(result.failures) == [1, 3]
        shapes = result.outputs[0].shapes
        assert [shapes[k] for k in (0, 2, 4, 5)] == [(3, 8, 9)] * 4
        assert {0} <= set(shapes[1]) | set(shapes[3])


def test_all_images_broken() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return fn.resize(fn.decoders.image(fn.external_source(name="encoded"), device="mixed"), size=(8, 9))

    running: Any = pipeline()
    running.build()
    running.feed_input("encoded", [saved()[:-200], np.zeros(50, np.uint8)])
    assert sorted(running.executor.run_once(isolate=True).failures) == [0, 1]


@pytest.mark.parametrize("how", [SMOOTH, BY_ENGINE], ids=["by our kernels", "by the engine"])
def test_an_image_without_room_fails_alone(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = sys.modules["cupy"].cuda
    alloc = cuda.alloc

    def limited(size: int) -> Any:
        if size > 50_000:
            raise MemoryError
        return alloc(size)

    encoded = [*photographs(3), saved(height=200, width=300), *photographs(9)]

    @pipeline_def(batch_size=len(encoded), num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return whole(fn.external_source(name="encoded"), "mixed", **how)

    running: Any = pipeline()
    running.build()
    running.feed_input("encoded", encoded)
    with monkeypatch.context() as context:
        context.setattr(cuda, "alloc", limited)
        result = running.executor.run_once(isolate=True)
    assert list(result.failures) == [3]
    assert isinstance(result.failures[3], MemoryError)
    assert "200x300x3" in str(result.failures[3])
    for k, expected in enumerate(run(whole, encoded, "cpu")):
        if k != 3:
            np.testing.assert_allclose(np.array(result.outputs[0].samples[k]), expected, atol=1)


# -- batches that are started ahead --------------------------------------------------------------------------------------


class Source:
    """A source of batches of these sizes, which counts the batches; ``side``: the approximate side of the images."""

    def __init__(self, sizes: Sequence[int], side: int = 10) -> None:
        self.sizes, self.side, self.given = sizes, side, 0

    def __call__(self) -> list[np.ndarray]:
        if self.given == len(self.sizes):
            self.given = 0
            raise StopIteration
        self.given += 1
        return [saved(height=self.side + self.given, width=self.side)] * self.sizes[self.given - 1]


def looping(source: Source, depth: int, **how: Any) -> Any:
    @pipeline_def(batch_size=max(source.sizes), num_threads=1, device_id=0, prefetch_queue_depth=depth)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(source), device="mixed", **how)

    return pipeline()


@pytest.mark.parametrize("sizes", [[2] * 7, [2, 2, 2, 12, 12, 12, 12, 2, 2, 2], [12] * 5, [1], [3, 12]])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("how", [SMOOTH, BY_ENGINE], ids=["by our kernels", "by the engine"])
def test_every_batch_comes_once_and_in_order(sizes: list[int], depth: int, how: dict[str, Any]) -> None:
    running = looping(Source(sizes), depth, **how)
    for _ in range(2):
        found = [[shape[0] for shape in running.run()[0].shapes] for _ in sizes]
        assert found == [[11 + step] * size for step, size in enumerate(sizes)]
        with pytest.raises(StopIteration):
            running.run()
        running.reset()


@pytest.mark.parametrize("how", [SMOOTH, BY_ENGINE], ids=["by our kernels", "by the engine"])
def test_few_images_and_small_ones_are_begun_further_ahead(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    # Lower the limits to a sixteenth: on an emulated GPU, images of the real size would take a minute.
    monkeypatch.setattr(turns, "_MAX_PIXELS_OF_SMALL_IMAGE", turns._MAX_PIXELS_OF_SMALL_IMAGE >> 4)
    monkeypatch.setattr(turns, "_MAX_PIXELS_OF_TINY_BATCH", turns._MAX_PIXELS_OF_TINY_BATCH >> 4)
    single, small, few, many = Source([2] * 20, 183), Source([12] * 20), Source([8] * 20, 183), Source([9] * 20, 183)
    for source, depth, ahead in ((single, 2, 5), (small, 2, 5), (few, 2, 2), (many, 2, 1), (Source([2] * 20), 1, 0)):
        running = looping(source, depth, **how)
        for _ in range(6):
            running.run()
        assert source.given == 6 + ahead


def test_what_was_begun_ahead_is_made_up_for() -> None:
    source = Source([2] * 4 + [9] * 10, 730)
    running = looping(source, 2, **BY_ENGINE)
    for _ in range(10):
        running.run()
    assert source.given == 11


def test_what_is_decoded_is_completed_before_the_next_batch_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source([9] * 20, 730)
    done: list[str] = []

    class Noting(image_codec_gpu.GpuImageDecoder):
        def read_jpegs(self, *arguments: Any) -> JpegRequest | None:
            done.append("read")
            return super().read_jpegs(*arguments)

        def submit_jpegs(self, *arguments: Any) -> pending.PendingDecode | None:
            done.append("submitted")
            self.last = super().submit_jpegs(*arguments)
            return self.last

        def collect(self, *arguments: Any) -> Sequence[Any]:
            done.append("collected")
            return super().collect(*arguments)

    monkeypatch.setattr(image_codec_gpu, "GpuImageDecoder", Noting)
    running = looping(source, 2, **BY_ENGINE)
    began = time.monotonic()
    running.run()
    took = time.monotonic() - began
    (decoder,) = (step.operator for step in running.executor.plan.early)
    while not decoder._gpu.last.is_ready:
        time.sleep(0.001)
    time.sleep(took)  # a consumer that takes this long is slower than the pipeline
    done.clear()
    running.run()
    assert done == ["read", "collected", "submitted"]


def test_a_batch_that_fails_ahead_of_time_raises_in_its_turn() -> None:
    broken = saved()[:-200]

    @pipeline_def(batch_size=9, num_threads=1, device_id=0, prefetch_queue_depth=2)
    def pipeline() -> Any:
        batches = [[saved()] * 9, [saved()] * 9, [broken] * 9, [saved()] * 9]
        return fn.decoders.image(fn.external_source(batches, cycle=True), device="mixed")

    running: Any = pipeline()
    for step in range(3):
        time.sleep(0.05)
        if step < 2:
            running.run()
        else:
            with pytest.raises(ValueError, match="sample #0"):
                running.run()


def test_fed_batches_are_not_waited_for() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0, prefetch_queue_depth=2)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(name="encoded"), device="mixed")

    running: Any = pipeline()
    running.build()
    for _ in range(4):
        running.feed_input("encoded", [saved()] * 2)
        (images,) = running.run()
        assert images.shapes == [(40, 56, 3)] * 2
