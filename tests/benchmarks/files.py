"""Decoding of files other than JPEGs on the CPU: in Penstock, in DALI, and by the libraries that programs call themselves.

    python tests/benchmarks/files.py [--images FOLDER] [--filter NAME] [--json FILE]

Needs DALI, OpenCV, Pillow, PyAV and soundfile in the same environment. A figure is milliseconds of processor time for one file, on one
thread: the median of interleaved rounds. Each run decodes other files than the one before, of other sizes; 16 in all, 8 of formats
that take long to write, cut from photographs. Recordings are tones and noise of 1 to 10 s. The pipelines hold a decoder alone, and get
the files' bytes; so do the others, which return arrays in RGB, or of float32.
"""

from __future__ import annotations

import argparse
import io
import itertools
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import soundfile
from PIL import Image
from pipelines import PHOTOGRAPHS
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, pipeline_of
from turns import Run, cpu_ms, headline, in_turns, keep
from video import Clip, write_clip

FILES, BATCH = 16, 4
# The batch and the files of formats that take long to write.
_SLOW = 2, 8
# Bytes from which OpenCV, which takes no hint of the size, decodes at 1/8.
_LARGE_JPEG = 1 << 20
RATE = 16_000
_FRAMES, _SIDE = 64, 224
Decode = Callable[[np.ndarray], Any]


@dataclass
class Row:
    """One row.

    Attributes:
        name: of the row.
        make: a file of its number.
        work: from a module and the encoded files to the output.
        peers: libraries that decode one file.
        batch: files in each run.
        count: of files.
    """

    name: str
    make: Callable[[int], bytes]
    work: Callable[[Any, Any], Any]
    peers: dict[str, Decode] = field(default_factory=dict)
    batch: int = BATCH
    count: int = FILES


# -- images ------------------------------------------------------------------------------------------------------------


def _to_opencv(file: np.ndarray) -> Any:
    return cv2.imdecode(file, cv2.IMREAD_COLOR_RGB)


def _to_pillow(file: np.ndarray) -> Any:
    return np.asarray(Image.open(io.BytesIO(file.data)).convert("RGB"))


