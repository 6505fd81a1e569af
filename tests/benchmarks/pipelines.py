"""Whole pipelines compared with DALI, Pillow and the decoder alone, in interleaved rounds in one process.

    python tests/benchmarks/pipelines.py [--gpu] [--images FOLDER] [--json FILE]

Needs DALI in the same environment (`make bench` makes one). A figure is the median of the rounds: on the CPU, of the processor time
of all threads per sample; on a GPU, with two batches in flight, of the time per sample.
"""

from __future__ import annotations

import argparse
import io
import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, Work, both, prepared
from turns import Run, cpu_ms, gpu_ms, headline, in_turns, keep

PHOTOGRAPHS = Path(__file__).resolve().parents[3] / "shared" / "data" / "images" / "jpeg"
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
SMALL_SIDE = 375
BEST_LOAD = 0.8
ODD = (9, 11, 24, 31)
CONSUMER_MS = 10


@dataclass
class Pipeline:
    """One row of the table.

    Attributes:
        name: the row's name.
        work: a function from ``(module, input)`` to the outputs.
        batch: the samples, in host memory.
        layout: the layout of the samples.
        others: further candidates, by name: functions that return a function which does the same work for the whole batch.
        on_gpu: whether the samples are on the GPU if the pipeline runs there.
        consumer_ms: the milliseconds for which Python computes with each batch before it requests the next one.
    """

    name: str
    work: Work
    batch: list[np.ndarray]
    layout: str | None = None
    others: dict[str, Callable[[], Run]] | None = None
    on_gpu: bool = False
    consumer_ms: float = 0


def photographs(folder: Path, count: int) -> list[np.ndarray]:
    """Return encoded JPEG images: from a folder, or generated."""
    files = sorted(folder.glob("*.jp*g")) if folder.is_dir() else []
    if files:
        return [np.frombuffer(files[i % len(files)].read_bytes(), np.uint8) for i in range(count)]
    rng = np.random.default_rng(0)
    noise = (Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8)) for _ in range(count))
    return [encoded(small.resize((1280, 853), Image.Resampling.BICUBIC)) for small in noise]


