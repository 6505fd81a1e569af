"""Transforms of `penstock.plugin.torchvision` beside torchvision's, and resizing beside Pillow's and DALI's arithmetic.

    PYTHONPATH=backend:tests/parity python tests/benchmarks/transforms.py [--json FILE]

Needs the extra `parity`. A figure is processor time of one thread, in milliseconds, for one photograph of 1280 x 853; the
least of the interleaved rounds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from libraries import torchvision_functional
from PIL import Image
from rich.console import Console
from rich.table import Table
from turns import Run, cpu_ms, headline, in_turns, keep

WIDTH, HEIGHT = 1280, 853
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZES = ((224, 224, "bilinear"), (224, 224, "bicubic"), (336, 504, "bicubic"), (840, 1288, "bicubic"))


def photograph() -> np.ndarray:
    """Smooth colours with some noise."""
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (54, 80, 3), np.uint8))
    smooth = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), np.int16)
    return np.clip(smooth + rng.integers(-6, 7, smooth.shape), 0, 255).astype(np.uint8)


def resizing(pixels: np.ndarray) -> Mapping[str, Mapping[str, Run]]:
    """`fn.resize` with DALI's arithmetic and with Pillow's, and Pillow."""
    from penstock import fn, pipeline_def, types

    def ours(reference: str, height: int, width: int, name: str) -> Run:
        kind = types.INTERP_LINEAR if name == "bilinear" else types.INTERP_CUBIC

        @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
        def pipeline() -> Any:
            images = fn.external_source(name="images", layout="HWC", dtype=types.UINT8)
            return fn.resize(images, size=[height, width], interp_type=kind, antialias=True, reference=reference)

        made = pipeline()
        return lambda: made.run(images=[pixels])

    image = Image.fromarray(pixels)
    return {
        f"resize to {height} x {width}, {name}": {
            "dali": ours("dali", height, width, name),
            "pil": ours("pil", height, width, name),
            "Pillow": lambda size=(width, height), name=name: image.resize(size, Image.Resampling[name.upper()]),
        }
        for height, width, name in SIZES
    }


def transforms(pixels: np.ndarray) -> Mapping[str, Mapping[str, Run]]:
    """Compositions, theirs and ours."""
    torchvision_functional()
    import torch
    from torchvision.transforms import v2 as theirs

    from penstock.plugin.torchvision.transforms import v2 as ours

    def to_floats(v: Any) -> list[Any]:
        return [v.ToImage(), v.ToDtype(torch.float32, scale=True), v.Normalize(MEAN, STD)]

    makes = {
        "Resize, CenterCrop, ToTensor, Normalize": lambda v: [
            v.Resize(256),
            v.CenterCrop(224),
            v.ToTensor(),
            v.Normalize(MEAN, STD),
        ],
        "Resize, CenterCrop, ToImage, ToDtype, Normalize": lambda v: [v.Resize(256), v.CenterCrop(224), *to_floats(v)],
        "RandomResizedCrop, flip, Normalize": lambda v: [
            v.RandomResizedCrop(224),
            v.RandomHorizontalFlip(),
            *to_floats(v),
        ],
        "the same with ColorJitter": lambda v: [
            v.RandomResizedCrop(224),
            v.RandomHorizontalFlip(),
            v.ColorJitter(0.4, 0.4, 0.4, 0.1),
            *to_floats(v),
        ],
        "the same with RandAugment": lambda v: [
            v.RandomResizedCrop(224),
            v.RandomHorizontalFlip(),
            v.RandAugment(),
            *to_floats(v),
        ],
    }
    image = Image.fromarray(pixels)

    def run(module: Any, make: Any) -> Run:
        transform = module.Compose(make(module))

        def seeded() -> Any:
            # The same draws for both: thirty of them in turn.
            for seed in range(30):
                torch.manual_seed(seed)
                transform(image)

        return seeded

    return {name: {"torchvision": run(theirs, make), "ours": run(ours, make)} for name, make in makes.items()}


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pixels, rows = photograph(), []
    for measured, calls in ((resizing(pixels), 1), (transforms(pixels), 30)):
        for name, candidates in measured.items():
            times = in_turns(candidates, cpu_ms, options.rounds, 0.05, min)
            rows.append({"row": name, **{candidate: round(ms / calls, 3) for candidate, ms in times.items()}})
    table = Table(title=headline())
    table.add_column("ms")
    table.add_column("")
    for row in rows:
        table.add_row(row["row"], ", ".join(f"{name} {ms}" for name, ms in row.items() if name != "row"))
    Console(width=140).print(table)
    keep("transforms", rows, options.json)


if __name__ == "__main__":
    main()
