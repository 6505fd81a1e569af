"""Batches of JPEGs that CUDA kernels decode: in parts, on several threads, with damaged files, and with too little memory."""

from __future__ import annotations

import ctypes
import gc
import io
import sys
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cupy_like as xp
import numpy as np
import pytest
import simplejpeg
from jpeg_writing import blocks_of, grid_of, write_jpeg
from PIL import Image

from penstock import fn, pipeline_def, types
from penstock.core.threads import Job
from penstock.kernels.codecs import jpeg_gpu
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.jpeg_gpu import JpegDecoder
from penstock.kernels.cpu.jpeg.batches import JpegScans
from penstock.kernels.cuda import jpeg_pixels
from penstock.kernels.cuda.jpeg_launches import Kernels
from penstock.kernels.cuda.launch import staging
from penstock.kernels.cuda.launch_list import LaunchList

RNG = np.random.default_rng(5)


def noise(height: int, width: int, rng: np.random.Generator = RNG) -> np.ndarray:
    return rng.integers(0, 256, (height, width, 3), np.uint8)


def damaged_noise() -> tuple[np.ndarray, np.ndarray]:
    """Return a JPEG, and the same JPEG with damage that every decoder notices."""
    # With one seed in six, no decoder would notice the damage; a fixed seed keeps the noise independent of earlier tests.
    whole = encoded(noise(100, 120, np.random.default_rng(77)), quality=90)
    damaged = whole.copy()
    damaged[-300:-100] = 0x55
    return whole, damaged


def encoded(pixels: np.ndarray, **settings: Any) -> np.ndarray:
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "JPEG", **settings)
    return np.frombuffer(held.getvalue(), np.uint8)


def by_pillow(file: np.ndarray, mode: str = "RGB") -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(file.tobytes())).convert(mode))


def size_of(file: np.ndarray) -> tuple[int, int]:
    width, height = Image.open(io.BytesIO(file.tobytes())).size
    return height, width


def decoder(channels: int = 3, reverse: bool = False, smooth: bool = True, threads: int = 1) -> JpegDecoder:
    return JpegDecoder(channels, reverse, smooth, threads)


class Decoded:
    """A batch whose decoding has begun.

    Attributes:
        taken: for each image, whether the decoder accepts it.
    """

    def __init__(
        self,
        files: Sequence[np.ndarray],
        own: JpegDecoder,
        windows: Any = None,
        stream: Any = None,
    ) -> None:
        given = EncodedFiles(files)
        sizes = np.array([size_of(file) for file in files])
        scans = own.begin_reading(given, sizes).wait()
        self.taken = scans.taken.tolist()
        windows = np.concatenate([0 * sizes, sizes], 1) if windows is None else np.array(windows)
        self.targets = [xp.empty((height, width, own.channels)) for _, _, height, width in windows.tolist()]
        places = np.array([target.data.ptr for target in self.targets], np.uint64)
        rows, stream = scans.taken.copy(), stream or sys.modules["cupy"].cuda.Stream()
        self.batch = own.begin(scans, given, windows[rows], places[rows], stream, self.targets)

    def images(self) -> list[np.ndarray | None]:
        """Wait for the batch; return the images, with None for images that could not be decoded."""
        states = iter(self.batch.wait())
        decoded = [taken and next(states) for taken in self.taken]
        assert self.batch.is_done
        return [target.get() if one else None for target, one in zip(self.targets, decoded, strict=True)]


FILES = [
    encoded(noise(40, 60)),
    encoded(noise(33, 47), subsampling=0, quality=95),
    encoded(noise(64, 30), subsampling=1, restart_marker_blocks=2),
    encoded(noise(1, 1)),
    encoded(noise(50, 20)[..., 0]),
    encoded(noise(90, 110), quality=30),
]


def test_pixels_are_those_of_libjpeg_turbo() -> None:
    for ours, file in zip(Decoded(FILES, decoder()).images(), FILES, strict=True):
        np.testing.assert_array_equal(ours, by_pillow(file))
    for ours, file in zip(Decoded(FILES, decoder(3, True, False)).images(), FILES, strict=True):
        theirs = simplejpeg.decode_jpeg(file.tobytes(), "BGR", fastdct=False, fastupsample=True)
        np.testing.assert_array_equal(ours, theirs)
    for ours, file in zip(Decoded(FILES, decoder(1)).images(), FILES, strict=True):
        np.testing.assert_array_equal(ours, simplejpeg.decode_jpeg(file.tobytes(), "GRAY", fastdct=False))


