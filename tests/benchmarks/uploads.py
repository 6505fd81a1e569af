"""Data that reach a GPU other than as JPEGs, compared with DALI: frames, sounds, other formats, and copies back.

    python tests/benchmarks/uploads.py [--only Penstock] [--json FILE]

Needs a GPU, and DALI in the same environment (`make bench-engine ARGS=--gpu` makes one). No batch is like another: its samples are
drawn from a store of several batches. A figure is time for each sample, while two batches are in flight; the median of the rounds.
"""

from __future__ import annotations

import argparse
import io
import os
import warnings
import wave
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from side_by_side import MODULES, Work, prepared
from turns import Run, gpu_ms, headline, in_turns, keep

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
BATCH, BATCHES_IN_STORE = 64, 3
SAMPLE_RATE = 16_000


@dataclass
class Row:
    """One row.

    Attributes:
        name: the row's name.
        work: a function from ``(module, input)`` to the outputs.
        store: makes the samples that batches are drawn from.
        layout: the layout of the samples.
        after: the program's work with a batch.
        moved_bytes: the bytes of a sample that go to the GPU, where their copy takes the time.
    """

    name: str
    work: Work
    store: Callable[[], list[np.ndarray]]
    layout: str | None = None
    after: Callable[[Any], object] | None = None
    moved_bytes: int = 0


def drawn(store: Sequence[np.ndarray]) -> Callable[[], list[np.ndarray]]:
    """Return a source of batches, each with samples in a new order."""
    rng = np.random.default_rng(1)
    return lambda: [store[index] for index in rng.permutation(len(store))[:BATCH]]


def made(make: Callable[[int], np.ndarray]) -> list[np.ndarray]:
    """Return a store of samples, by their numbers."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(make, range(BATCH * BATCHES_IN_STORE)))


def picture(number: int, height: int, width: int) -> Image.Image:
    """Return something as smooth as a photograph, of about this size."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(0, 255, (height // 20, width // 20, 3), np.uint8))
    size = width + int(rng.integers(-40, 40)), height + int(rng.integers(-40, 40))
    return small.resize(size, Image.Resampling.BICUBIC)


def encoded(kind: str, height: int = 853, width: int = 1280, **options: Any) -> Callable[[int], np.ndarray]:
    """Make files of one format."""

    def make(number: int) -> np.ndarray:
        buffer = io.BytesIO()
        picture(number, height, width).save(buffer, kind, **options)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    return make


def mixed_formats(number: int) -> np.ndarray:
    """Return files of four formats, in turns."""
    kinds: list[tuple[str, dict[str, Any]]] = [("JPEG", {}), ("PNG", {}), ("WEBP", {}), ("BMP", {})]
    kind, options = kinds[number % len(kinds)]
    return encoded(kind, **options)(number)


def frame(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (1080, 1920, 3), np.uint8)


def seconds(number: int, varied: bool) -> int:
    """Return the samples of a sound."""
    return int(SAMPLE_RATE * (np.random.default_rng(number).uniform(2, 8) if varied else 5))


def sound(number: int, varied: bool = False) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(seconds(number, varied), np.float32)


def wav(number: int) -> np.ndarray:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((sound(number) * 3000).astype(np.int16).tobytes())
    return np.frombuffer(buffer.getvalue(), np.uint8)


def spectrum(m: Any, signal: Any) -> Any:
    power = m.fn.spectrogram(signal, nfft=512, window_length=400, window_step=160)
    return m.fn.mel_filter_bank(power, sample_rate=float(SAMPLE_RATE), nfilter=80)


def normalized(m: Any, images: Any) -> Any:
    return m.fn.crop_mirror_normalize(images, crop=(224, 224), mean=MEAN, std=STD)


def shrunk(m: Any, images: Any) -> Any:
    return normalized(m, m.fn.resize(images, resize_shorter=256.0))


def on_cpu_first(m: Any, data: Any) -> Any:
    return shrunk(m, m.fn.decoders.image(data, device="cpu").gpu())


def all_on_cpu(m: Any, data: Any) -> Any:
    return shrunk(m, m.fn.decoders.image(data, device="cpu")).gpu()


def by_mixed(m: Any, data: Any) -> Any:
    return shrunk(m, m.fn.decoders.image(data, device="mixed"))


