"""Decoding of files on the CPU: with Penstock, with DALI, and with libraries that programs call directly.

    python tests/benchmarks/files.py [--images FOLDER] [--filter NAME] [--json FILE]

Needs DALI, OpenCV, Pillow, simplejpeg, PyAV and soundfile in the same environment; torchvision is measured if it is installed. A figure is
milliseconds of processor time for one file, on one thread: the median of interleaved rounds. Each run decodes other files, of other
sizes, than the run before it; images are cut from photographs. There are 16 files of each format, or 8 if they take long to write.
Recordings are tones and noise of 1 to 10 s. Pipelines consist of a decoder only, which gets the files' bytes. The libraries get the same
bytes, and return arrays of RGB pixels, or of float32 samples.
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
import simplejpeg
import soundfile
from PIL import Image
from pipelines import PHOTOGRAPHS
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, pipeline_of
from turns import Run, cpu_ms, headline, in_turns, keep
from video import Clip, write_clip

try:
    import torch
except ImportError:
    torch = None

FILES, BATCH = 16, 4
_LARGE_BATCH = 64
# The batch size and the number of files, for formats that take long to write.
_SLOW = 2, 8
# OpenCV cannot choose a scale by itself: it decodes files of at least this many bytes at 1/8 of their size, smaller ones at 1/2.
_LARGE_JPEG = 1 << 20
RATE = 16_000
_FRAMES, _SIDE = 64, 224
Decode = Callable[[np.ndarray], Any]


@dataclass
class Row:
    """One row of the table.

    Attributes:
        name: the row's name.
        make: a function that makes a file, by its number.
        work: a function from a module and the encoded files to the output.
        peers: other libraries' functions that decode one file, by library.
        batch: the number of files in each run.
        count: the number of files.
        reason: what limits Penstock; shown in the table if it is not well ahead of all peers.
    """

    name: str
    make: Callable[[int], bytes]
    work: Callable[[Any, Any], Any]
    peers: dict[str, Decode] = field(default_factory=dict)
    batch: int = BATCH
    count: int = FILES
    reason: str = ""


_PILLOW = "Pillow's own decoder, and a copy of its pixels: 0.5 ms a megapixel"
_SOUNDFILE = "libsndfile itself decodes, with the same bits"
_WEBP = "libwebp itself decodes, into the output"
_PIPELINE_RUN = "the run of a pipeline: some 60 us a batch"
_VIDEO = "FFmpeg's decoder takes half of the time, exact colours an eighth, and exact resizing a quarter"
_SWSCALE = "FFmpeg itself decodes and resizes"
_CODES = "reading the codes, of which there are as many at any scale"
_COPY = "a copy, as in the peer, and the run of a pipeline: some 60 us a batch"
_FLAC = "each code begins where the one before ends, which takes two thirds of the time, and predictions build on each other"

# -- images ------------------------------------------------------------------------------------------------------------


def _to_opencv(file: np.ndarray) -> Any:
    return cv2.imdecode(file, cv2.IMREAD_COLOR_RGB)


def _to_pillow(file: np.ndarray) -> Any:
    return np.asarray(Image.open(io.BytesIO(file.data)).convert("RGB"))


def _to_simplejpeg(file: np.ndarray) -> Any:
    return simplejpeg.decode_jpeg(file.data)


def _to_torchvision(file: np.ndarray) -> Any:
    from torchvision.io import ImageReadMode, decode_image

    return decode_image(torch.from_numpy(file), ImageReadMode.RGB)


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
    # DALI's decoder has no argument `scale`, and decodes at full size.
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

    both = {"OpenCV": _to_opencv, "Pillow": _to_pillow} | ({} if torch is None else {"torchvision": _to_torchvision})
    jpeg = both | {"simplejpeg": _to_simplejpeg}
    reduced = {"OpenCV": _reduced_by_opencv, "Pillow": _reduced_by_pillow}
    rows = [
        Row("JPEG", saved("JPEG", quality=85), _decoded, jpeg),
        Row("JPEG, progressive", saved("JPEG", quality=85, progressive=True), _decoded, jpeg),
        Row("JPEG, grey, to RGB", saved("JPEG", "L", quality=85), _decoded, jpeg),
        Row("JPEG, scale fast, to 224x224", saved("JPEG", quality=85), _reduced, reduced, reason=_CODES),
        Row("JPEG of 12 Mpx, scale fast, to 224x224", large, _reduced, reduced, 2, 4),
        Row(
            "JPEG of 12 Mpx, progressive, scale fast, to 224x224",
            lambda n: large(n, True),
            _reduced,
            reduced,
            2,
            4,
            _CODES,
        ),
        Row("PNG", saved("PNG"), _decoded, both),
        Row("PNG, to 224x224", saved("PNG"), _resized, {"OpenCV": _resized_by_opencv, "Pillow": _resized_by_pillow}),
        Row("PNG, grey", saved("PNG", "L"), _decoded, both),
        Row("PNG, palette", saved("PNG", "P"), _decoded, both),
        Row("PNG, with alpha", saved("PNG", "RGBA"), _decoded, both),
        Row("PNG, 16 bits", deep, _decoded, {"OpenCV": _to_opencv}),
        Row("PNG, 32x32", saved("PNG", side=32), _decoded, both, reason=_PIPELINE_RUN),
        Row(
            "PNG, 32x32, batch of 64",
            saved("PNG", side=32),
            _decoded,
            both,
            _LARGE_BATCH,
            4 * _LARGE_BATCH,
            _PIPELINE_RUN,
        ),
        Row("WebP", saved("WEBP", quality=85), _decoded, both, reason=_WEBP),
        Row("WebP, lossless", saved("WEBP", lossless=True, method=1), _decoded, both, reason=_WEBP),
        Row("BMP", saved("BMP"), _decoded, both, reason=_COPY),
        Row("TIFF", saved("TIFF"), _decoded, both),
        Row("TIFF, deflate", saved("TIFF", compression="tiff_adobe_deflate"), _decoded, both, reason=_PILLOW),
        Row("TIFF, LZW", saved("TIFF", compression="tiff_lzw"), _decoded, both, reason=_PILLOW),
        Row("GIF", saved("GIF", "P"), _decoded, both, reason=_PILLOW),
        Row("AVIF", saved("AVIF", speed=9), _decoded, both, *_SLOW, _PILLOW),
        Row("JPEG 2000", saved("JPEG2000", quality_mode="rates", quality_layers=[20]), _decoded, both, *_SLOW, _PILLOW),
    ]
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return rows
    register_heif_opener(thumbnails=False)
    return [*rows, Row("HEIC", saved("HEIF"), _decoded, {"Pillow": _to_pillow}, *_SLOW, _PILLOW)]


# -- sounds and videos -------------------------------------------------------------------------------------------------


def _by_soundfile(file: np.ndarray) -> Any:
    return soundfile.read(io.BytesIO(file.data), dtype="float32")


def _by_av(file: np.ndarray) -> Any:
    with av.open(io.BytesIO(file.data)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
    return np.concatenate(frames, axis=1)


def _heard(module: Any, files: Any) -> Any:
    return tuple(module.fn.decoders.audio(files))


def _mixed(module: Any, files: Any) -> Any:
    return tuple(module.fn.decoders.audio(files, downmix=True))


def _mixed_by_soundfile(file: np.ndarray) -> Any:
    sound, _ = _by_soundfile(file)
    return (sound[:, 0] + sound[:, 1]) * np.float32(0.5)


def _mixed_by_av(file: np.ndarray) -> Any:
    sound = _by_av(file).astype(np.float32).reshape(-1, 2)
    return (sound[:, 0] + sound[:, 1]) * np.float32(0.5)


def _seen(module: Any, files: Any) -> Any:
    frames = module.fn.decoders.video(files, sequence_length=_FRAMES)
    return module.fn.resize(frames, size=(_SIDE, _SIDE))


def _seen_by_swscale(module: Any, files: Any) -> Any:
    # DALI's decoder has no argument `size`, and does not decode H.264 on the CPU.
    return module.fn.decoders.video(files, sequence_length=_FRAMES, size=(_SIDE, _SIDE), interpolation="area")


def _frames_by_av(interpolation: str) -> Decode:
    """Return a function that decodes with PyAV in the fastest way: on one thread, with conversion tables that all frames share."""

    def decode(file: np.ndarray) -> Any:
        reformatter = av.video.reformatter.VideoReformatter()
        options = {"width": _SIDE, "height": _SIDE, "format": "rgb24", "interpolation": interpolation, "threads": 1}
        with av.open(io.BytesIO(file.data)) as container:
            container.streams.video[0].thread_count = 1
            frames = itertools.islice(container.decode(video=0), _FRAMES)
            return np.stack([reformatter.reformat(frame, **options).to_ndarray() for frame in frames])

    return decode


def sound_rows() -> list[Row]:
    """Return rows of recordings."""

    def written(
        kind: str, subtype: str, seconds: tuple[float, float] = (1, 10), channels: int = 1
    ) -> Callable[[int], bytes]:
        def make(number: int) -> bytes:
            rng = np.random.default_rng(number)
            moments = np.arange(int(rng.uniform(*seconds) * RATE))
            tones = np.sin(moments * rng.uniform(0.01, 0.3)) * np.sin(moments / 9000) * 0.5
            sound = tones[:, np.newaxis] + rng.normal(0, 0.01, (len(tones), channels))
            file = io.BytesIO()
            soundfile.write(file, sound, RATE, format=kind, subtype=subtype)
            return file.getvalue()

        return make

    peers = {"soundfile": _by_soundfile, "PyAV": _by_av}
    mixed = {"soundfile": _mixed_by_soundfile, "PyAV": _mixed_by_av}
    stereo = ((30, 31), 2)
    return [
        Row("WAV, 16 bits", written("WAV", "PCM_16"), _heard, peers),
        Row("WAV, 24 bits", written("WAV", "PCM_24"), _heard, peers),
        Row("WAV, floats", written("WAV", "FLOAT"), _heard, peers, reason=_COPY),
        Row("WAV, 16 bits, 30 s of stereo downmixed", written("WAV", "PCM_16", *stereo), _mixed, mixed),
        Row("WAV, floats, 30 s of stereo downmixed", written("WAV", "FLOAT", *stereo), _mixed, mixed),
        Row("FLAC", written("FLAC", "PCM_16"), _heard, peers, reason=_FLAC),
        Row("OGG Vorbis", written("OGG", "VORBIS"), _heard, peers, reason=_SOUNDFILE),
        Row("Opus", written("OGG", "OPUS"), _heard, peers, reason=_SOUNDFILE),
        Row("MP3", written("MP3", "MPEG_LAYER_III"), _heard, peers, reason=_SOUNDFILE),
    ]


def video_rows() -> list[Row]:
    """Return rows of videos: files of H.264 with 64 frames, decoded to 224 x 224 pixels."""

    def make(number: int) -> bytes:
        clip = Clip("libx264", 720, 1280, _FRAMES + number, {"preset": "veryfast", "crf": str(22 + number)})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clip.mp4"
            write_clip(str(path), clip)
            return path.read_bytes()

    area, fast = _frames_by_av("AREA"), _frames_by_av("FAST_BILINEAR")
    name = "H.264, 64 frames of 1280x720, to 224x224"
    return [
        Row(name, make, _seen, {"PyAV, area": area, "PyAV, fast bilinear": fast}, batch=1, count=3, reason=_VIDEO),
        Row(
            f"{name} by swscale, area", make, _seen_by_swscale, {"PyAV, area": area}, batch=1, count=3, reason=_SWSCALE
        ),
    ]


# -- measuring ---------------------------------------------------------------------------------------------------------


def _batches(files: Sequence[np.ndarray], size: int) -> Callable[[], list[np.ndarray]]:
    """Return a function that returns the next ``size`` files in each call; once all have been used, it continues in another order."""
    order = itertools.cycle(np.random.default_rng(0).permutation(len(files)).tolist() + list(range(len(files))))
    return lambda: [files[next(order)] for _ in range(size)]


def candidates(row: Row) -> dict[str, Run]:
    """Return the functions that decode the files of a row, by candidate."""
    files = [np.frombuffer(row.make(number), np.uint8) for number in range(row.count)]
    runs: dict[str, Run] = {}

    def try_out(name: str, make: Callable[[], Run]) -> None:
        try:
            run = make()
            run()
        except Exception as error:
            print(f"{row.name}: {name} has none ({str(error).strip().splitlines()[-1][:90]})")
        else:
            runs[name] = run

    def pipeline_in(module: Any) -> Run:
        batches = [_batches(files, row.batch)]
        run: Run = pipeline_of(module, row.work, batches, 1, False, batch_size=row.batch).run
        return run

    def loop_over(decode: Decode) -> Run:
        batches = _batches(files, row.batch)
        return lambda: [decode(file) for file in batches()]

    for name, module in MODULES.items():
        try_out(name, lambda module=module: pipeline_in(module))
    for name, decode in row.peers.items():
        try_out(name, lambda decode=decode: loop_over(decode))
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
        kept.append({"work": row.name, "ms": ms, "reason": row.reason})
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