@pytest.mark.parametrize(
    "factors", [[(1, 2), (1, 1), (1, 1)], [(4, 1), (1, 1), (1, 1)], [(2, 2), (2, 1), (1, 2)]], ids=str
)
def test_any_sampling(factors: list[tuple[int, int]]) -> None:
    size = 45, 70
    down, across = grid_of(size, factors)
    shape = down * across, len(blocks_of(factors)), 64
    coefficients = np.where(RNG.random(shape) < 0.2, RNG.integers(-9, 10, shape), 0).astype(np.int16)
    file = write_jpeg(coefficients, size, factors, np.full((3, 64), 5), 3)
    (ours,) = Decoded([file], decoder()).images()
    np.testing.assert_array_equal(ours, by_pillow(file))


def test_windows() -> None:
    windows = [(3, 5, 20, 30), (0, 0, 33, 47), (63, 0, 1, 30), (0, 0, 1, 1), (17, 3, 30, 9), (40, 50, 50, 60)]
    found = Decoded(FILES, decoder(), windows).images()
    for ours, file, (top, left, height, width) in zip(found, FILES, windows, strict=True):
        np.testing.assert_array_equal(ours, by_pillow(file)[top : top + height, left : left + width])


def test_other_kinds_are_not_taken() -> None:
    ycbcr = encoded(noise(40, 60))
    fractions = write_jpeg(np.zeros((4, 14, 64), np.int16), (20, 40), [(3, 2), (2, 2), (2, 2)], np.ones((3, 64)))
    files = [
        ycbcr,
        encoded(noise(40, 60), progressive=True),
        encoded(noise(40, 60), keep_rgb=True),
        ycbcr[: ycbcr.size // 3],
        fractions,
    ]
    decoded = Decoded(files, decoder())
    assert decoded.taken[0]
    assert not any(decoded.taken[k] for k in (1, 2, 4))
    ours, *others = decoded.images()
    np.testing.assert_array_equal(ours, by_pillow(ycbcr))
    assert others == [None] * 4


def test_a_file_whose_header_says_something_else_is_not_taken() -> None:
    own = decoder()
    assert own.begin_reading(EncodedFiles(FILES[:1]), np.array([(40, 60)])).wait().taken.all()
    assert not own.begin_reading(EncodedFiles(FILES[:1]), np.array([(60, 40)])).wait().taken.any()


def test_damaged_images_are_left_alone() -> None:
    noisy, damaged = damaged_noise()
    ours, second, third = Decoded([noisy, damaged, FILES[0]], decoder()).images()
    np.testing.assert_array_equal(ours, by_pillow(noisy))
    assert second is None
    np.testing.assert_array_equal(third, by_pillow(FILES[0]))


def test_skips_files_on_which_decoders_disagree() -> None:
    """With large quantizers, sums may exceed 16 bits, and then decoders differ. The GPU's decoder skips such files."""
    black_and_white = np.where(RNG.integers(0, 2, (48, 64, 1)) > 0, np.uint8(255), np.uint8(0)).repeat(3, 2)
    file = encoded(black_and_white, quality=100).copy()
    for place in np.flatnonzero((file[:-1] == 0xFF) & (file[1:] == 0xDB)).tolist():
        length = int(file[place + 2]) << 8 | int(file[place + 3])
        for start in range(place + 4, place + 2 + length, 65):
            file[start + 1 : start + 65] = 40
    assert Decoded([file, FILES[0]], decoder()).images()[0] is None


@pytest.mark.parametrize("at_once", [1, 20_000, 1 << 30])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_parts_and_threads(at_once: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpeg_gpu, "_COEFFICIENT_BYTES_PER_PART", at_once)
    monkeypatch.setattr(jpeg_gpu, "_SAMPLE_BYTES_PER_PART", at_once // 3)
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_THREAD", 1000)
    batches = [Decoded(FILES[k:] + FILES[:k], decoder(threads=threads)) for k in range(4)]
    for k, batch in enumerate(batches):
        for ours, file in zip(batch.images(), FILES[k:] + FILES[:k], strict=True):
            np.testing.assert_array_equal(ours, by_pillow(file))


def test_one_image_after_the_other_where_there_is_no_memory_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = sys.modules["cupy"].cuda
    alloc = cuda.alloc

    def limited(size: int) -> Any:
        if size > 60_000:
            raise MemoryError
        return alloc(size)

    files = [*FILES, encoded(np.zeros((160, 160, 3), np.uint8)), FILES[0]]
    with monkeypatch.context() as context:
        context.setattr(cuda, "alloc", limited)
        batch = Decoded(files, decoder())
    *found, large, last = batch.images()
    assert large is None
    for ours, file in zip([*found, last], [*FILES, FILES[0]], strict=True):
        np.testing.assert_array_equal(ours, by_pillow(file))


def test_nothing_is_decoded_where_there_is_no_memory_for_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_size: int) -> Any:
        raise MemoryError

    with monkeypatch.context() as context:
        context.setattr(sys.modules["cupy"].cuda, "alloc", none)
        batch = Decoded(FILES, decoder())
    assert batch.images() == [None] * len(FILES)


def test_memory_of_batches_that_nobody_waits_for_is_given_back() -> None:
    held = staging()
    for _ in range(4):
        Decoded(FILES, decoder())
        gc.collect()
    assert sum(map(len, held._free.values())) + len(held._busy) <= 3


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> JpegDecoder:
    """Return a decoder that uses threads for gathering and launches even if a batch is small."""
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_THREAD", 1000)
    return decoder(threads=3)


def test_a_batch_is_decoded_while_python_computes(shared: JpegDecoder) -> None:
    batch = Decoded(FILES, shared)
    deadline = time.monotonic() + 60
    while not batch.batch.is_done and time.monotonic() < deadline:
        pass
    assert batch.batch.is_done
    for ours, file in zip(batch.images(), FILES, strict=True):
        np.testing.assert_array_equal(ours, by_pillow(file))


def test_a_batch_is_launched_before_the_next_is_begun(shared: JpegDecoder) -> None:
    stream = sys.modules["cupy"].cuda.Stream()
    first = Decoded(FILES, shared, stream=stream)
    second = Decoded(FILES[:3], shared, stream=stream)
    assert first.batch.work.is_done
    for batch in (second, first):
        for ours, file in zip(batch.images(), FILES, strict=False):
            np.testing.assert_array_equal(ours, by_pillow(file))


@pytest.fixture
def allocated(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[object]]:
    """Return a list that gets weak references to all GPU allocations during the test."""
    made: list[weakref.ref[object]] = []
    cuda = sys.modules["cupy"].cuda
    alloc = cuda.alloc

    def noted(size: int) -> Any:
        memory = alloc(size)
        made.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr(cuda, "alloc", noted)
    return made


def test_memory_is_kept_until_all_is_launched(shared: JpegDecoder, allocated: list[weakref.ref[object]]) -> None:
    # Block the decoder's threads with a semaphore, so that they do not launch anything yet.
    library, semaphore = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.sem_init(semaphore, 0, 0)
    wait = ctypes.cast(library.sem_wait, ctypes.c_void_p).value
    assert wait is not None
    shared.crew.submit(Job(wait, ctypes.addressof(semaphore), semaphore, len(shared.crew)))
    batch = Decoded(FILES, shared)
    assert not batch.batch.is_done
    # There are two allocations: for the data and descriptors, and for intermediate results; the targets belong to the test.
    assert [one() is not None for one in allocated] == [True] * 2
    for _ in range(len(shared.crew)):
        library.sem_post(semaphore)
    batch.batch.work.wait()
    assert not any(one() is not None for one in allocated)
    assert all(image is not None for image in batch.images())


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Return a list that gets a pair of streams whenever one waits for the other; also make even small data be copied on a separate
    stream.
    """
    told: list[tuple[Any, Any]] = []
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_STREAM", 1)
    monkeypatch.setattr(jpeg_gpu, "follow", lambda stream, other, _event: told.append((stream, other)))
    return told


def test_data_copied_on_another_stream_are_kept_until_the_gpu_is_done(
    allocated: list[weakref.ref[object]], joined: list[tuple[Any, Any]]
) -> None:
    batch = Decoded(FILES, decoder())
    batch.batch.work.wait()
    assert [one() is not None for one in allocated] == [True, False]
    for ours, file in zip(batch.images(), FILES, strict=True):
        np.testing.assert_array_equal(ours, by_pillow(file))
    assert allocated[0]() is None
    assert not joined


def test_the_next_copy_follows_a_batch_that_nobody_waits_for(
    allocated: list[weakref.ref[object]], joined: list[tuple[Any, Any]]
) -> None:
    own, stream = decoder(), sys.modules["cupy"].cuda.Stream()
    Decoded(FILES, own, stream=stream)
    gc.collect()
    assert allocated[0]() is None
    assert joined == [(own.copying, stream)]


def test_an_error_is_that_of_its_own_batch(shared: JpegDecoder) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such kernel")

    batches = [Decoded(FILES, shared)]
    with pytest.MonkeyPatch.context() as context:
        context.setattr(jpeg_gpu, "launch_decoding", fail)
        with pytest.raises(RuntimeError, match="no such kernel"):
            Decoded(FILES, shared)
    batches.append(Decoded(FILES, shared))
    for batch in batches:
        for ours, file in zip(batch.images(), FILES, strict=True):
            np.testing.assert_array_equal(ours, by_pillow(file))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_launch_that_fails_is_told_where_its_batch_is_waited_for(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_THREAD", 1000)
    own, cupy = decoder(threads=threads), sys.modules["cupy"]
    before = Decoded(FILES, own)
    before.batch.work.wait()
    with pytest.MonkeyPatch.context() as context:
        kernel = jpeg_pixels.SOURCE.kernel("transform_blocks")
        # The launch fails, as it asks for more shared memory than the kernel may use.
        context.setattr(kernel, "max_dynamic_shared_size_bytes", -1)
        broken = Decoded(FILES, own)
        broken.batch.work.wait()
    after = Decoded(FILES, own)
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="error 1"):
        broken.batch.wait()
    for batch in (before, after):
        for ours, file in zip(batch.images(), FILES, strict=True):
            np.testing.assert_array_equal(ours, by_pillow(file))


def gathering_threads() -> set[str]:
    """Return the ids of this process's threads that gather data."""
    tasks = Path("/proc/self/task").iterdir()
    return {task.name for task in tasks if (task / "comm").read_text().strip() == "penstock-jpegs"}


def test_threads_end_with_their_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpeg_gpu, "_MIN_BYTES_PER_THREAD", 1000)
    gc.collect()
    others = gathering_threads()
    own = decoder(threads=3)
    batch = Decoded(FILES, own)
    work = batch.batch.work
    assert len(gathering_threads() - others) == len(own.crew) == 2
    # Nothing waits for this batch, but it is launched nevertheless.
    del batch, own
    gc.collect()
    assert work.is_done
    assert gathering_threads() <= others


