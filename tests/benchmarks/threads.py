"""Presets with two threads compared with one, in interleaved rounds in one process.

    make bench-threads [ARGS="--json FILE --photographs FOLDER"]

What is measured is the way from files to tensors, as in `bench-presets`, in batches of 48 photographs. Figures are the time per image and
the processor time of all threads, each the minimum of the rounds. Other work on the machine slows the second thread; `chrt -r 10`
prevents that.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from presets import CONFIGURATIONS, FAMILIES, SMALL, photographs
from rich.console import Console
from rich.table import Table
from turns import headline, keep

from penstock import Pipeline
from penstock.presets import preset

BATCH = 48
DIFFERENT = 4
COUNTS = (1, 2)


def measured(name: str, arrays: list[np.ndarray], rounds: int) -> dict[str, Any]:
    """Return the time and the processor time per image, by the number of threads."""
    pipelines = [preset(CONFIGURATIONS[name], batch_size=BATCH, num_threads=count) for count in COUNTS]
    times: dict[int, list[tuple[float, float]]] = {count: [] for count in COUNTS}
    for _ in range(rounds):
        for count, pipeline in zip(COUNTS, pipelines):
            times[count].append(_run(pipeline, arrays))
    for pipeline in pipelines:
        pipeline.close()
    least = {count: [min(each) for each in zip(*times[count])] for count in COUNTS}
    wall, cpu = ({str(count): least[count][k] for count in COUNTS} for k in (0, 1))
    return {"work": name, "ms": wall, "cpu_ms": cpu}


def _run(pipeline: Pipeline, arrays: list[np.ndarray]) -> tuple[float, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    pipeline.run(images=arrays)
    ends = time.perf_counter() - begin, time.process_time() - cpu
    return ends[0] / BATCH * 1e3, ends[1] / BATCH * 1e3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="configurations whose name contains this")
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    files = photographs(options.photographs, DIFFERENT)
    arrays = [np.frombuffer(files[k % len(files)], np.uint8) for k in range(BATCH)]
    names = [name for name in CONFIGURATIONS if name not in (*SMALL, *FAMILIES) and options.only in name]
    rows = [measured(name, arrays, options.rounds) for name in names]
    keep("threads", rows, options.json)
    table = Table("preset", "one, ms", "two", "times as fast", "processor time, two to one")
    for row in rows:
        (one, two), (alone, together) = row["ms"].values(), row["cpu_ms"].values()
        table.add_row(row["work"], f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}", f"{together / alone:.2f}")
    console = Console(width=100)
    console.print(headline())
    console.print(table)


if __name__ == "__main__":
    main()
