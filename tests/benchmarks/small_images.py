"""Augmentation of small images, in Penstock and in DALI, on one thread and on two; and building of long graphs.

    python tests/benchmarks/small_images.py [--json FILE]

Needs DALI in the same environment (`make bench` makes one). A figure is time, the median of interleaved rounds: microseconds per
sample, or milliseconds to define and build a graph. Each batch has other pictures than the previous one.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES
from turns import headline, in_turns, keep, wall_ms

BATCH = 64
BATCHES = 16
THREADS = (1, 2)
STEPS = (50, 200)
NORMALIZE = {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4], "output_layout": "CHW"}
Work = Callable[[Any, Any], Any]


@dataclass
class Row:
    """One row of the table.

    Attributes:
        name: the row's name.
        side: the height and width of the images, in pixels.
        work: a function from ``(module, images)`` to the output.
        channels: the number of channels of the images.
    """

    name: str
    side: int
    work: Work
    channels: int = 3


def _uniform(m: Any, low: float, high: float) -> Any:
    return m.fn.random.uniform(range=[low, high])


def _crop(m: Any, images: Any) -> Any:
    place = {"crop_pos_x": _uniform(m, 0, 1), "crop_pos_y": _uniform(m, 0, 1)}
    return m.fn.crop_mirror_normalize(images, crop=(28, 28), **place, **NORMALIZE)


def _flip(m: Any, images: Any) -> Any:
    images = m.fn.flip(images, horizontal=m.fn.random.coin_flip())
    return m.fn.crop_mirror_normalize(m.fn.brightness(images, brightness=_uniform(m, 0.6, 1.4)), **NORMALIZE)


def _resized_crop(side: int) -> Work:
    def work(m: Any, images: Any) -> Any:
        return m.fn.crop_mirror_normalize(m.fn.random_resized_crop(images, size=(side, side)), **NORMALIZE)

    return work


def _cifar(m: Any, images: Any) -> Any:
    images = m.fn.pad(images, axes=(0, 1), shape=(40, 40))
    place = {"crop_pos_x": _uniform(m, 0, 1), "crop_pos_y": _uniform(m, 0, 1)}
    mirror = m.fn.random.coin_flip()
    return m.fn.crop_mirror_normalize(images, crop=(32, 32), mirror=mirror, **place, **NORMALIZE)


def _colours(m: Any, images: Any) -> Any:
    images = m.fn.random_resized_crop(images, size=(32, 32))
    factors = {name: _uniform(m, 0.6, 1.4) for name in ("brightness", "contrast", "saturation")}
    return m.fn.crop_mirror_normalize(m.fn.color_twist(images, hue=_uniform(m, -10, 10), **factors), **NORMALIZE)


def _digits(m: Any, images: Any) -> Any:
    images = m.fn.rotate(images, angle=_uniform(m, -10, 10), keep_size=True)
    return m.fn.crop_mirror_normalize(images, mean=[33.0], std=[78.0], output_layout="CHW")


def _flips(m: Any, images: Any) -> Any:
    for number in range(24):
        images = m.fn.flip(images, horizontal=number % 2, vertical=1 - number % 2)
    return images


ROWS = [
    Row("32 px: crop at a random place, normalize", 32, _crop),
    Row("32 px: flip, brightness, normalize", 32, _flip),
    Row("32 px: random_resized_crop, normalize", 32, _resized_crop(32)),
    Row("32 px: pad, random crop, mirror, normalize", 32, _cifar),
    Row("32 px: random_resized_crop, color_twist, normalize", 32, _colours),
    Row("28 px, grey: rotate, normalize", 28, _digits, 1),
    Row("96 px: flip, brightness, normalize", 96, _flip),
    Row("160 px: random_resized_crop, normalize", 160, _resized_crop(160)),
    Row("32 px: 24 flips", 32, _flips),
]


def prepared(module: Any, row: Row, threads: int) -> Callable[[], Any]:
    """Return a function that runs one batch."""
    rng = np.random.default_rng(0)
    shape = row.side, row.side, row.channels
    batches = [[rng.integers(0, 256, shape, np.uint8) for _ in range(BATCH)] for _ in range(BATCHES)]

    def source() -> Iterator[list[np.ndarray]]:
        return itertools.cycle(batches)

    @module.pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, seed=1)
    def define() -> Any:
        return row.work(module, module.fn.external_source(source(), layout="HWC"))

    pipeline = define()
    pipeline.build()
    for _ in range(BATCHES):
        pipeline.run()
    return pipeline.run


def building(module: Any, steps: int) -> Callable[[], Any]:
    """Return a function that defines and builds a graph of arithmetic steps."""

    @module.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def define() -> Any:
        numbers = module.fn.external_source(name="numbers", dtype=module.types.FLOAT, ndim=1)
        for step in range(steps):
            numbers = numbers * 1.5 + step
        return numbers

    def build() -> None:
        define().build()

    return build


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path)
    options.add_argument("--seconds", type=float, default=0.4, help="of each round")
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    table, rows = Table("", "DALI", "Penstock", "ratio", title="microseconds a sample; milliseconds a graph"), []

    def measure(name: str, candidates: dict[str, Callable[[], Any]], scale: float) -> None:
        ms = in_turns(candidates, wall_ms, chosen.rounds, chosen.seconds)
        rows.append({"work": name, "ms": ms})
        figures = [ms[who] * scale for who in ("DALI", "Penstock")]
        table.add_row(name, *(f"{figure:.1f}" for figure in figures), f"{figures[0] / figures[1]:.2f}")

    for threads in THREADS:
        for row in ROWS:
            runs = {who: prepared(module, row, threads) for who, module in MODULES.items()}
            measure(f"{row.name}; {threads} thread{'s' * (threads > 1)}", runs, 1e3 / BATCH)
    for steps in STEPS:
        measure(f"a graph of {steps} steps", {who: building(m, steps) for who, m in MODULES.items()}, 1.0)
    Console().print(headline())
    Console().print(table)
    keep("small_images", rows, chosen.json)


if __name__ == "__main__":
    main()
