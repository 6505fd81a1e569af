"""Presets compared with the classes of transformers that they replace, in interleaved rounds in one process.

    make bench-presets [ARGS="--json FILE --only qwen"]

What is measured is the way from files to tensors: JPEGs of photographs of 1280 x 853 pixels, several in a call, on one thread; and
Whisper's features of 30 seconds of sound, with torch. A figure is processor time per image, the minimum of the rounds.

With --gpu, batches have 32 images, and figures are wall time per image: of Penstock on the GPU, and of the class with torchvision in
three ways, each with all cores: in one process; with a process for each core, whose results stay in that process; and on the GPU. PIL
decodes on as many threads as there are cores.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table
from turns import RESULTS, Run, cpu_ms, gpu_ms, headline, in_turns, keep

from penstock.parity import measured
from penstock.presets import preset

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from configurations import CONFIGURATIONS, FAMILIES, SMALL
from libraries import torchvision_functional
from processors import backends_of

COUNT, GPU_COUNT = 4, 32
CORES = len(os.sched_getaffinity(0))
PAGE = Path(__file__).parents[2] / "docs" / "same-pixels.md"
MARK = "<!-- presets -->\n"
WHISPER = "whisper"
_SHAPE = (853, 1280, 3)


def photographs(folder: Path | None, count: int) -> list[bytes]:
    """Return files of images that are 1280 pixels wide: from a folder, repeated if necessary; or generated, smooth with so much noise that
    the files are as large as those of photographs.
    """
    found = []
    for path in sorted(folder.rglob("*.jpg")) if folder else ():
        with Image.open(path) as image:
            if image.width == _SHAPE[1]:
                found.append(path.read_bytes())
    return list(itertools.islice(itertools.cycle(found or _made_up()), count))


def _made_up() -> list[bytes]:
    files, rng = [], np.random.default_rng(0)
    for number in range(COUNT):
        places = np.indices(_SHAPE[:2]).sum(axis=0)[..., None] / (40 + number)
        pixels = 127 + 90 * np.sin(places + np.arange(3)) + rng.normal(0, 9, _SHAPE)
        file = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def candidates(name: str, files: list[bytes]) -> dict[str, Run]:
    """Return functions that process the files, by candidate: Penstock, and transformers with each of the libraries that it supports."""
    configuration = CONFIGURATIONS[name]
    pipeline = preset(configuration, batch_size=COUNT)
    arrays = [np.frombuffer(file, np.uint8) for file in files]
    runs: dict[str, Run] = {"Penstock": lambda: pipeline.run(images=arrays)}
    for backend in backends_of(name):
        runs[backend] = _class_of(configuration, backend, files)
    return runs


def _class_of(configuration: Mapping[str, object], backend: str, files: list[bytes]) -> Run:
    processor = _processor(configuration, backend)

    def run() -> Any:
        return [processor(_decoded(file), return_tensors="pt") for file in files]

    return run


def _processor(configuration: Mapping[str, object], backend: str) -> Callable[..., Any]:
    import transformers

    name = str(configuration["image_processor_type"]).removesuffix("Fast") + ("Pil" if backend == "pil" else "")
    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    processor: Callable[..., Any] = getattr(transformers, name).from_dict(held)
    return processor


def _decoded(file: bytes) -> Image.Image:
    return Image.open(io.BytesIO(file)).convert("RGB")


def candidates_on_gpu(name: str, files: list[bytes], processes: Pool) -> dict[str, Run]:
    """Return functions that process the files, by candidate: Penstock on the GPU, which decodes a batch while it computes the previous one,
    and transformers in three ways.
    """
    import torch

    torch.set_num_threads(CORES)
    configuration = CONFIGURATIONS[name]
    settings: dict[str, Any] = {"batch_size": len(files), "num_threads": CORES, "device": "gpu"}
    pipeline = preset(configuration, **settings, prefetch_queue_depth=2)
    arrays = [np.frombuffer(file, np.uint8) for file in files]
    for _ in range(2):
        pipeline.feed_input("images", arrays)
    processor, threads = _processor(configuration, "torchvision"), ThreadPoolExecutor(CORES)
    shares = [files[core::CORES] for core in range(CORES)]

    def ours() -> Any:
        pipeline.feed_input("images", arrays)
        return pipeline.run()

    def class_on(device: str) -> Any:
        return processor(list(threads.map(_decoded, files)), device=device, return_tensors="pt")

    def on_gpu() -> Any:
        results = class_on("cuda")
        torch.cuda.synchronize()
        return results

    return {
        "Penstock": ours,
        "one process": partial(class_on, "cpu"),
        "processes": lambda: processes.map(_process_share, [(name, share) for share in shares if share], chunksize=1),
        "its GPU path": on_gpu,
    }


def _process_share(given: tuple[str, Sequence[bytes]]) -> None:
    """Process this process's share of a batch."""
    name, files = given
    _held_processor(name)([_decoded(file) for file in files], return_tensors="pt")


@cache
def _held_processor(name: str) -> Callable[..., Any]:
    torchvision_functional()
    return _processor(CONFIGURATIONS[name], "torchvision")


def speech() -> dict[str, Run]:
    """Return functions that compute Whisper's features of 30 seconds of sound as often as there are images, by candidate."""
    import transformers

    sound = np.random.default_rng(0).normal(0, 0.1, 480_000).astype(np.float32)
    pipeline = preset({"feature_extractor_type": "WhisperFeatureExtractor"}, batch_size=COUNT, encoded=False)
    extractor = transformers.WhisperFeatureExtractor()
    return {
        "Penstock": lambda: pipeline.run(audio=[sound] * COUNT),
        "torchvision": lambda: [extractor(sound, sampling_rate=16000, return_tensors="pt") for _ in range(COUNT)],
    }