def encoded(image: Image.Image, **options: Any) -> np.ndarray:
    """Return the image encoded as JPEG; ``options``: Pillow's."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def encoded_again(photograph: np.ndarray, mode: str = "RGB", **options: Any) -> np.ndarray:
    """Return the same photograph, encoded in another way."""
    return encoded(Image.open(io.BytesIO(photograph.tobytes())).convert(mode), **options)


def smaller(photograph: np.ndarray) -> np.ndarray:
    """Return the same photograph with its shorter side reduced."""
    image = Image.open(io.BytesIO(photograph.tobytes())).convert("RGB")
    scale = SMALL_SIDE / min(image.size)
    return encoded(image.resize((round(image.width * scale), round(image.height * scale))))


def decoded(m: Any, data: Any, gpu: bool, load: float | None = None) -> Any:
    options = {} if load is None else {"hw_decoder_load": load}
    return m.fn.decoders.image(data, device="mixed" if gpu else "cpu", **options)


def a(gpu: bool, load: float | None = None) -> Work:
    def work(m: Any, data: Any) -> Any:
        image = m.fn.resize(decoded(m, data, gpu, load), resize_shorter=256.0)
        return m.fn.crop_mirror_normalize(image, crop=(224, 224), mean=MEAN, std=STD)

    return work


def b(gpu: bool) -> Work:
    def work(m: Any, data: Any) -> Any:
        return m.fn.crop_mirror_normalize(m.fn.resize(decoded(m, data, gpu), size=(224, 224)), mean=MEAN, std=STD)

    return work


def c(gpu: bool) -> Work:
    def work(m: Any, data: Any) -> Any:
        image = m.fn.decoders.image_random_crop(data, device="mixed" if gpu else "cpu", seed=1)
        image = m.fn.resize(image, size=(224, 224))
        return m.fn.crop_mirror_normalize(image, mirror=m.fn.random.coin_flip(seed=2), mean=MEAN, std=STD)

    return work


def d(m: Any, signal: Any) -> Any:
    power = m.fn.spectrogram(signal, nfft=512, window_length=400, window_step=160)
    decibels = m.fn.to_decibels(m.fn.mel_filter_bank(power, sample_rate=16000.0, nfilter=80), cutoff_db=-80.0)
    return m.fn.normalize(decibels, axes=[1])


def e(m: Any, image: Any) -> Any:
    return m.fn.crop_mirror_normalize(m.fn.resize(image, size=(224, 224)), mean=MEAN, std=STD)


def e_mirrored(m: Any, image: Any) -> Any:
    image = m.fn.resize(image, size=(224, 224))
    return m.fn.crop_mirror_normalize(image, mirror=m.fn.random.coin_flip(seed=2), mean=MEAN, std=STD)


def random_crop(m: Any, image: Any) -> Any:
    return m.fn.random_resized_crop(image, size=(224, 224), seed=3)


def nothing(m: Any, data: Any) -> Any:
    return data


def pillow(batch: Sequence[np.ndarray], threads: int) -> Callable[[], Any]:
    """Return a typical hand-written loader, as a function: Pillow and NumPy, on a pool of threads."""
    pool = ThreadPoolExecutor(threads)
    mean, scale = np.array(MEAN, np.float32), 1 / np.array(STD, np.float32)

    def one(data: np.ndarray) -> np.ndarray:
        image = Image.open(io.BytesIO(data.tobytes())).convert("RGB")
        ratio = 256 / min(image.size)
        image = image.resize((round(image.width * ratio), round(image.height * ratio)), Image.Resampling.BILINEAR)
        left, top = (image.width - 224) // 2, (image.height - 224) // 2
        pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
        return np.ascontiguousarray(((pixels - mean) * scale).transpose(2, 0, 1))

    return lambda: list(pool.map(one, batch))


def turbo(batch: Sequence[np.ndarray]) -> Callable[[], Any]:
    """Return a function that decodes the batch with libjpeg-turbo, on one thread."""
    import simplejpeg

    return lambda: [simplejpeg.decode_jpeg(data, "RGB") for data in batch]


def rows(folder: Path, threads: int, gpu: bool) -> list[Pipeline]:
    """Return the pipelines to measure: for a GPU if ``gpu``, otherwise for a CPU."""
    rng = np.random.default_rng(0)
    count = 64 if gpu else 32
    big = photographs(folder, count)
    small = [smaller(photograph) for photograph in big]
    pixels = [rng.integers(0, 255, (1080, 1920, 3), np.uint8) for _ in range(64 if gpu else 8)]
    sound = [rng.standard_normal(5 * 16000).astype(np.float32) for _ in range(count)]
    chosen = [
        Pipeline(f"A: decode, resize shorter 256, crop 224, normalize; batch {count}", a(gpu), big),
        Pipeline(f"A, small images; batch {count}", a(gpu), small),
        Pipeline("A; batch 1", a(gpu), big[:1]),
        Pipeline("A, small images; batch 1", a(gpu), small[:1]),
        Pipeline(f"B: decode, resize 224x224, normalize; batch {count}", b(gpu), big),
        Pipeline(f"C: decode a random crop, resize, flip, normalize; batch {count}", c(gpu), big),
        Pipeline(f"C, small images; batch {count}", c(gpu), small),
        Pipeline(f"D: spectrogram, mel, decibels, normalize, 5 s; batch {count}", d, sound, on_gpu=True),
        Pipeline(f"E: 1080p pixels, resize 224, normalize; batch {len(pixels)}", e, pixels, "HWC", on_gpu=True),
        Pipeline(f"E with a random mirror; batch {len(pixels)}", e_mirrored, pixels, "HWC", on_gpu=True),
        Pipeline(f"random_resized_crop; batch {len(pixels)}", random_crop, pixels, "HWC", on_gpu=True),
        Pipeline("nothing; batch 1", nothing, [np.zeros(3, np.float32)]),
    ]
    if gpu:
        twice = big + big
        chosen.insert(1, Pipeline(f"A; batch {len(twice)}", a(gpu), twice))
        for row in chosen[:2]:
            row.others = at_best_load(row.batch, threads)
        chosen += [Pipeline(f"A; batch {odd}", a(gpu), big[:odd]) for odd in ODD]
        busy = f"A; batch {count}, {CONSUMER_MS} ms of Python between batches"
        chosen.append(Pipeline(busy, a(gpu), big, consumer_ms=CONSUMER_MS))
    else:
        chosen[0].others = {"Pillow": lambda: pillow(big, threads)}
        chosen[1].others = {"Pillow": lambda: pillow(small, threads)}
        progressive = [encoded_again(photograph, progressive=True) for photograph in big]
        chosen.insert(4, Pipeline(f"A, progressive; batch {count}", a(gpu), progressive))
        chosen[4].others = {"Pillow": lambda: pillow(progressive, threads)}
    decode: Work = lambda m, data: decoded(m, data, gpu)  # noqa: E731
    sizes = {f"batch {count}": big}
    if not gpu:
        sizes |= {f"progressive; batch {count}": progressive}
        sizes |= {f"grey; batch {count}": [encoded_again(photograph, "L") for photograph in big]}
    if gpu:
        sizes |= {f"small images; batch {count}": small, "batch 1": big[:1], "small images; batch 1": small[:1]}
    for name, batch in sizes.items():
        others = by_engine(batch, threads) if gpu else {"libjpeg-turbo": lambda batch=batch: turbo(batch)}
        chosen.append(Pipeline(f"decode alone; {name}", decode, batch, others=others))
    return chosen


def by_engine(batch: list[np.ndarray], threads: int) -> dict[str, Callable[[], Run]]:
    """Return candidates that decode only with the GPU's JPEG engine, which Penstock's kernels otherwise replace."""

    def make() -> Run:
        return prepared(MODULES["Penstock"], lambda m, data: decoded(m, data, True, 1.0), [batch], threads, gpu=True)

    return {"Penstock, hw_decoder_load=1": make}


def at_best_load(batch: list[np.ndarray], threads: int) -> dict[str, Callable[[], Run]]:
    """Return candidates that decode the share of each batch with the JPEG engine that is best for DALI, instead of its default, 0.65."""

    def maker(module: Any) -> Callable[[], Run]:
        return lambda: prepared(module, a(True, BEST_LOAD), [batch], threads, gpu=True)

    return {f"{name}, hw_decoder_load={BEST_LOAD}": maker(module) for name, module in MODULES.items()}


def with_consumer(run: Run, milliseconds: float) -> Run:
    """Return a function that runs a batch, and then computes in Python for this time."""

    def consume() -> None:
        run()
        end = time.perf_counter() + milliseconds / 1e3
        while time.perf_counter() < end:
            pass

    return consume


def placed(batch: list[np.ndarray], on_gpu: bool) -> list[Any]:
    """Return the batch on the device of the pipeline's input."""
    if not on_gpu:
        return batch
    import cupy

    return [cupy.asarray(sample) for sample in batch]


