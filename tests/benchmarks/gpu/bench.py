"""GPU operators: time per batch, and memory bandwidth relative to a copy.

    PYTHONPATH=backend python tests/benchmarks/gpu/bench.py [--filter resize] [--json results.json]

Each row is a pipeline whose input is on the GPU, timed in a loop as a consumer would run it. *host* is the time that the
pipeline's thread takes to launch all of a batch's work; *GPU* is the time from the end of a batch to the end of the next one, measured
with events while the GPU is kept busy; the longer of the two times is what a consumer sees. *bandwidth* counts the bytes of inputs and
outputs once, as a fraction of the bandwidth that a copy on this device reaches.

Batches of encoded photographs are decoded, too, if nvImageCodec is installed and there are photographs in `../shared/data`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from penstock import Pipeline, fn, pipeline_def, types

PHOTOGRAPHS = Path(__file__).resolve().parents[4] / "shared" / "data" / "images" / "jpeg"
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
WARM_UP, ROUNDS, BATCHES = 5, 5, 20
Define = Callable[[Any], Any]


@dataclass
class Case:
    """A row: a pipeline to be timed.

    Attributes:
        name: the row's name.
        shape: each image's shape.
        batch_size: the number of images in a batch.
        define: a function from the node of the images to the nodes of the outputs.
        dtype: the images' dtype.
    """

    name: str
    shape: tuple[int, ...]
    batch_size: int
    define: Define
    dtype: Any = np.uint8


@dataclass
class Timing:
    """Measured times, in milliseconds for a batch."""

    name: str
    batch_size: int
    host_ms: float
    gpu_ms: float
    gigabytes: float

    @property
    def images_per_second(self) -> float:
        return self.batch_size / max(self.host_ms, self.gpu_ms) * 1e3


def normalized(images: Any) -> Any:
    """Apply the steps that precede a classifier: return normalized images."""
    return fn.crop_mirror_normalize(
        images, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, output_layout="CHW", dtype=types.FLOAT
    )


def cases() -> Iterator[Case]:
    """Yield the rows: fused operators and single ones."""
    sizes = {"480x640": (480, 640, 3), "1080x1920": (1080, 1920, 3), "2160x3840": (2160, 3840, 3)}
    for size, shape in sizes.items():
        for batch in (1, 64):
            yield Case(
                f"resize 224, normalize, from {size}", shape, batch, lambda x: normalized(fn.resize(x, size=224))
            )
    yield Case(
        "resize shorter 256, crop 224, normalize, from 853x1280",
        (853, 1280, 3),
        64,
        lambda x: fn.crop_mirror_normalize(
            fn.resize(x, resize_shorter=256.0), crop=(224, 224), mean=MEAN, std=STD, output_layout="CHW"
        ),
    )
    hd = sizes["1080x1920"]
    single: dict[str, Define] = {
        "resize 224": lambda x: fn.resize(x, size=224),
        "resize 224, lanczos": lambda x: fn.resize(x, size=224, interp_type=types.INTERP_LANCZOS3),
        "resize 224, nearest": lambda x: fn.resize(x, size=224, interp_type=types.INTERP_NN),
        "resize to double": lambda x: fn.resize(x, size=(2160, 3840)),
        "crop_mirror_normalize": normalized,
        "crop 224": lambda x: fn.crop(x, crop=(224, 224)),
        "flip": lambda x: fn.flip(x),
        "transpose": lambda x: fn.transpose(x, perm=[2, 0, 1]),
        "cast to float": lambda x: fn.cast(x, dtype=types.FLOAT),
        "rotate": lambda x: fn.rotate(x, angle=10.0, keep_size=True),
        "color_twist": lambda x: fn.color_twist(x, hue=10.0, saturation=1.2, contrast=1.1),
        "brightness_contrast": lambda x: fn.brightness_contrast(x, brightness=1.1),
        "color_space_conversion": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr),
        "gaussian_blur 5": lambda x: fn.gaussian_blur(x, window_size=5),
        "x * 2 + 1": lambda x: x * np.float32(2) + np.float32(1),
        "normalize": lambda x: fn.normalize(x, axes=[0, 1]),
        "reductions.mean": lambda x: fn.reductions.mean(x, axes=[0, 1]),
        "noise.gaussian": lambda x: fn.noise.gaussian(x, stddev=10.0),
        "cat": lambda x: fn.cat(x, x, axis=2),
    }
    for name, define in single.items():
        yield Case(f"{name}, 1080x1920", hd, 16, define)


def copy_bandwidth() -> float:
    """Return the number of bytes that a copy on the device reads and writes per second."""
    source = cupy.empty(1 << 30, np.uint8)
    target = cupy.empty_like(source)
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for _ in range(5):
        start.record()
        target.data.copy_from_device_async(source.data, source.nbytes, cupy.cuda.get_current_stream())
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return 2 * source.nbytes / min(times)


def built(case: Case) -> tuple[Pipeline, list[Any]]:
    """Return the pipeline, and the batch that is its input in each run."""
    rng = np.random.default_rng(0)
    images = [cupy.asarray(rng.integers(0, 255, case.shape).astype(case.dtype)) for _ in range(case.batch_size)]

    @pipeline_def(batch_size=case.batch_size, num_threads=4, device_id=0, prefetch_queue_depth=1)
    def definition() -> Any:
        source = fn.external_source(lambda: images, device="gpu", layout="HWC", no_copy=True)
        return case.define(source)

    pipeline = definition()
    pipeline.build()
    return pipeline, images


def timed(case: Case) -> Timing:
    """Run a case for several rounds after a warm-up; return the medians of the rounds."""
    pipeline, images = built(case)
    executor = pipeline.executor
    hosts, devices = [], []
    nbytes = 0
    for _ in range(WARM_UP):
        outputs = pipeline.run()
        nbytes = sum(sum(int(sample.nbytes) for sample in batch.samples) for batch in outputs)
    stream = executor.stream
    for _ in range(ROUNDS):
        stream.synchronize()
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(stream)
        began = time.perf_counter()
        for _ in range(BATCHES):
            pipeline.run()
        hosts.append((time.perf_counter() - began) / BATCHES * 1e3)
        stop.record(stream)
        stop.synchronize()
        devices.append(cupy.cuda.get_elapsed_time(start, stop) / BATCHES)
    pipeline.close()
    moved = (nbytes + sum(int(image.nbytes) for image in images)) / 1e9
    return Timing(case.name, case.batch_size, statistics.median(hosts), statistics.median(devices), moved)


def decoding(batch_size: int) -> Timing | None:
    """Return the times of the pipeline from encoded photographs to a classifier's input; None without a decoder or
    photographs.
    """
    files = sorted(PHOTOGRAPHS.glob("*.jpg")) + sorted(PHOTOGRAPHS.glob("*.jpeg"))
    if not files or importlib.util.find_spec("nvidia.nvimgcodec") is None:
        return None
    encoded = [np.fromfile(files[i % len(files)], np.uint8) for i in range(batch_size)]

    @pipeline_def(batch_size=batch_size, num_threads=8, device_id=0, prefetch_queue_depth=2)
    def definition() -> Any:
        images = fn.decoders.image(fn.external_source(lambda: encoded), device="mixed")
        return fn.crop_mirror_normalize(
            fn.resize(images, resize_shorter=256.0), crop=(224, 224), mean=MEAN, std=STD, output_layout="CHW"
        )

    pipeline = definition()
    pipeline.build()
    for _ in range(WARM_UP):
        pipeline.run()
    rounds = []
    for _ in range(ROUNDS):
        pipeline.executor.stream.synchronize()
        began = time.perf_counter()
        for _ in range(BATCHES):
            pipeline.run()
        pipeline.executor.stream.synchronize()
        rounds.append((time.perf_counter() - began) / BATCHES * 1e3)
    pipeline.close()
    median = statistics.median(rounds)
    return Timing("decode, resize shorter 256, crop 224, normalize", batch_size, median, median, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the timings")
    options = parser.parse_args()
    bandwidth = copy_bandwidth()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; a copy moves {bandwidth / 1e12:.2f} TB/s; medians of {ROUNDS} rounds of {BATCHES} batches")
    print(f"{'':58} {'batch':>5} {'host ms':>8} {'GPU ms':>8} {'img/s':>9} {'bandwidth':>9}")
    timings = []
    for case in cases():
        if options.filter in case.name:
            timings.append(show(timed(case), bandwidth))
    for batch_size in (1, 64):
        decoded = decoding(batch_size) if options.filter in "decode" else None
        if decoded is not None:
            timings.append(show(decoded, bandwidth))
    if options.json:
        rows = [asdict(timing) for timing in timings]
        options.json.write_text(json.dumps({"device": name, "copy_bytes_per_s": bandwidth, "rows": rows}, indent=1))


def show(timing: Timing, bandwidth: float) -> Timing:
    """Print a row."""
    share = timing.gigabytes * 1e9 / (timing.gpu_ms / 1e3) / bandwidth
    print(
        f"{timing.name:58} {timing.batch_size:5} {timing.host_ms:8.3f} {timing.gpu_ms:8.3f} "
        f"{timing.images_per_second:9.0f} {share:9.0%}",
        flush=True,
    )
    return timing


if __name__ == "__main__":
    main()
