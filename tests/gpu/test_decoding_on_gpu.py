"""Images that Penstock's kernels and nvImageCodec decode on the GPU, compared with the CPU's."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tested_gpu
from PIL import Image
from process_memory import taken_by_us

from penstock import fn, pipeline_def, types
from penstock.core.threads import SharedWork
from penstock.kernels.codecs import jpeg_gpu
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.cuda.launch_list import LaunchList
from penstock.tensors.driver import driver_error


def _saved(kind: str, height: int = 120, width: int = 160, **options: object) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([128 + 100 * np.sin(x / 20), 128 + 100 * np.cos(y / 15), (x + y) / 2 % 256], -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _turned(orientation: int) -> np.ndarray:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return _saved("JPEG", exif=exif, quality=95)


def _built(define: Callable[[Any, str], Any], encoded: Sequence[np.ndarray], device: str) -> Any:
    @pipeline_def(
        batch_size=len(encoded), num_threads=2, device_id=tested_gpu.device(), exec_async=False, exec_pipelined=False
    )
    def pipeline() -> Any:
        return define(fn.external_source(name="encoded"), device)

    running = pipeline()
    running.build()
    running.feed_input("encoded", list(encoded))
    return running


def _run(define: Callable[[Any, str], Any], encoded: Sequence[np.ndarray], device: str) -> list[np.ndarray]:
    (batch,) = _built(define, encoded, device).run()
    return [np.array(sample) for sample in batch.as_cpu()]


def _alone(encoded: Sequence[np.ndarray], **how: Any) -> list[np.ndarray]:
    """Return each image decoded in a batch of its own, all by one pipeline, as nvImageCodec may need half a second to create a decoder."""
    running = _built(lambda x, device: fn.decoders.image(x, device=device, **how), encoded[:1], "mixed")
    for data in encoded[1:]:
        running.feed_input("encoded", [data])
    return [np.array(running.run()[0].as_cpu()[0]) for _ in encoded]


def _assert_close(define: Callable[[Any, str], Any], encoded: Sequence[np.ndarray], range_: float = 255) -> None:
    # Decoders smooth chroma differently, and nvImageCodec rounds differently; wrong positions or colours would differ much more.
    for ours, theirs in zip(_run(define, encoded, "mixed"), _run(define, encoded, "cpu")):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        assert np.abs(ours.astype(np.float64) - theirs).mean() <= 0.01 * range_


WAYS: dict[str, dict[str, Any]] = {
    "by size": {},
    "by our kernels": {"jpeg_fancy_upsampling": True},
    "by the engine": {"hw_decoder_load": 1.0},
}
"""The arguments for each way to decode JPEGs."""


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY, types.YCbCr])
@pytest.mark.parametrize("dtype", [types.UINT8, types.FLOAT, types.UINT16])
def test_jpegs_are_those_of_the_cpu(output_type: types.DALIImageType, dtype: types.DALIDataType) -> None:
    def define(x: Any, device: str) -> Any:
        return fn.decoders.image(x, device=device, output_type=output_type, dtype=dtype, jpeg_fancy_upsampling=True)

    sizes = (1, 1), (7, 300), (33, 47), (480, 640), (1079, 1921)
    settings: list[dict[str, object]] = [{}, {"subsampling": 1, "quality": 95}, {"subsampling": 0, "optimize": True}]
    encoded = [_saved("JPEG", *size, **own) for size in sizes for own in settings]
    encoded += [_turned(k) for k in range(1, 9)]
    for ours, theirs in zip(_run(define, encoded, "mixed"), _run(define, encoded, "cpu"), strict=True):
        # The GPU multiplies by the YCbCr matrix in another order.
        np.testing.assert_allclose(ours, theirs, atol=1 if output_type == types.YCbCr else 0)


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA])
def test_every_format(output_type: types.DALIImageType) -> None:
    encoded = [_saved(kind) for kind in ("JPEG", "PNG", "BMP", "TIFF", "WEBP", "PPM", "GIF")]
    for how in WAYS.values():
        _assert_close(lambda x, device: fn.decoders.image(x, device=device, output_type=output_type, **how), encoded)  # noqa: B023


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    "define",
    [
        lambda x, device: fn.decoders.image(x, device=device),
        lambda x, device: fn.decoders.image(x, device=device, adjust_orientation=False),
        lambda x, device: fn.decoders.image_crop(x, device=device, crop=(50, 70), crop_pos_x=0.1, crop_pos_y=0.8),
        lambda x, device: fn.decoders.image_slice(x, device=device, start=[10, 20], end=[60, 90]),
        lambda x, device: fn.decoders.image_random_crop(x, device=device, seed=4),
    ],
)
def test_orientation_and_windows(define: Callable[[Any, str], Any], orientation: int) -> None:
    _assert_close(define, [_turned(orientation), _saved("JPEG", 200, 100), _saved("PNG")])


@pytest.mark.parametrize("settings", [{}, {"subsampling": 1}, {"subsampling": 0}], ids=["4:2:0", "4:2:2", "4:4:4"])
def test_windows_are_those_of_the_cpu(settings: dict[str, object]) -> None:
    encoded = [_saved("JPEG", 400 + 7 * k, 500 - 9 * k, **settings) for k in range(9)] + [_turned(k) for k in (3, 6, 8)]

    def define(x: Any, device: str) -> Any:
        how = {"device": device, "jpeg_fancy_upsampling": True}
        return (
            fn.decoders.image_crop(x, crop=(51, 77), crop_pos_x=0.31, crop_pos_y=0.77, **how),
            fn.decoders.image_slice(x, start=[11, 20], end=[60, 91], axis_names="HW", **how),
            fn.decoders.image_random_crop(x, seed=4, **how),
        )

    for ours, theirs in zip(_built(define, encoded, "mixed").run(), _built(define, encoded, "cpu").run(), strict=True):
        for one, other in zip(ours.as_cpu(), theirs, strict=True):
            np.testing.assert_array_equal(np.array(one), np.array(other))


@pytest.mark.parametrize(("dtype", "range_"), [(types.FLOAT, 1.0), (types.UINT16, 65535), (types.INT8, 127)])
def test_types(dtype: types.DALIDataType, range_: float) -> None:
    _assert_close(
        lambda x, device: fn.decoders.image(x, device=device, dtype=dtype), [_saved("JPEG"), _saved("PNG")], range_
    )


def test_a_damaged_image_fails_alone() -> None:
    encoded = [_saved("JPEG"), _saved("JPEG")[:2000], _saved("PNG"), np.zeros(50, np.uint8)]
    running = _built(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed")
    result = running.executor.run_once(isolate=True)
    assert sorted(result.failures) == [1, 3]
    assert result.outputs[0].shapes[0] == (120, 160, 3)
    assert result.outputs[0].shapes[2] == (120, 160, 3)
    with pytest.raises(ValueError, match="sample #"):
        _run(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed")


def photographs() -> list[np.ndarray]:
    """Return JPEGs of many sizes and several kinds: with and without halved chroma, grey, and progressive."""
    kinds: list[dict[str, object]] = [
        {"quality": 90},
        {"quality": 75, "subsampling": 0},
        {"quality": 95, "subsampling": 1},
        {"quality": 85, "progressive": True},
    ]
    sizes = ((200 + 16 * k, 300 + 9 * k) if k % 5 else (800 + k, 700) for k in range(24))
    return [_saved("JPEG", *size, **kinds[k % len(kinds)]) for k, size in enumerate(sizes)]


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_an_image_is_the_same_whatever_it_is_batched_with(how: dict[str, Any]) -> None:
    def decode(x: Any, device: str) -> Any:
        return fn.decoders.image(x, device=device, **how)

    encoded = photographs()
    alone = _alone(encoded, **how)
    order = np.random.default_rng(0)
    for size in (2, 7, 8, 9, 11, 17, 24):
        chosen = order.permutation(len(encoded))[:size]
        together = _run(decode, [encoded[k] for k in chosen], "mixed")
        for k, image in zip(chosen, together):
            np.testing.assert_array_equal(image, alone[k])


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_batches_on_their_way_do_not_meet(how: dict[str, Any]) -> None:
    encoded = photographs()

    @pipeline_def(batch_size=5, num_threads=2, device_id=tested_gpu.device(), prefetch_queue_depth=3)
    def pipeline() -> Any:
        data = fn.external_source(lambda step: [encoded[(step + k) % len(encoded)] for k in range(5)])
        return fn.decoders.image(data, device="mixed", **how)

    running = pipeline()
    images = _alone(encoded, **how)
    kept = [running.run()[0] for _ in range(30)]
    for step, batch in enumerate(kept):
        for k, image in enumerate(batch.as_cpu()):
            np.testing.assert_array_equal(np.array(image), images[(step + k) % len(encoded)])


@pytest.mark.parametrize("count", [20, 48])
def test_batches_that_are_resized_in_parts_do_not_meet(count: int) -> None:
    """With 20 images, there is memory for one more batch in flight than with 48 images."""
    kinds: list[dict[str, object]] = [{"quality": 95}, {"subsampling": 0}, {"subsampling": 1}]
    sizes = [(1400 + 64 * (k % 5), 2000 - 48 * (k % 7)) for k in range(count)]
    encoded = [_saved("JPEG", *size, **kinds[k % 3]) for k, size in enumerate(sizes)]
    orders = [np.random.default_rng(step).permutation(count) for step in range(12)]

    def define(x: Any, device: str) -> Any:
        images = fn.decoders.image(x, device=device)
        return fn.crop_mirror_normalize(fn.resize(images, resize_shorter=64.0), crop=(56, 56), mean=[100.0], std=[50.0])

    @pipeline_def(batch_size=count, num_threads=4, device_id=tested_gpu.device(), prefetch_queue_depth=2)
    def pipeline() -> Any:
        return define(fn.external_source([[encoded[k] for k in order] for order in orders], cycle=True), "mixed")

    running = pipeline()
    expected = _run(define, encoded, "mixed")
    for order in [*orders, *orders]:
        (batch,) = running.run()
        for image, k in zip(batch.as_cpu(), order, strict=True):
            np.testing.assert_array_equal(np.array(image), expected[k])


def test_a_batch_is_decoded_while_python_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_THREAD", 10_000)
    encoded = [_saved("JPEG", 300 + 9 * k, 500 - 7 * k, quality=95, subsampling=k % 3) for k in range(40)]
    sizes = np.array([(300 + 9 * k, 500 - 7 * k) for k in range(40)])
    expected = _run(lambda x, device: fn.decoders.image(x, device=device), encoded, "cpu")
    with cupy.cuda.Device(tested_gpu.device()):
        files, stream = EncodedFiles(encoded), cupy.cuda.Stream(non_blocking=True)
        decoder = jpeg_gpu.JpegDecoder(3, False, True, 4)
        for _ in range(100):
            scans = decoder.begin_reading(files, sizes).wait()
            assert scans.taken.all()
            targets = [cupy.zeros((height, width, 3), np.uint8) for height, width in sizes.tolist()]
            cupy.cuda.get_current_stream().synchronize()
            places = np.array([target.data.ptr for target in targets], np.uint64)
            batch = decoder.begin(scans, files, np.concatenate([0 * sizes, sizes], 1), places, stream, targets)
            deadline = time.monotonic() + 60
            while not batch.is_done and time.monotonic() < deadline:
                pass
            # The batch is decoded although nothing waited for it.
            assert batch.is_done
            assert all(batch.wait())
            for target, image in zip(targets, expected, strict=True):
                np.testing.assert_array_equal(target.get(), image)


def test_data_that_are_copied_beforehand_are_those_of_their_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_THREAD", 10_000)
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_STREAM", 10_000)
    sizes = [(300 + 9 * k, 500 - 7 * k) for k in range(40)]
    encoded = [_saved("JPEG", *size, quality=95, subsampling=k % 3) for k, size in enumerate(sizes)]
    expected = _run(lambda x, device: fn.decoders.image(x, device=device), encoded, "cpu")
    with cupy.cuda.Device(tested_gpu.device()):
        stream, decoder = cupy.cuda.Stream(non_blocking=True), jpeg_gpu.JpegDecoder(3, False, True, 4)

        def begin(order: Sequence[int]) -> tuple[jpeg_gpu.JpegBatch, list[Any]]:
            files, extents = EncodedFiles([encoded[k] for k in order]), np.array([sizes[k] for k in order])
            targets = [cupy.zeros((height, width, 3), np.uint8) for height, width in extents.tolist()]
            cupy.cuda.get_current_stream().synchronize()
            scans = decoder.begin_reading(files, extents).wait()
            places = np.array([target.data.ptr for target in targets], np.uint64)
            windows = np.concatenate([0 * extents, extents], 1)
            return decoder.begin(scans, files, windows, places, stream, targets), targets

        rng, on_their_way, dropped = np.random.default_rng(2), list[Any](), list[Any]()
        for step in range(120):
            order = rng.permutation(40)[: 10 + step % 31].tolist()
            batch, targets = begin(order)
            if step % 5 == 0:
                # Nothing waits for this batch, and only its pixels are still referenced.
                dropped.append(targets)
                del batch
            else:
                on_their_way.append((batch, targets, order))
            if len(on_their_way) > 2:
                batch, targets, order = on_their_way.pop(0)
                assert all(batch.wait())
                for target, k in zip(targets, order, strict=True):
                    np.testing.assert_array_equal(target.get(), expected[k])
        stream.synchronize()


def test_a_launch_that_the_driver_refuses_is_told() -> None:
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(tested_gpu.device()):
        launches = LaunchList(cupy.cuda.Stream(non_blocking=True))
        launches.copy_to_device(8, 16, 1 << 20)
        work = SharedWork(0, 0, 0, None)
        work.follow(launches.calls(), launches.kept)
        with pytest.raises(cupy.cuda.driver.CUDADriverError, match="INVALID_VALUE"):
            raise driver_error(work.wait())
        cupy.cuda.get_current_stream().synchronize()


def _bad() -> list[np.ndarray]:
    """Return images that no decoder accepts; each is broken in a different way."""
    whole = _saved("JPEG")
    noise = whole.copy()
    noise[-600:-300] = 0xFF
    huge = whole.copy()
    frame = bytes(huge).find(b"\xff\xc0")
    huge[frame + 5 : frame + 9] = (0x3E, 0x80, 0x3E, 0x80)
    return [whole[:700], noise[:-400], huge, np.frombuffer(b"\xff\xd8\xff\xe0 no image", np.uint8)]


def test_broken_images_again_and_again_cost_no_memory() -> None:
    encoded = [*photographs()[:4], *_bad(), _saved("PNG")]
    running = _built(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed")

    def failures() -> list[int]:
        running.feed_input("encoded", list(encoded))
        return sorted(running.executor.run_once(isolate=True).failures)

    expected = failures()
    assert set(expected) <= set(range(4, 8))
    assert expected
    for _ in range(20):
        assert failures() == expected

    def growth() -> int:
        before = taken_by_us()
        for _ in range(40):
            assert failures() == expected
        return taken_by_us() - before

    # A leak would grow each time. If the driver does not report memory by process, the memory of others may grow for a while, too.
    assert any(growth() < 4 << 20 for _ in range(20))


def _of_twelve_bits() -> np.ndarray:
    """Return a JPEG whose header declares 12-bit samples, as in medical images."""
    image = _saved("JPEG").copy()
    image[bytes(image).find(b"\xff\xc0") + 4] = 12
    return image


@pytest.mark.parametrize("neighbours", [1, 12])
@pytest.mark.parametrize("make", [_of_twelve_bits, lambda: _bad()[0], lambda: _bad()[2], lambda: _bad()[3]])
def test_an_image_that_is_refused_leaves_its_neighbours_alone(make: Callable[[], np.ndarray], neighbours: int) -> None:
    def define(x: Any, device: str) -> Any:
        images = fn.decoders.image(x, device=device)
        return fn.crop_mirror_normalize(fn.resize(images, size=(20, 30)), mirror=fn.random.coin_flip(seed=1))

    good = photographs()[: 2 * neighbours]
    encoded = [*good[:neighbours], make(), *good[neighbours:]]
    running = _built(define, encoded, "mixed")
    result = running.executor.run_once(isolate=True)
    assert list(result.failures) == [neighbours]
    assert isinstance(result.failures[neighbours], ValueError)
    assert f"sample #{neighbours}" in str(result.failures[neighbours])
    whole = _built(define, [*good[:neighbours], good[0], *good[neighbours:]], "mixed").run()[0].as_cpu()
    found = result.outputs[0].as_cpu()
    for k in {*range(2 * neighbours + 1)} - {neighbours}:
        np.testing.assert_array_equal(np.array(found[k]), np.array(whole[k]))


def test_broken_images_are_skipped_while_batches_are_begun_ahead() -> None:
    good, bad = photographs(), _bad()

    @pipeline_def(batch_size=3, num_threads=2, device_id=tested_gpu.device(), prefetch_queue_depth=2, on_error="skip")
    def pipeline() -> Any:
        data = fn.external_source(lambda step: [good[step % 24], bad[3 * (step % 2)], good[(step + 1) % 24]])
        return fn.decoders.image(data, device="mixed")

    running = pipeline()
    images = _alone(good)
    for step in range(30):
        (batch,) = running.run()
        assert len(batch) == 2
        for k, image in enumerate(batch.as_cpu()):
            np.testing.assert_array_equal(np.array(image), images[(step + k) % 24])


@pytest.mark.parametrize("progressive", [False, True])
def test_an_image_of_16k_by_16k(progressive: bool) -> None:
    """The image, baseline or progressive, exceeds the JPEG engine's limit; the CPU decodes it to the same pixels."""
    side = 16384
    buffer = io.BytesIO()
    ramp = np.linspace(0, 255, side).astype(np.uint8)
    Image.fromarray(np.broadcast_to(ramp, (side, side))).save(buffer, "JPEG", progressive=progressive)
    large = np.frombuffer(buffer.getvalue(), np.uint8)

    def define(x: Any, device: str) -> Any:
        return fn.resize(fn.decoders.image(x, device=device), size=(24, 40))

    encoded = [_saved("JPEG"), large, _saved("JPEG", 50, 60)]
    ours, alone = _run(define, encoded, "mixed"), _run(define, encoded[::2], "mixed")
    for one, other in zip(ours[::2], alone):
        np.testing.assert_array_equal(one, other)
    expected = np.array([part.mean() for part in np.array_split(ramp, 40)])
    assert np.abs(ours[1].astype(np.float64) - expected[None, :, None]).max() < 4