def measured(row: Pipeline, threads: int, gpu: bool, rounds: int, seconds: float) -> dict[str, Any]:
    """Return milliseconds for each sample, by candidate."""
    batch = placed(row.batch, gpu and row.on_gpu)
    candidates = both(row.work, [batch], threads, gpu, row.layout)
    candidates |= {name: make() for name, make in (row.others or {}).items()}
    if row.consumer_ms:
        candidates = {name: with_consumer(run, row.consumer_ms) for name, run in candidates.items()}
    times = in_turns(candidates, gpu_ms if gpu else cpu_ms, rounds, seconds)
    return {"work": row.name, "ms": {name: time / len(batch) for name, time in times.items()}}


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="on the GPU (else on the CPU)")
    parser.add_argument("--images", type=Path, default=PHOTOGRAPHS, help="a folder of JPEG files")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round")
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=130)
    console.print(headline(), highlight=False)
    what = "time" if options.gpu else "CPU time"
    table = Table(
        "pipeline", "DALI, ms", "Penstock, ms", "DALI / Penstock", "others / Penstock", title=f"{what} for each sample"
    )
    kept = []
    for row in rows(options.images, options.threads, options.gpu):
        if options.filter in row.name:
            figures = measured(row, options.threads, options.gpu, options.rounds, options.seconds)
            kept.append(figures)
            ms = dict(figures["ms"])
            theirs, ours = ms.pop("DALI"), ms.pop("Penstock")
            others = ", ".join(f"{name} {time / ours:.2f}" for name, time in ms.items())
            table.add_row(row.name, f"{theirs:.4f}", f"{ours:.4f}", f"{theirs / ours:.2f}", others)
    console.print(table)
    keep("pipelines", kept, options.json)


if __name__ == "__main__":
    main()