def _resized_by_opencv(file: np.ndarray) -> Any:
    return cv2.resize(_to_opencv(file), (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)


def _resized_by_pillow(file: np.ndarray) -> Any:
    image = Image.open(io.BytesIO(file.data)).convert("RGB")
    return np.asarray(image.resize((_SIDE, _SIDE), Image.Resampling.BILINEAR))


def _decoded(module: Any, files: Any) -> Any:
    return module.fn.decoders.image(files)


def _resized(module: Any, files: Any) -> Any:
    return module.fn.resize(module.fn.decoders.image(files), size=(_SIDE, _SIDE), antialias=True)


def _reduced(module: Any, files: Any) -> Any:
    # DALI has no such decoder: it decodes at full size.
    scale = {"scale": "fast"} if module is MODULES["Penstock"] else {}
    return module.fn.resize(module.fn.decoders.image(files, **scale), size=(_SIDE, _SIDE), antialias=True)


def _reduced_by_opencv(file: np.ndarray) -> Any:
    flag = cv2.IMREAD_REDUCED_COLOR_2 if file.size < _LARGE_JPEG else cv2.IMREAD_REDUCED_COLOR_8
    return cv2.resize(cv2.imdecode(file, flag), (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)


def _reduced_by_pillow(file: np.ndarray) -> Any:
    image = Image.open(io.BytesIO(file.data))
    image.draft("RGB", (int(1.5 * _SIDE),) * 2)
    return np.asarray(image.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BILINEAR))


def image_rows(folder: Path) -> list[Row]:
    """Return rows of images, cut from the photographs of a folder."""
    photographs = [Image.open(path).convert("RGB") for path in sorted(folder.glob("*.jp*g"))]

    def part(number: int, side: int = 0) -> Image.Image:
        whole = photographs[number % len(photographs)]
        rng = np.random.default_rng(number)
        width, height = [side] * 2 if side else (int(rng.integers(n // 2, n)) for n in whole.size)
        left, top = int(rng.integers(whole.width - width + 1)), int(rng.integers(whole.height - height + 1))
        return whole.crop((left, top, left + width, top + height))

    def saved(kind: str, mode: str = "RGB", side: int = 0, **options: Any) -> Callable[[int], bytes]:
        def make(number: int) -> bytes:
            file, image = io.BytesIO(), part(number, side)
            if mode == "RGBA":
                image.putalpha(image.convert("L"))
            image.convert(mode).save(file, kind, **options)
            return file.getvalue()

        return make

    def deep(number: int) -> bytes:
        pixels = np.asarray(part(number)).astype(np.uint16)
        return bytes(cv2.imencode(".png", pixels * 256 + pixels[::-1] % 16)[1])

    def large(number: int, progressive: bool = False) -> bytes:
        file = io.BytesIO()
        whole = photographs[number % len(photographs)].resize((4000 + number, 3000), Image.Resampling.BICUBIC)
        whole.save(file, "JPEG", quality=85, progressive=progressive)
        return file.getvalue()

    both = {"OpenCV": _to_opencv, "Pillow": _to_pillow}
    reduced = {"OpenCV": _reduced_by_opencv, "Pillow": _reduced_by_pillow}
    rows = [
        Row("JPEG, scale fast, to 224x224", saved("JPEG", quality=85), _reduced, reduced),
        Row("JPEG of 12 Mpx, scale fast, to 224x224", large, _reduced, reduced, 2, 4),
        Row("JPEG of 12 Mpx, progressive, scale fast, to 224x224", lambda n: large(n, True), _reduced, reduced, 2, 4),
        Row("PNG", saved("PNG"), _decoded, both),
        Row("PNG, to 224x224", saved("PNG"), _resized, {"OpenCV": _resized_by_opencv, "Pillow": _resized_by_pillow}),
        Row("PNG, grey", saved("PNG", "L"), _decoded, both),
        Row("PNG, palette", saved("PNG", "P"), _decoded, both),
        Row("PNG, with alpha", saved("PNG", "RGBA"), _decoded, both),
        Row("PNG, 16 bits", deep, _decoded, {"OpenCV": _to_opencv}),
        Row("PNG, 32x32", saved("PNG", side=32), _decoded, both),
        Row("WebP", saved("WEBP", quality=85), _decoded, both),
        Row("WebP, lossless", saved("WEBP", lossless=True, method=1), _decoded, both),
        Row("BMP", saved("BMP"), _decoded, both),
        Row("TIFF", saved("TIFF"), _decoded, both),
        Row("TIFF, deflate", saved("TIFF", compression="tiff_adobe_deflate"), _decoded, both),
        Row("TIFF, LZW", saved("TIFF", compression="tiff_lzw"), _decoded, both),
        Row("GIF", saved("GIF", "P"), _decoded, both),
        Row("AVIF", saved("AVIF", speed=9), _decoded, both, *_SLOW),
        Row("JPEG 2000", saved("JPEG2000", quality_mode="rates", quality_layers=[20]), _decoded, both, *_SLOW),
    ]
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return rows
    register_heif_opener(thumbnails=False)
    return [*rows, Row("HEIC", saved("HEIF"), _decoded, {"Pillow": _to_pillow}, *_SLOW)]


# -- sounds and videos -------------------------------------------------------------------------------------------------


def _by_soundfile(file: np.ndarray) -> Any:
    return soundfile.read(io.BytesIO(file.data), dtype="float32")


def _by_av(file: np.ndarray) -> Any:
    with av.open(io.BytesIO(file.data)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
    return np.concatenate(frames, axis=1)


def _heard(module: Any, files: Any) -> Any:
    return tuple(module.fn.decoders.audio(files))


def _seen(module: Any, files: Any) -> Any:
    frames = module.fn.decoders.video(files, sequence_length=_FRAMES)
    return module.fn.resize(frames, size=(_SIDE, _SIDE))


def _frames_by_av(file: np.ndarray) -> Any:
    with av.open(io.BytesIO(file.data)) as container:
        container.streams.video[0].thread_count = 1
        frames = itertools.islice(container.decode(video=0), _FRAMES)
        return np.stack([frame.to_ndarray(format="rgb24", width=_SIDE, height=_SIDE) for frame in frames])


def sound_rows() -> list[Row]:
    """Return rows of recordings."""

    def written(kind: str, subtype: str) -> Callable[[int], bytes]:
        def make(number: int) -> bytes:
            rng = np.random.default_rng(number)
            moments = np.arange(int(rng.uniform(1, 10) * RATE))
            tones = np.sin(moments * rng.uniform(0.01, 0.3)) * np.sin(moments / 9000) * 0.5
            file = io.BytesIO()
            soundfile.write(file, tones + rng.normal(0, 0.01, tones.shape), RATE, format=kind, subtype=subtype)
            return file.getvalue()

        return make

    kinds = {
        "WAV, 16 bits": ("WAV", "PCM_16"),
        "WAV, floats": ("WAV", "FLOAT"),
        "FLAC": ("FLAC", "PCM_16"),
        "OGG Vorbis": ("OGG", "VORBIS"),
        "Opus": ("OGG", "OPUS"),
        "MP3": ("MP3", "MPEG_LAYER_III"),
    }
    peers = {"soundfile": _by_soundfile, "PyAV": _by_av}
    return [Row(name, written(*kind), _heard, peers) for name, kind in kinds.items()]


def video_rows() -> list[Row]:
    """Return the row of videos: files of H.264, 64 frames, to 224x224."""

    def make(number: int) -> bytes:
        clip = Clip("libx264", 720, 1280, _FRAMES + number, {"preset": "veryfast", "crf": str(22 + number)})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clip.mp4"
            write_clip(str(path), clip)
            return path.read_bytes()

    return [Row("H.264, 64 frames of 1280x720, to 224x224", make, _seen, {"PyAV": _frames_by_av}, batch=1, count=3)]


# -- measuring ---------------------------------------------------------------------------------------------------------


def _batches(files: Sequence[np.ndarray], size: int) -> Callable[[], list[np.ndarray]]:
    """Give other files each time, in another order after all have come."""
    order = itertools.cycle(np.random.default_rng(0).permutation(len(files)).tolist() + list(range(len(files))))
    return lambda: [files[next(order)] for _ in range(size)]


def candidates(row: Row) -> dict[str, Run]:
    """Return all that decode the files of a row."""
    files = [np.frombuffer(row.make(number), np.uint8) for number in range(row.count)]
    runs: dict[str, Run] = {}
    for name, module in MODULES.items():
        pipeline = pipeline_of(module, row.work, [_batches(files, row.batch)], 1, False, batch_size=row.batch)
        runs[name] = pipeline.run
    for name, decode in row.peers.items():
        batches = _batches(files, row.batch)
        runs[name] = lambda decode=decode, batches=batches: [decode(file) for file in batches()]
    for name, run in list(runs.items()):
        try:
            run()
        except Exception as error:
            print(f"{row.name}: {name} has none ({str(error).strip().splitlines()[-1][:90]})")
            del runs[name]
    return runs


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=PHOTOGRAPHS, help="a folder of JPEG files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round")
    parser.add_argument("--filter", nargs="*", default=[""], help="only rows whose name begins with one of these")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cv2.setNumThreads(1)
    table = Table("files", "Penstock, ms", "DALI", "others", "best peer / Penstock", title="one file, processor time")
    kept = []
    for row in [*image_rows(options.images), *sound_rows(), *video_rows()]:
        if not row.name.startswith(tuple(options.filter)):
            continue
        times = in_turns(candidates(row), cpu_ms, options.rounds, options.seconds)
        ms = {name: took / row.batch for name, took in times.items()}
        kept.append({"work": row.name, "ms": ms})
        print(row.name, {name: round(took, 3) for name, took in ms.items()}, flush=True)
        others = ", ".join(f"{name} {took:.3f}" for name, took in ms.items() if name not in MODULES)
        best = min((took for name, took in ms.items() if name != "Penstock"), default=0)
        dali = f"{ms['DALI']:.3f}" if "DALI" in ms else ""
        table.add_row(row.name, f"{ms['Penstock']:.3f}", dali, others, f"{best / ms['Penstock']:.2f}")
    console = Console(width=130)
    console.print(headline(), highlight=False)
    console.print(table)
    keep("files", kept, options.json)


if __name__ == "__main__":
    main()
