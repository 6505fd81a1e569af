"""How well one process uses several cores: images a second on 1, 4, 8 and 16 cores.

    python tests/benchmarks/cores.py [--cores 1 4 16] [--only Rand] [--rounds 3] [--json FILE]

For each number of cores, a process is bound to these cores and has one thread for each; the processes take turns, and a figure is the
median of the rounds. Next to each figure is its ratio to linear scaling, that is, to the figure of one core times the number of cores.
The last column is for one process per core, each with one thread: it shows how far memory, clock rates and shared cores let the machine
scale. Photographs differ in size, and each batch is another random selection, so that no batch repeats an earlier one.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BATCH, STORED = 64, 192
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def recipes() -> dict[str, Callable[[], Any]]:
    """Return pipelines by name; their input is encoded photographs, from an external source named ``data``."""
    from penstock import fn, types
    from penstock.auto_aug import rand_augment

    def data() -> Any:
        return fn.external_source(name="data")

    def normalized(images: Any) -> Any:
        return fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=fn.random.coin_flip())

    def a() -> Any:
        images = fn.resize(fn.decoders.image(data()), resize_shorter=256.0)
        return fn.crop_mirror_normalize(images, crop=(224, 224), mean=MEAN, std=STD)

    def random_crop() -> Any:
        return normalized(fn.resize(fn.decoders.image_random_crop(data()), size=(224, 224)))

    def simclr() -> Any:
        images = fn.resize(fn.decoders.image_random_crop(data(), random_area=[0.2, 1.0]), size=(224, 224))
        strength = {name: fn.random.uniform(range=[0.6, 1.4]) for name in ("brightness", "contrast", "saturation")}
        images = fn.color_twist(images, hue=fn.random.uniform(range=[-20.0, 20.0]), **strength)
        return normalized(fn.gaussian_blur(images, sigma=fn.random.uniform(range=[0.1, 2.0])))

    def augmented() -> Any:
        images = fn.resize(fn.decoders.image(data()), size=(224, 224))
        return normalized(rand_augment.rand_augment(images, n=2, m=9, shape=(224, 224), monotonic_mag=True))

    def letterbox() -> Any:
        images = fn.resize(fn.decoders.image(data()), size=(640, 640), mode="not_larger")
        images = fn.crop(images, crop=(640, 640), out_of_bounds_policy="pad", fill_values=114)
        return fn.cast(fn.transpose(images, perm=[2, 0, 1]), dtype=types.FLOAT) / 255.0

    return {
        "A": a,
        "C: random crop": random_crop,
        "SimCLR": simclr,
        "RandAugment": augmented,
        "letterbox 640": letterbox,
    }


def images_a_second(name: str, threads: int, seconds: float) -> float:
    """Run a recipe in this process; return the images per second."""
    from served_gpu import make_photographs, photographs

    import penstock

    make_photographs(0, STORED)
    drawn = random.Random(threads)
    source = (drawn.choices(photographs, k=BATCH) for _ in itertools.count())
    pipeline = penstock.pipeline_def(recipes()[name], enable_conditionals=True)(
        batch_size=BATCH, num_threads=threads, device_id=None, seed=1, prefetch_queue_depth=2
    )

    def feed() -> None:
        import numpy as np

        pipeline.feed_input("data", [np.frombuffer(photograph, np.uint8) for photograph in next(source)])

    pipeline.build()
    for _ in range(2):
        feed()
        pipeline.schedule_run()
    for _ in range(4):
        _next(pipeline, feed)
    batches, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        _next(pipeline, feed)
        batches += 1
    return BATCH * batches / (time.perf_counter() - begun)


def _next(pipeline: Any, feed: Callable[[], None]) -> None:
    feed()
    pipeline.share_outputs()
    pipeline.release_outputs()
    pipeline.schedule_run()


def measured(name: str, cores: Sequence[int], seconds: float, processes: int = 1) -> float:
    """Return the images per second of one process on these cores; or of several processes, one on each core, at the same time."""
    shares = [cores] if processes == 1 else [[core] for core in cores]
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "--here", name, "--cores", str(len(share)), "--seconds", str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=functools.partial(os.sched_setaffinity, 0, share),
        )
        for share in shares
    ]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit(f"a process that ran {name} failed")
    return sum(float(output.split()[-1]) for output in outputs)


def main() -> None:
    """Measure the recipes with each number of cores, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    available = len(os.sched_getaffinity(0))
    counts = [count for count in (1, 4, 8, 16) if count <= available]
    parser.add_argument("--cores", type=int, nargs="+", default=counts)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="recipes whose name matches")
    parser.add_argument("--here", help="the recipe to run in this process")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    if options.here:
        print(images_a_second(options.here, options.cores[0], options.seconds))
        return
    found = []
    cores = sorted(os.sched_getaffinity(0))
    print(f"{'recipe':<16}" + "".join(f"{count:>8} cores" for count in options.cores) + "    processes", flush=True)
    for name in recipes():
        if not re.search(options.only, name):
            continue
        rounds = [
            [
                *(measured(name, cores[:count], options.seconds) for count in options.cores),
                measured(name, cores[: options.cores[-1]], options.seconds, options.cores[-1]),
            ]
            for _ in range(options.rounds)
        ]
        rates = [statistics.median(each) for each in zip(*rounds)]
        counts = [*options.cores, options.cores[-1]]
        linear = [rate / rates[0] * counts[0] / count for rate, count in zip(rates, counts)]
        print(f"{name:<16}" + "".join(f"{rate:9.0f} {share:.2f}" for rate, share in zip(rates, linear)), flush=True)
        one = dict(zip(map(str, options.cores), rates))
        found.append({"recipe": name, "images/s in one process": one, "images/s in as many processes": rates[-1]})
    if options.json:
        options.json.write_text(json.dumps({"benchmark": "cores", "batch": BATCH, "rows": found}, indent=1))


if __name__ == "__main__":
    main()
