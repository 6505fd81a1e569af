"""Pipelines of Penstock and of real DALI on CPU, side by side in one process, in turns.

    python tests/benchmarks/pipeline/bench.py --images FOLDER

Needs DALI in the same environment (`make bench` makes one). Each figure is CPU time, the median of several rounds; DALI's
queue is empty when a round begins and ends, so that neither works on the other's clock.
"""

from __future__ import annotations

import argparse
import datetime
import io
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.types
from PIL import Image
from rich.console import Console
from rich.table import Table

import penstock

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
Work = Callable[[Any], Any]


def photographs(folder: Path | None, count: int) -> list[np.ndarray]:
    """Encoded JPEG images: from a folder, or made up."""
    files = sorted(folder.glob("*.jp*g")) if folder is not None and folder.is_dir() else []
    if files:
        return [np.frombuffer(files[i % len(files)].read_bytes(), np.uint8) for i in range(count)]
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        small = Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8))
        buffer = io.BytesIO()
        small.resize((1280, 853), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
        made.append(np.frombuffer(buffer.getvalue(), np.uint8))
    return made


def imagenet(m: Any) -> Any:
    image = m.fn.decoders.image(m.fn.external_source(name="x"))
    image = m.fn.resize(image, resize_shorter=256)
    return m.fn.crop_mirror_normalize(image, crop=(224, 224), mean=MEAN, std=STD)


def plain_resize(m: Any) -> Any:
    image = m.fn.decoders.image(m.fn.external_source(name="x"))
    return m.fn.crop_mirror_normalize(m.fn.resize(image, size=(224, 224)), mean=MEAN, std=STD)


def training(m: Any) -> Any:
    image = m.fn.decoders.image_random_crop(m.fn.external_source(name="x"), seed=1)
    image = m.fn.resize(image, size=(224, 224))
    return m.fn.crop_mirror_normalize(image, mirror=m.fn.random.coin_flip(seed=2), mean=MEAN, std=STD)


def from_pixels(m: Any) -> Any:
    image = m.fn.external_source(name="x", layout="HWC", no_copy=True)
    return m.fn.crop_mirror_normalize(m.fn.resize(image, size=(224, 224)), mean=MEAN, std=STD)


def nothing(m: Any) -> Any:
    return m.fn.external_source(name="x", no_copy=True)


def prepared(module: Any, work: Work, data: list[np.ndarray], threads: int) -> Callable[[], None]:
    """A function that runs one batch and leaves nothing behind."""

    @module.pipeline_def(
        batch_size=len(data),
        num_threads=threads,
        device_id=None,
        prefetch_queue_depth=1,
        exec_async=False,
        exec_pipelined=False,
    )
    def define() -> Any:
        return work(module)

    pipeline = define()
    pipeline.build()
    pipeline.run(x=data)
    return lambda: pipeline.run(x=data)


def compare(work: Work, data: list[np.ndarray], threads: int, rounds: int, seconds: float) -> tuple[float, float]:
    """CPU milliseconds for each sample, of DALI and of Penstock."""
    runs = [prepared(module, work, data, threads) for module in (nvidia.dali, penstock)]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for run, measured in zip(runs, times):
            count, begin, wall = 0, time.process_time(), time.perf_counter()
            while time.perf_counter() - wall < seconds:
                run()
                count += 1
            measured.append((time.process_time() - begin) / count / len(data) * 1e3)
    theirs, ours = (statistics.median(measured) for measured in times)
    return theirs, ours


def main() -> None:
    """Runs all works and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/data/images/jpeg"), help="a folder of JPEG files"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    encoded = photographs(arguments.images, 32)
    pixels = [np.random.default_rng(0).integers(0, 255, (1080, 1920, 3), np.uint8)] * 8
    works: list[tuple[str, Work, list[np.ndarray]]] = [
        ("decode, resize shorter 256, crop 224, normalize; batch 32", imagenet, encoded),
        ("the same, batch 1", imagenet, encoded[:1]),
        ("decode, resize 224x224, normalize", plain_resize, encoded),
        ("decode a random crop, resize, flip, normalize", training, encoded),
        ("1080p pixels, resize 224x224, normalize", from_pixels, pixels),
        ("nothing, batch 1", nothing, [np.zeros(3, np.float32)]),
    ]
    console = Console(width=120)
    versions = f"DALI {nvidia.dali.__version__}, Penstock {penstock.__version__}, numpy {np.__version__}"
    console.print(
        f"{datetime.date.today()}, {platform.processor() or platform.machine()}, {arguments.threads} threads, {versions}"
    )
    table = Table("work", "DALI, CPU ms", "Penstock, CPU ms", "DALI / Penstock", title="CPU time for each sample")
    for name, work, data in works:
        theirs, ours = compare(work, data, arguments.threads, arguments.rounds, arguments.seconds)
        table.add_row(name, f"{theirs:.3f}", f"{ours:.3f}", f"{theirs / ours:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