# -- images on white -----------------------------------------------------------------------------------------------------


def test_images_on_white(monkeypatch: pytest.MonkeyPatch) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    _, damaged = damaged_noise()
    settings: list[dict[str, Any]] = [{}, {"subsampling": 0}, {"progressive": True}, {"exif": exif}, {}, {"quality": 3}]
    files = [encoded(noise(200 + 3 * k, 301 - k), **own) for k, own in enumerate(settings)]
    files += [damaged, encoded(noise(30, 20)[..., 1])]
    made: list[int] = []
    launch_decoding = jpeg_gpu.launch_decoding

    def counted(launches: LaunchList, kernels: Kernels, scans: JpegScans, *given: Any) -> None:
        made.append(len(scans))
        launch_decoding(launches, kernels, scans, *given)

    monkeypatch.setattr(jpeg_gpu, "launch_decoding", counted)

    def decoded(device: str, **how: Any) -> list[np.ndarray]:
        @pipeline_def(batch_size=len(files), num_threads=2, device_id=0, prefetch_queue_depth=1)
        def pipeline() -> Any:
            data = fn.external_source(name="images", dtype=types.UINT8, ndim=1)
            return fn.decoders.on_white(data, device=device, **how)

        running = pipeline()
        (images,) = running.run(images=files)
        running.close()
        return [np.array(image) for image in images.as_cpu()]

    for ours, theirs in zip(decoded("mixed"), decoded("cpu"), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert made == [6]
    for ours, theirs in zip(decoded("mixed", use_fast_idct=True), decoded("cpu", use_fast_idct=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert made == [6]
