"""All ways in which data reach a GPU, compared with DALI: frames, sounds, files of all formats, readers; and copies back to the host.

    python tests/benchmarks/uploads.py [--only Penstock] [--filter REGEX] [--json FILE]

Needs a GPU, and DALI in the same environment (`make bench-engine ARGS=--gpu` makes one). No batch is like another: its samples are
drawn at random from a store, in which files of images differ in size. Where DALI has several ways to do the same, each is measured, and
the ratio is that of the best. While two batches are in flight, the time of a batch is taken, of which the table shows the median of the
rounds; the JSON file has it divided by the number of samples.
"""

from __future__ import annotations

import argparse
import functools
import io
import os
import re
import tempfile
import warnings
import wave
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pipelines import BEST_LOAD, MEAN, PHOTOGRAPHS, STD, a, e_mirrored
from rich.console import Console
from side_by_side import MODULES, Work, prepared
from turns import Run, gpu_ms, headline, in_turns, keep

BATCH, STORED = 64, 96
# A number of pictures that is greater than the number of cached plans; each has another size.
MANY = 400
SAMPLE_RATE = 16_000
BIG, SMALL = (853, 1280), (375, 500)


@dataclass
class Row:
    """One row of the table.

    Attributes:
        name: the row's name.
        work: a function from ``(module, input)`` to the outputs.
        store: a function that makes the samples from which batches are drawn.
        layout: the layout of the samples.
        after: what the program does with the outputs of a batch.
        moved_bytes: the bytes of a sample that are copied to the GPU, to show GB/s; 0: not shown.
        batch: the number of samples of a batch.
        dali: other ways to do this work in DALI, by name.
        on_gpu: whether the samples are on the GPU.
        from_files: whether the samples are in files, which a reader reads.
    """

    name: str
    work: Work
    store: Callable[[], list[np.ndarray]]
    layout: str | None = None
    after: Callable[[Any], object] | None = None
    moved_bytes: int = 0
    batch: int = BATCH
    dali: dict[str, Work] = field(default_factory=dict)
    on_gpu: bool = False
    from_files: bool = False


def drawn(store: Sequence[Any], batch: int) -> Callable[[], list[Any]]:
    """Return a source of batches, each with samples in a new order."""
    rng = np.random.default_rng(1)
    return lambda: [store[index] for index in rng.permutation(len(store))[:batch]]