def test_an_image_without_room_on_the_gpu_fails_alone() -> None:
    cupy = pytest.importorskip("cupy")
    encoded = [_saved("JPEG"), _saved("JPEG", 1500, 1500), _saved("JPEG", 90, 70)]
    with cupy.cuda.Device(tested_gpu.device()):
        pool = cupy.cuda.MemoryPool()
        pool.set_limit(4 << 20)
        # Only this thread allocates from the limited pool.
        with cupy.cuda.using_allocator(pool.malloc):
            running = _built(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed")
            result = running.executor.run_once(isolate=True)
            assert list(result.failures) == [1]
            assert "1500x1500x3" in str(result.failures[1])
            assert [result.outputs[0].shapes[k] for k in (0, 2)] == [(120, 160, 3), (90, 70, 3)]


def test_all_images_broken() -> None:
    running = _built(lambda x, device: fn.decoders.image(x, device=device), _bad(), "mixed")
    result = running.executor.run_once(isolate=True)
    assert set(result.failures) >= {0, 3}
    assert all(not math.prod(result.outputs[0].shapes[k]) for k in result.failures)


def test_what_follows_sees_the_pixels() -> None:
    def define(x: Any, device: str) -> Any:
        return fn.resize(fn.decoders.image(x, device=device), size=(32, 32))

    _assert_close(define, [_saved("JPEG"), _saved("JPEG", 300, 200)] * 8)


def test_cached_images_are_the_same(tmp_path: Any) -> None:
    paths = []
    for i in range(4):
        paths.append(str(tmp_path / f"{i}.jpg"))
        _saved("JPEG", 100 + i, 80).tofile(paths[-1])

    @pipeline_def(batch_size=4, num_threads=2, device_id=tested_gpu.device())
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(files=paths)
        return fn.decoders.image(encoded, device="mixed", cache_size=10, cache_type="threshold")

    running = pipeline()
    running.build()
    first, second = ([np.array(sample) for sample in running.run()[0].as_cpu()] for _ in range(2))
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


def test_mirrors_that_are_drawn_are_those_of_the_cpu() -> None:
    """Launches are recorded for the first batches, and repeated for similar batches with other mirrors."""
    rng = np.random.default_rng(2)
    images = [rng.integers(0, 256, shape, np.uint8) for shape in ((60, 81, 3), (200, 100, 3), (60, 81, 3), (33, 40, 3))]

    def batches(device: str) -> list[np.ndarray]:
        @pipeline_def(batch_size=4, num_threads=2, device_id=tested_gpu.device(), seed=5)
        def pipeline() -> Any:
            pixels = fn.external_source(lambda: images, layout="HWC")
            resized = fn.resize(pixels.gpu() if device == "gpu" else pixels, resize_shorter=32)
            return fn.crop_mirror_normalize(resized, crop=(30, 28), mirror=fn.random.coin_flip(), std=[50.0])

        running = pipeline()
        return [running.run()[0].as_cpu().as_array() for _ in range(12)]

    on_gpu, on_cpu = batches("gpu"), batches("cpu")
    for ours, theirs in zip(on_gpu, on_cpu):
        np.testing.assert_allclose(ours, theirs, atol=0.021)
    assert len({batch.tobytes() for batch in on_gpu}) > 4
