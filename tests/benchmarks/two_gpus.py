"""The speed-up of two GPUs over one, with pipeline A on each GPU in the same process, in Penstock and in DALI.

    python tests/benchmarks/two_gpus.py [--json FILE]

Needs two GPUs, and DALI in the same environment (`make bench` makes one). All batches differ. A figure is images per second; both GPUs are
served from one loop, or with a thread for each.
"""

from __future__ import annotations

import argparse
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pipelines import a
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, prepared
from turns import Run, headline, keep
from uploads import BATCH, MANY, drawn, jpegs, made


def in_one_loop(runs: Sequence[Run], seconds: float) -> float:
    """Run all pipelines in one loop; return the batches per second of all together."""
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for run in runs:
            run()
        count += len(runs)
    return count / (time.perf_counter() - begin)


def in_threads(runs: Sequence[Run], seconds: float) -> float:
    """Run each pipeline on a separate thread; return the batches per second of all together."""
    rates = [0.0] * len(runs)

    def work(number: int) -> None:
        rates[number] = in_one_loop([runs[number]], seconds)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def measured(module: Any, store: Sequence[np.ndarray], threads: int, seconds: float) -> dict[str, float]:
    """Return the images per second with one GPU and with two."""
    runs = [
        prepared(module, a(True), [drawn(store, BATCH)], threads, gpu=True, device_id=device, batch_size=BATCH)
        for device in (0, 1)
    ]
    for run in runs * 5:
        run()
    ways: dict[str, tuple[Callable[[Sequence[Run], float], float], Sequence[Run]]] = {
        "one GPU": (in_one_loop, runs[:1]),
        "two, one loop": (in_one_loop, runs),
        "two, a thread each": (in_threads, runs),
    }
    return {name: way(chosen, seconds) * BATCH for name, (way, chosen) in ways.items()}


def main() -> None:
    """Measure both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=8, help="of each pipeline")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=130)
    console.print(headline(), highlight=False)
    table = Table("", "one GPU", "two, one loop", "two, a thread each", title=f"images a second, batch {BATCH}")
    kept = []
    store = made(jpegs, MANY)
    for name, module in MODULES.items():
        rates = measured(module, store, options.threads, options.seconds)
        kept.append({"candidate": name, "images a second": rates})
        one = rates["one GPU"]
        table.add_row(name, *(f"{rate:.0f} ({rate / one:.2f})" for rate in rates.values()))
    console.print(table)
    keep("two gpus", kept, options.json)


if __name__ == "__main__":
    main()