def made(make: Callable[[int], np.ndarray], count: int = STORED) -> list[np.ndarray]:
    """Return a store of ``count`` samples that ``make`` makes, by their numbers."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(make, range(count)))


@functools.cache
def scenes() -> list[Image.Image]:
    """Return photographs, or generated images of similar smoothness."""
    files = [Image.open(path).convert("RGB") for path in sorted(PHOTOGRAPHS.glob("*_1280.jpg"))]
    rng = np.random.default_rng(0)
    noise = (Image.fromarray(rng.integers(0, 255, (60, 90, 3), np.uint8)) for _ in range(16))
    return files or [small.resize((1440, 960), Image.Resampling.BICUBIC) for small in noise]


def picture(number: int, height: int, width: int) -> Image.Image:
    """Return a part of a photograph, resized to about this size."""
    rng = np.random.default_rng(number)
    scene = scenes()[number % len(scenes())]
    left, top, right, bottom = rng.uniform((0, 0, 0.8, 0.8), (0.2, 0.2, 1, 1)) * (*scene.size, *scene.size)
    size = width + int(rng.integers(-40, 40)), height + int(rng.integers(-40, 40))
    return scene.resize(size, Image.Resampling.BICUBIC, (left, top, right, bottom))


def encoded(kind: str, size: tuple[int, int] = BIG, mode: str = "RGB", **options: Any) -> Callable[[int], np.ndarray]:
    """Return a function that makes a file of one format, by its number."""

    def make(number: int) -> np.ndarray:
        buffer = io.BytesIO()
        picture(number, *size).convert(mode).save(buffer, kind, **options)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    return make


jpegs, small_jpegs = encoded("JPEG", quality=90), encoded("JPEG", SMALL, quality=90)
FORMATS: dict[str, Callable[[int], np.ndarray]] = {
    "PNGs": encoded("PNG", compress_level=3),
    "WebPs": encoded("WEBP", quality=90),
    "JPEGs 2000": encoded("JPEG2000", quality_mode="rates", quality_layers=[20]),
    "TIFFs": encoded("TIFF"),
    "BMPs": encoded("BMP"),
}
JPEG_KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "progressive": encoded("JPEG", progressive=True, quality=90),
    "baseline": jpegs,
    "full chroma": encoded("JPEG", subsampling=0, quality=90),
    "grey": encoded("JPEG", mode="L", quality=90),
}


def in_turn(makers: Sequence[Callable[[int], np.ndarray]]) -> Callable[[int], np.ndarray]:
    """Return a function that makes files of several kinds in turns."""
    return lambda number: makers[number % len(makers)](number)


def frame(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (1080, 1920, 3), np.uint8)


def seconds(number: int, varied: bool) -> int:
    """Return the length of a sound, in samples."""
    return int(SAMPLE_RATE * (np.random.default_rng(number).uniform(2, 8) if varied else 5))


def sound(number: int, varied: bool = False) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(seconds(number, varied), np.float32)


def varied_sound(number: int) -> np.ndarray:
    return sound(number, True)


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


def resized(m: Any, images: Any) -> Any:
    return m.fn.crop_mirror_normalize(m.fn.resize(images.gpu(), size=224), crop=(224, 224), mean=MEAN, std=STD)


def shrunk(m: Any, images: Any) -> Any:
    images = m.fn.resize(images, resize_shorter=256.0)
    return m.fn.crop_mirror_normalize(images, crop=(224, 224), mean=MEAN, std=STD)


def on_cpu_first(m: Any, data: Any) -> Any:
    return shrunk(m, m.fn.decoders.image(data, device="cpu").gpu())


def all_on_cpu(m: Any, data: Any) -> Any:
    return shrunk(m, m.fn.decoders.image(data, device="cpu")).gpu()


def on_host(outputs: Any) -> object:
    return [batch.as_cpu() for batch in outputs]


def rows() -> Iterator[Row]:
    """Yield all rows."""
    frames, moved = functools.partial(made, frame), 1080 * 1920 * 3
    yield Row("64 frames of 1080p to the GPU, resize 224, normalize", resized, frames, "HWC", moved_bytes=moved)
    yield Row("64 WAV files decoded, to the GPU, mel", _from_wav, functools.partial(made, wav))
    to_mel: Work = lambda m, x: spectrum(m, x.gpu())  # noqa: E731
    yield Row("64 sounds of 5 s to the GPU, mel", to_mel, functools.partial(made, sound))
    yield Row("64 sounds of 2 to 8 s to the GPU, mel", to_mel, functools.partial(made, varied_sound))
    small = functools.partial(made, small_jpegs)
    yield Row("64 small JPEGs decoded on the CPU, to the GPU, A", on_cpu_first, small)
    yield Row("A of 64 small JPEGs on the CPU, to the GPU", all_on_cpu, small)
    for name, make in FORMATS.items():
        yield Row(f"A of 64 {name}", a(True), functools.partial(made, make))
    mixed = in_turn([jpegs, FORMATS["PNGs"], FORMATS["WebPs"], FORMATS["BMPs"]])
    yield Row("A of 64 files of four formats", a(True), functools.partial(made, mixed))
    loaded: dict[str, Work] = {f"DALI, hw_decoder_load={BEST_LOAD}": a(True, BEST_LOAD)}
    by_cpu: dict[str, Work] = {"DALI, decoded on the CPU": on_cpu_first}
    progressive, kinds = JPEG_KINDS["progressive"], in_turn([*JPEG_KINDS.values()])
    yield Row("A of 64 progressive JPEGs", a(True), functools.partial(made, progressive), dali=by_cpu)
    yield Row("A of 64 JPEGs of four kinds", a(True), functools.partial(made, kinds), dali=loaded)
    many, many_small = functools.partial(made, jpegs, MANY), functools.partial(made, small_jpegs, MANY)
    yield Row("A of one JPEG, new sizes", a(True), many, batch=1, dali=loaded)
    yield Row("A of one small JPEG, new sizes", a(True), many_small, batch=1, dali=loaded)
    yield Row("A of 8 small JPEGs, new sizes", a(True), many_small, batch=8, dali=loaded)
    yield Row("A of 64 JPEGs from a reader", a(True), many, dali=loaded, from_files=True)
    yield Row("A of 64 small JPEGs from a reader", a(True), many_small, dali=loaded, from_files=True)
    yield Row(
        "64 frames of 1080p on the GPU, resize 224, random mirror, normalize", e_mirrored, frames, "HWC", on_gpu=True
    )
    yield Row("frames to the GPU, resize 224, normalize, to the host", resized, frames, "HWC", on_host)


def chosen(patterns: Sequence[str]) -> Iterator[Row]:
    """Yield each row whose name matches a pattern once, in the order of the patterns."""
    left = list(rows())
    for pattern in patterns:
        yield from (row for row in left if re.search(pattern, row.name))
        left = [row for row in left if not re.search(pattern, row.name)]


def _from_wav(m: Any, data: Any) -> Any:
    signal, _ = m.fn.decoders.audio(data, dtype=m.types.FLOAT, downmix=True)
    return spectrum(m, signal.gpu())


def candidates(row: Row, names: Sequence[str], threads: int, folder: Path) -> dict[str, Run]:
    """Return the functions that run a batch of the row, by candidate; ``folder``: where to write files that are read."""
    store, runs = placed(row), dict[str, Run]()
    files = written(store, folder) if row.from_files else []

    def read(work: Work) -> Any:
        return lambda m: work(m, m.fn.readers.file(files=files, random_shuffle=True, seed=1)[0])

    sources = [] if row.from_files else [drawn(store, row.batch)]
    works = {name: (MODULES[name], row.work) for name in names}
    works |= {name: (MODULES["DALI"], work) for name, work in row.dali.items() if "DALI" in names}
    for name, (module, work) in works.items():
        own = read(work) if row.from_files else work
        run = prepared(module, own, sources, threads, True, row.layout, batch_size=row.batch, on_gpu=row.on_gpu)
        runs[name] = _with(run, row.after) if row.after else run
    return runs


def placed(row: Row) -> list[Any]:
    """Return a row's samples in GPU memory or in host memory, whichever the pipeline's input is in."""
    if not row.on_gpu:
        return row.store()
    import cupy

    return list(map(cupy.asarray, row.store()))


def written(store: Sequence[np.ndarray], folder: Path) -> list[str]:
    """Write samples to files; return their paths."""
    paths = [folder / f"{number}.jpg" for number in range(len(store))]
    for path, data in zip(paths, store):
        path.write_bytes(data.tobytes())
    return list(map(str, paths))


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
    parser.add_argument(
        "--filter", nargs="*", default=[""], help="rows whose names match these regular expressions, in this order"
    )
    parser.add_argument("--json", type=Path, help="where to write the figures, after each row")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    console = Console(width=150)
    console.print(headline(), highlight=False)
    names = [options.only] if options.only else list(MODULES)
    console.print(f"{'ms a batch':68}", *(f"{name:>9}" for name in names), "  DALI / Penstock    GB/s")
    kept = []
    for row in chosen(options.filter):
        with tempfile.TemporaryDirectory() as folder:
            runs = candidates(row, names, options.threads, Path(folder))
            times = in_turns(runs, gpu_ms, options.rounds, options.seconds)
            del runs
        kept.append({"work": row.name, "ms": {name: time / row.batch for name, time in times.items()}})
        others = {name: times.pop(name) for name in row.dali if name in times}
        best = min([*others.values(), times["DALI"]]) if "DALI" in times else 0.0
        ratio = f"{best / times['Penstock']:.2f}" if len(times) == len(MODULES) else ""
        speed = f"{row.moved_bytes * row.batch / min(times.values()) / 1e6:.1f}" if row.moved_bytes else ""
        console.print(
            f"{row.name:68}",
            *(f"{time:9.2f}" for time in times.values()),
            f"{ratio:>17} {speed:>7}",
            *(f" {name}: {time:.2f}" for name, time in others.items()),
            highlight=False,
        )
        keep("uploads", kept, options.json)


if __name__ == "__main__":
    main()
