"""Dynamic mode compared with pipelines of the same operators, in alternating rounds in one process.

    python tests/benchmarks/dynamic.py [--json FILE]

Twenty small operators on a batch of 32 are called one by one, compared with a pipeline that computes each batch on request; and in a
captured loop, compared with a pipeline that prefetches. One resize of a 1080p image is compared with its kernel alone. A figure is
the processor time of all threads for one step, the median of the rounds. Everything runs with one thread.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from turns import cpu_ms, headline, in_turns, keep

from penstock import Pipeline, dynamic, fn, types
from penstock.schema import operator_class
from penstock.tensors import TensorListCPU

BATCH = 32


def twenty(face: Any, images: Any) -> Any:
    """Apply twenty small operators of ``face``, which is `fn` or dynamic mode, to images; return the result."""
    flipped = face.flip(images, horizontal=1)
    padded = face.pad(face.crop(flipped, crop=(7, 7)), axes=[0], shape=[9])
    window = face.slice(padded, start=[1, 1], shape=[6, 6], axes=[0, 1])
    erased = face.erase(window, anchor=[2.0, 2.0], shape=[4.0, 4.0], axes=[0, 1])
    turned = face.transpose(erased, perm=[1, 0, 2], transpose_layout=False)
    normal = face.normalize(face.cast(turned, dtype=types.FLOAT))
    cropped = face.crop(face.flip(normal, vertical=1), crop=(5, 5))
    squeezed = face.squeeze(face.expand_dims(cropped, axes=[0]), axes=[0])
    means = face.reshape(face.reductions.mean(squeezed, axes=[0]), shape=[-1])
    stacked = face.stack(means, means)
    rows = face.pad(face.cat(stacked, stacked, axis=0), axes=[0], shape=[8])
    return face.reductions.sum(face.reductions.max(face.transpose(rows, perm=[1, 0]), axes=[1]), axes=[0])


def pipeline(data: TensorListCPU, work: Any, **settings: Any) -> Pipeline:
    made = Pipeline(len(data), 1, None, **settings)
    with made:
        source = fn.external_source(lambda: data, layout="HWC", no_copy=True)
        made.set_outputs(source, work(fn, source))
    made.build()
    return made


def steps(rounds: int, seconds: float) -> dict[str, float]:
    """Return the milliseconds for a step of twenty operators, by candidate."""
    rng = np.random.default_rng(0)
    data = TensorListCPU.of_samples([rng.integers(0, 255, (8, 8, 3), np.uint8) for _ in range(BATCH)], "HWC")
    batch = dynamic.as_batch(data)
    at_once = pipeline(data, twenty, exec_pipelined=False, exec_async=False)
    ahead = pipeline(data, twenty)
    loop = dynamic.ExternalSource(lambda: batch).captured(batch_size=BATCH)
    candidates = {
        "pipeline, on request": at_once.run,
        "eager": lambda: twenty(dynamic, batch).evaluate(),
        "pipeline, prefetching": ahead.run,
        "captured": lambda: twenty(dynamic, next(loop)).storage,
    }
    return in_turns(candidates, cpu_ms, rounds, seconds)


def resize(rounds: int) -> dict[str, float]:
    """Return the milliseconds for one resize of a 1080p image, and for its kernel alone."""
    image = dynamic.as_tensor(np.random.default_rng(0).integers(0, 255, (1080, 1920, 3), np.uint8), layout="HWC")
    kind = operator_class("Resize")
    compute, inside = kind.compute, [0.0]

    def timed(self: Any, sample: Any) -> None:
        begin = time.process_time()
        compute(self, sample)
        inside[0] += time.process_time() - begin

    kind.compute = timed  # type: ignore[method-assign]
    whole, kernel = [], []
    for _ in range(rounds):
        inside[0], begin = 0.0, time.process_time()
        dynamic.resize(image, size=[224, 224])
        whole.append(time.process_time() - begin - inside[0])
        kernel.append(inside[0])
    kind.compute = compute  # type: ignore[method-assign]
    return {"resize: kernel": 1e3 * float(np.median(kernel)), "resize: above it": 1e3 * float(np.median(whole))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    dynamic.set_num_threads(1)
    figures = steps(options.rounds, options.seconds) | resize(20 * options.rounds)
    figures["eager / pipeline"] = figures["eager"] / figures["pipeline, on request"]
    figures["captured / pipeline"] = figures["captured"] / figures["pipeline, prefetching"]
    table = Table("", "ms", title=headline())
    for name, figure in figures.items():
        table.add_row(name, f"{figure:.3f}")
    Console().print(table)
    keep("dynamic", [figures], options.json)


if __name__ == "__main__":
    main()
