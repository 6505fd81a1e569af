"""Resizing with Pillow's arithmetic compared with Penstock's default, and with Pillow, in interleaved rounds in one process.

    make bench-resizing [ARGS="--json FILE"]

Uncompressed images of 1280 x 853 pixels, one thread. A figure is processor time per image, the minimum of the rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table
from turns import Run, cpu_ms, headline, in_turns, keep

from penstock import Pipeline, fn, pipeline_def, types

COUNT = 4
SIZES = ((224, 224), (384, 384), (896, 896), (1706, 2560))
FILTERS = {"bilinear": types.INTERP_LINEAR, "bicubic": types.INTERP_CUBIC, "lanczos": types.INTERP_LANCZOS3}
OWN, WITH_PIL, PILLOW = "own", "reference='pil'", "Pillow"


@pipeline_def(batch_size=COUNT, num_threads=1, prefetch_queue_depth=1, device_id=None)
def _resizing(size: tuple[int, int], interpolation: types.DALIInterpType, reference: str) -> object:
    images = fn.external_source(name="images", dtype=types.UINT8, layout="HWC", no_copy=True)
    return fn.resize(images, size=list(size), interp_type=interpolation, antialias=True, reference=reference)


def candidates(size: tuple[int, int], name: str, images: list[np.ndarray]) -> dict[str, Run]:
    """Return functions that resize the images: Penstock with either kind of arithmetic, and Pillow."""
    runs: dict[str, Run] = {}
    for who, reference in ((OWN, "dali"), (WITH_PIL, "pil")):
        pipeline: Pipeline = _resizing(size, FILTERS[name], reference)
        runs[who] = lambda pipeline=pipeline: pipeline.run(images=images)
    pictures = [Image.fromarray(image) for image in images]
    kind = Image.Resampling[name.upper()]
    runs[PILLOW] = lambda: [picture.resize(size[::-1], kind) for picture in pictures]
    return runs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (853, 1280, 3), np.uint8) for _ in range(COUNT)]
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        for name in FILTERS:
            times = in_turns(candidates(size, name, images), cpu_ms, options.rounds, options.seconds, min)
            told = f"{name}, to {size[1]} x {size[0]}"
            rows.append({"work": told, "ms": {who: took / COUNT for who, took in times.items()}})
    keep("resizing", rows, options.json)
    table = Table("work", *(f"{who}, ms" for who in rows[0]["ms"]), "to our own", "Pillow to it")
    for row in rows:
        ms = row["ms"]
        ratios = ms[WITH_PIL] / ms[OWN], ms[PILLOW] / ms[WITH_PIL]
        table.add_row(row["work"], *(f"{took:.2f}" for took in ms.values()), *(f"{ratio:.2f}" for ratio in ratios))
    console = Console(width=100)
    console.print(headline())
    console.print(table)


if __name__ == "__main__":
    main()