def main() -> None:
    """Measure the presets and print the table, those that are furthest behind first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="batches on a GPU, beside the class on all cores and there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="configurations whose name contains this")
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--write", action="store_true", help="keep the table in the page, of what was run with --json before"
    )
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torchvision_functional()
    import transformers

    transformers.logging.set_verbosity_error()
    files = photographs(options.photographs, GPU_COUNT if options.gpu else COUNT)
    rows = _measured_on_gpu(options, files) if options.gpu else _measured(options, files)
    keep("presets", rows, options.json)
    (_show_on_gpu if options.gpu else _show)(rows)
    if options.write:
        head, _, rest = PAGE.read_text().partition(MARK)
        _, heading, tail = rest.partition("\n#")
        PAGE.write_text(f"{head}{MARK}{page_table()}\n{heading}{tail}")


def page_table() -> str:
    """Return the table for the documentation: what `make parity` compares, and the times recorded in `results`."""
    runs = {machine: _kept(machine) for machine in ("cpu", "gpu")}
    told = "; ".join(f"{run['date']}, {run['gpu'] or run['processor']}" for run in runs.values() if run)
    columns = (
        "preset",
        "class",
        "cases",
        "different",
        "ms",
        "torchvision",
        "PIL",
        "ratio",
        "to PIL",
        "GPU, ms",
        "to all cores",
        "to its GPU path",
    )
    lines = [told, "", f"| {' | '.join(columns)} |", "| --- | --- |" + " --: |" * (len(columns) - 2)]
    times, on_gpu = (
        {row["preset"]: row["ms"] for row in run["rows"]} if run else {} for run in (runs["cpu"], runs["gpu"])
    )
    for name, ms in times.items():
        compared = [row for row in measured() if row.library == "transformers" and f"({name})" in row.what]
        kind, cases, different = "WhisperFeatureExtractor", "", "within 6e-5"
        if name != WHISPER:
            kind = str(CONFIGURATIONS[name]["image_processor_type"])
            cases, different = (f"{sum(column):,}" for column in zip(*((row.cases, row.different) for row in compared)))
        ours, fast, slow, gpu = ms["Penstock"], ms["torchvision"], ms.get("pil"), on_gpu.get(name)
        cells = [name, kind, cases, different, f"{ours:.2f}", f"{fast:.2f}", f"{slow:.2f}" if slow else ""]
        cells += [f"{fast / ours:.2f}", f"{slow / ours:.2f}" if slow else ""]
        cells += [f"{gpu['Penstock']:.3f}", *_ratios(gpu)] if gpu else ["", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratios(ms: Mapping[str, float]) -> list[str]:
    """Return the speed of Penstock on a GPU relative to that of transformers: on all cores, in the faster of two ways; and on the GPU."""
    all_cores = min(ms["one process"], ms["processes"])
    return [f"{theirs / ms['Penstock']:.1f}" for theirs in (all_cores, ms["its GPU path"])]


def _kept(machine: str) -> dict[str, Any] | None:
    file = RESULTS / f"presets-{machine}.json"
    return json.loads(file.read_text()) if file.exists() else None


def _measured(options: argparse.Namespace, files: list[bytes]) -> list[dict[str, Any]]:
    rows = []
    for name in (*CONFIGURATIONS, WHISPER):
        if name in (*SMALL, *FAMILIES) or options.only not in name:
            continue
        runs = speech() if name == WHISPER else candidates(name, files)
        times = in_turns(runs, cpu_ms, options.rounds, options.seconds, min)
        rows.append({"preset": name, "ms": {who: took / COUNT for who, took in times.items()}})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _measured_on_gpu(options: argparse.Namespace, files: list[bytes]) -> list[dict[str, Any]]:
    rows = []
    # Fork before anything uses the GPU, as processes that are forked later could not use it.
    with multiprocessing.get_context("fork").Pool(CORES) as processes:
        for name in CONFIGURATIONS:
            if name in (*SMALL, *FAMILIES) or options.only not in name:
                continue
            runs = candidates_on_gpu(name, files, processes)
            times = in_turns(runs, partial(gpu_ms, before=1), options.rounds, options.seconds, min)
            rows.append({"preset": name, "ms": {who: took / len(files) for who, took in times.items()}})
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _show_on_gpu(rows: list[dict[str, Any]]) -> None:
    ways = ("Penstock", "one process", "processes", "its GPU path")
    table = Table("preset", *(f"{way}, ms" for way in ways), "to all cores", "to its GPU path")
    for row in rows:
        table.add_row(row["preset"], *(f"{row['ms'][way]:.3f}" for way in ways), *_ratios(row["ms"]))
    console = Console(width=120)
    console.print(headline())
    console.print(table)


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table("preset", "Penstock, ms", "torchvision", "PIL", "ratio", "ratio to PIL")
    for row in sorted(rows, key=lambda row: float(row["ms"]["torchvision"] / row["ms"]["Penstock"])):
        ours, fast, slow = (row["ms"].get(who) for who in ("Penstock", "torchvision", "pil"))
        cells = [f"{each:.2f}" if each else "" for each in (ours, fast, slow)]
        table.add_row(row["preset"], *cells, f"{fast / ours:.2f}", f"{slow / ours:.2f}" if slow else "")
    console = Console(width=100)
    console.print(headline())
    console.print(table)


if __name__ == "__main__":
    main()
