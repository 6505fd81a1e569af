"""A training loop of ResNet-18, fed by pipeline A in Penstock and in DALI, and without a loader.

    python tests/benchmarks/training.py [--batch 64] [--json FILE]

Needs DALI, PyTorch for CUDA and torchvision in the same environment. Each step takes a batch of photographs from the iterator for
PyTorch, and trains in bfloat16. A figure is time per image, the median of interleaved rounds. Without a loader, each step trains on
the same batch, so the difference is what a loader costs the loop.
"""

from __future__ import annotations

import argparse
import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from pipelines import PHOTOGRAPHS, a, photographs
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, pipeline_of
from turns import Run, gpu_ms, headline, in_turns, keep

NOTHING = "no loader"


def batches(name: str, batch: int, threads: int, folder: Path) -> Iterator[Any]:
    """Return a library's iterator for PyTorch over pipeline A."""
    pipeline = pipeline_of(MODULES[name], a(True), [photographs(folder, batch)], threads, gpu=True)
    plugin = importlib.import_module(f"{MODULES[name].__name__}.plugin.pytorch")
    return (step[0]["images"] for step in plugin.DALIGenericIterator(pipeline, ["images"]))


def constant(batch: int) -> Iterator[Any]:
    """Yield the same batch, on the GPU, again and again."""
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    while True:
        yield images


def training(given: Iterator[Any], batch: int) -> Run:
    """Return a function that runs one step of training on the next batch of ``given``."""
    from torchvision.models import resnet18

    model = resnet18().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    labels = torch.randint(0, 1000, (batch,), device="cuda")

    def step() -> None:
        images = next(given).to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def main() -> None:
    """Measure all loaders and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--images", type=Path, default=PHOTOGRAPHS, help="a folder of JPEG files")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.backends.cudnn.benchmark = True
    console = Console(width=130)
    console.print(headline(), highlight=False)
    makers: dict[str, Callable[[], Iterator[Any]]] = {
        name: lambda name=name: batches(name, options.batch, options.threads, options.images)  # type: ignore[misc]
        for name in MODULES
    }
    makers[NOTHING] = lambda: constant(options.batch)
    steps = {name: training(make(), options.batch) for name, make in makers.items()}
    ms = in_turns(steps, gpu_ms, options.rounds, options.seconds)
    work = f"ResNet-18 on pipeline A; batch {options.batch}"
    table = Table("loop", *(f"{name}, ms" for name in ms), "DALI / Penstock", title="time for each image")
    table.add_row(work, *(f"{time / options.batch:.4f}" for time in ms.values()), f"{ms['DALI'] / ms['Penstock']:.2f}")
    console.print(table)
    keep("training", [{"work": work, "ms": {name: time / options.batch for name, time in ms.items()}}], options.json)


if __name__ == "__main__":
    main()