def on_host(outputs: Any) -> object:
    return [batch.as_cpu() for batch in outputs]


def rows() -> Iterator[Row]:
    """Yield all rows."""
    frames: Callable[[], list[np.ndarray]] = lambda: made(frame)  # noqa: E731
    resized: Work = lambda m, x: normalized(m, m.fn.resize(x.gpu(), size=224))  # noqa: E731
    yield Row(
        "64 frames of 1080p to the GPU, resize 224, normalize", resized, frames, "HWC", moved_bytes=1080 * 1920 * 3
    )
    yield Row("64 WAV files decoded, to the GPU, mel", _from_wav, lambda: made(wav))
    yield Row("64 sounds of 5 s to the GPU, mel", lambda m, x: spectrum(m, x.gpu()), lambda: made(sound))
    varied: Callable[[], list[np.ndarray]] = lambda: made(lambda number: sound(number, True))  # noqa: E731
    yield Row("64 sounds of 2 to 8 s to the GPU, mel", lambda m, x: spectrum(m, x.gpu()), varied)
    small: Callable[[], list[np.ndarray]] = lambda: made(encoded("JPEG", 375, 500, quality=90))  # noqa: E731
    yield Row("64 small JPEGs decoded on the CPU, to the GPU, A", on_cpu_first, small)
    yield Row("A of 64 small JPEGs on the CPU, to the GPU", all_on_cpu, small)
    formats: dict[str, tuple[str, dict[str, Any]]] = {
        "PNGs": ("PNG", {"compress_level": 3}),
        "WebPs": ("WEBP", {"quality": 90}),
        "JPEGs 2000": ("JPEG2000", {"quality_mode": "rates", "quality_layers": [20]}),
        "TIFFs": ("TIFF", {}),
        "BMPs": ("BMP", {}),
        "progressive JPEGs": ("JPEG", {"progressive": True, "quality": 90}),
    }
    for name, (kind, options) in formats.items():
        make = encoded(kind, **options)
        yield Row(f"A of 64 {name}", by_mixed, lambda make=make: made(make))  # type: ignore[misc]
    yield Row("A of 64 files of four formats", by_mixed, lambda: made(mixed_formats))
    yield Row("frames to the GPU, resize 224, normalize, to the host", resized, frames, "HWC", on_host)


def _from_wav(m: Any, data: Any) -> Any:
    signal, _ = m.fn.decoders.audio(data, dtype=m.types.FLOAT, downmix=True)
    return spectrum(m, signal.gpu())


def candidates(row: Row, names: Sequence[str], threads: int) -> dict[str, Run]:
    """Return the functions that run a batch of the row, by candidate."""
    store, runs = row.store(), dict[str, Run]()
    for name in names:
        run = prepared(MODULES[name], row.work, [drawn(store)], threads, True, row.layout, batch_size=BATCH)
        runs[name] = _with(run, row.after) if row.after else run
    return runs


def _with(run: Run, after: Callable[[Any], object]) -> Run:
    return lambda: after(run())


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--gpu", action="store_true", help="accepted, as for the other benchmarks: there is no other way"
    )
    parser.add_argument("--only", choices=MODULES, help="only this candidate")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round")
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    console = Console(width=130)
    console.print(headline(), highlight=False)
    names = [options.only] if options.only else list(MODULES)
    console.print(f"{'ms a batch of 64':56}", *(f"{name:>9}" for name in names), "  DALI / Penstock    GB/s")
    kept = []
    for row in rows():
        if options.filter not in row.name:
            continue
        times = in_turns(candidates(row, names, options.threads), gpu_ms, options.rounds, options.seconds)
        kept.append({"work": row.name, "ms": {name: time / BATCH for name, time in times.items()}})
        ratio = f"{times['DALI'] / times['Penstock']:.2f}" if len(times) == len(MODULES) else ""
        speed = f"{row.moved_bytes * BATCH / min(times.values()) / 1e6:.1f}" if row.moved_bytes else ""
        console.print(
            f"{row.name:56}", *(f"{time:9.2f}" for time in times.values()), f"{ratio:>17} {speed:>7}", highlight=False
        )
    keep("uploads", kept, options.json)


if __name__ == "__main__":
    main()
