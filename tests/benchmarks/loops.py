"""The cost of Python around operators, in Penstock and in DALI: building, empty runs, external sources.

    python tests/benchmarks/loops.py [--json FILE]

Needs DALI in the same environment (`make bench` makes one). A figure is the time, in milliseconds, of one build or one run: the
median of interleaved rounds. Sources run two batches ahead of the consumer, as in a training loop.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, prepared
from turns import headline, in_turns, keep, wall_ms

OPERATORS = 20
BATCH = 16
WORKERS = 2
SMALL, LARGE = (32, 32, 3), (1080, 1920, 3)


@dataclass
class Loop:
    """One row of the table.

    Attributes:
        name: the row's name.
        make: a function that takes a module and returns the function to run repeatedly.
        samples: the number of samples in each run; 0: the row does not run batches.
    """

    name: str
    make: Callable[[Any], Callable[[], Any]]
    samples: int = 0


def building(module: Any) -> Callable[[], Any]:
    """Return a function that defines and builds a pipeline of many operators."""

    @module.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        image = module.fn.external_source(name="image", layout="HWC")
        for number in range(OPERATORS // 4):
            image = module.fn.resize(image, size=(64 + number, 64))
            image = module.fn.crop(image, crop=(60, 60))
            image = module.fn.brightness_contrast(image, brightness=1.1)
            image = module.fn.flip(image)
        return image

    def build() -> None:
        pipeline = define()
        pipeline.build()

    return build


def empty(module: Any) -> Callable[[], Any]:
    return prepared(module, lambda m, data: data, [[np.zeros(3, np.float32)]], 1, gpu=False)


def per_sample(shape: tuple[int, ...], parallel: bool) -> Callable[[Any], Callable[[], Any]]:
    """Return the ``make`` of a row whose source returns one sample at a time, in this process or in worker processes."""
    made = np.random.default_rng(0).integers(0, 255, (BATCH, *shape), np.uint8)

    def source(info: Any) -> np.ndarray:
        return made[info.idx_in_batch]

    def make(module: Any) -> Callable[[], Any]:
        @module.pipeline_def(
            batch_size=BATCH, num_threads=2, device_id=None, py_num_workers=WORKERS, py_start_method="fork"
        )
        def define() -> Any:
            return module.fn.external_source(source, batch=False, parallel=parallel)

        pipeline = define()
        pipeline.build()
        return pipeline.run

    return make


def loops() -> list[Loop]:
    """Return all rows."""
    return [
        Loop(f"building a pipeline of {OPERATORS} operators", building),
        Loop("an empty run at batch 1", empty, 1),
        Loop(f"a source of small samples, one by one; batch {BATCH}", per_sample(SMALL, False), BATCH),
        Loop(f"a source of 1080p samples, one by one; batch {BATCH}", per_sample(LARGE, False), BATCH),
        Loop(f"a parallel source of small samples, {WORKERS} workers; batch {BATCH}", per_sample(SMALL, True), BATCH),
        Loop(f"a parallel source of 1080p samples, {WORKERS} workers; batch {BATCH}", per_sample(LARGE, True), BATCH),
    ]


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round")
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=130)
    console.print(headline(), highlight=False)
    table = Table("what", "DALI, ms", "Penstock, ms", "DALI / Penstock", "Penstock, samples/s", title="time for each")
    kept = []
    for loop in loops():
        if options.filter not in loop.name:
            continue
        candidates = {name: loop.make(module) for name, module in MODULES.items()}
        ms = in_turns(candidates, wall_ms, options.rounds, options.seconds)
        kept.append({"work": loop.name, "samples": loop.samples, "ms": ms})
        rate = f"{loop.samples / ms['Penstock'] * 1e3:.0f}" if loop.samples else ""
        table.add_row(
            loop.name, f"{ms['DALI']:.3f}", f"{ms['Penstock']:.3f}", f"{ms['DALI'] / ms['Penstock']:.2f}", rate
        )
    console.print(table)
    keep("loops", kept, options.json)


if __name__ == "__main__":
    main()
