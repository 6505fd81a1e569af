"""Videos in Penstock and in DALI: sequences from files, and decoding of their contents.

    python tests/benchmarks/video.py [--gpu] [--threads N] [--json FILE]

Needs DALI and PyAV in the same environment. Figures are milliseconds for one batch, the median of interleaved rounds; with
``--gpu``, both libraries decode with the video engine. Two batches are prefetched, as in a training loop. On the CPU, DALI supports only
VP9 and MJPEG; on a GPU, the codecs that the video engine supports. Data are in the page cache; the benchmark makes the clips itself.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES
from turns import cpu_ms, gpu_ms, headline, in_turns, keep

FRAMES_IN_SEQUENCE = 16


@dataclass
class Clip:
    """A file to make: its codec, the size of its frames, and the number of frames."""

    codec: str
    height: int
    width: int
    frames: int
    options: dict[str, str]


CLIPS = {
    "h264.mp4": Clip("libx264", 1080, 1920, 240, {"preset": "veryfast", "crf": "26"}),
    "hevc.mp4": Clip("libx265", 1080, 1920, 120, {"preset": "ultrafast", "x265-params": "log-level=none:keyint=30"}),
    "vp9.webm": Clip("libvpx-vp9", 720, 1280, 120, {"cpu-used": "8", "deadline": "realtime", "row-mt": "1"}),
    "av1.mp4": Clip("libsvtav1", 720, 1280, 120, {"preset": "12"}),
    "small.mp4": Clip("libx264", 240, 320, 900, {"preset": "veryfast"}),
    "small.webm": Clip("libvpx-vp9", 240, 320, 300, {"cpu-used": "8", "deadline": "realtime"}),
    "small.avi": Clip("mjpeg", 240, 320, 300, {}),
}
SHORT_FILES = 32


@dataclass
class Decoding:
    """One row of the table.

    Attributes:
        name: the row's name.
        define: a function from a module, the folder with the clips and the device to the outputs.
        batch: the number of samples in each run.
        frames: the number of frames in a sample.
        only_gpu: whether DALI supports this work on GPUs only.
    """

    name: str
    define: Callable[[Any, str, str], Any]
    batch: int = 8
    frames: int = FRAMES_IN_SEQUENCE
    only_gpu: bool = True


def _read(files: list[str], module: Any, folder: str, device: str, **arguments: Any) -> Any:
    paths = [f"{folder}/{file}" for file in files]
    return module.fn.experimental.readers.video(
        device=device, filenames=paths, sequence_length=FRAMES_IN_SEQUENCE, **arguments
    )


def _read_on_gpu(files: list[str], module: Any, folder: str, device: str, **arguments: Any) -> Any:
    paths = [f"{folder}/{file}" for file in files]
    reader = module.fn.readers.video_resize if "size" in arguments else module.fn.readers.video
    return reader(device=device, filenames=paths, sequence_length=FRAMES_IN_SEQUENCE, **arguments)


def _decode(file: str, module: Any, folder: str, device: str) -> Any:
    encoded, _ = module.fn.readers.file(files=[f"{folder}/{file}"])
    mixed = "mixed" if device == "gpu" else "cpu"
    return module.fn.decoders.video(encoded, device=mixed, start_frame=40, sequence_length=FRAMES_IN_SEQUENCE)


def decodings() -> list[Decoding]:
    """Return all rows."""
    short = [f"short{number}.mp4" for number in range(SHORT_FILES)]
    return [
        Decoding("readers.video, H.264, 1920x1080", partial(_read_on_gpu, ["h264.mp4"])),
        Decoding("the same, shuffled", partial(_read_on_gpu, ["h264.mp4"], random_shuffle=True)),
        Decoding("the same, resized to 224x224", partial(_read_on_gpu, ["h264.mp4"], size=[224, 224])),
        Decoding("readers.video, H.264, 320x240", partial(_read_on_gpu, ["small.mp4"])),
        Decoding("readers.video, 32 files of 16 frames", partial(_read_on_gpu, short)),
        Decoding("experimental.readers.video, H.264, 1920x1080", partial(_read, ["h264.mp4"])),
        Decoding("experimental.readers.video, HEVC, 1920x1080", partial(_read, ["hevc.mp4"])),
        Decoding("experimental.readers.video, VP9, 1280x720", partial(_read, ["vp9.webm"]), only_gpu=False),
        Decoding("experimental.readers.video, AV1, 1280x720", partial(_read, ["av1.mp4"])),
        Decoding("experimental.readers.video, VP9, 320x240", partial(_read, ["small.webm"]), only_gpu=False),
        Decoding("experimental.readers.video, MJPEG, 320x240", partial(_read, ["small.avi"]), only_gpu=False),
        Decoding("decoders.video, H.264, 1920x1080", partial(_decode, "h264.mp4")),
        Decoding("decoders.video, H.264, 320x240", partial(_decode, "small.mp4")),
        Decoding("decoders.video, VP9, 320x240", partial(_decode, "small.webm"), only_gpu=False),
    ]


# -- the data ----------------------------------------------------------------------------------------------------------


def write_clip(path: str, clip: Clip) -> None:
    """Write a clip of a texture that moves."""
    coarse = np.random.default_rng(0).integers(20, 236, (clip.height // 8 + 40, clip.width // 8 + 40, 3), np.uint8)
    height, width = 8 * coarse.shape[0], 8 * coarse.shape[1]
    texture = av.VideoFrame.from_ndarray(coarse, format="rgb24").reformat(width, height, "rgb24").to_ndarray()
    with av.open(path, "w") as file:
        stream = file.add_stream(clip.codec, rate=30, options=clip.options)
        stream.width, stream.height, stream.pix_fmt = clip.width, clip.height, "yuv420p"
        if clip.codec == "mjpeg":
            stream.pix_fmt = "yuvj420p"
        stream.codec_context.gop_size = 30
        for number in range(clip.frames):
            down, right = number * 3 % 300, number * 5 % 300
            part = np.ascontiguousarray(texture[down : down + clip.height, right : right + clip.width])
            file.mux(stream.encode(av.VideoFrame.from_ndarray(part, format="rgb24")))
        file.mux(stream.encode())


def write_clips(folder: Path) -> None:
    """Write all clips."""
    for name, clip in CLIPS.items():
        write_clip(str(folder / name), clip)
    for number in range(SHORT_FILES):
        write_clip(str(folder / f"short{number}.mp4"), Clip("libx264", 360, 640, 16, {"preset": "veryfast"}))


# -- measuring ---------------------------------------------------------------------------------------------------------


def _running(module: Any, row: Decoding, folder: str, threads: int, gpu: bool) -> Callable[[], Any]:
    @module.pipeline_def(
        batch_size=row.batch, num_threads=threads, device_id=0 if gpu else None, prefetch_queue_depth=2
    )
    def define() -> Any:
        return row.define(module, folder, "gpu" if gpu else "cpu")

    pipeline = define()
    pipeline.build()
    return pipeline.run


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="decode on the GPU")
    parser.add_argument("--threads", type=int, default=2, help="of each pipeline")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round")
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=130)
    console.print(headline(), highlight=False)
    table = Table("videos", "DALI, ms", "Penstock", "ratio", "frames/s", title="one batch")
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        write_clips(Path(folder))
        for row in decodings():
            if options.filter not in row.name or (row.only_gpu and not options.gpu):
                continue
            candidates = {}
            for name, module in MODULES.items():
                try:
                    candidates[name] = _running(module, row, folder, options.threads, options.gpu)
                except RuntimeError as error:
                    console.print(f"{row.name}: {name} has none ({str(error).strip().splitlines()[-1]})")
            ms = in_turns(candidates, gpu_ms if options.gpu else cpu_ms, options.rounds, options.seconds)
            kept.append({"work": row.name, "samples": row.batch, "frames": row.frames, "ms": ms})
            speed = row.batch * row.frames / ms["Penstock"] * 1e3
            other = ms.get("DALI")
            beside = ("", "") if other is None else (f"{other:.2f}", f"{other / ms['Penstock']:.2f}")
            table.add_row(row.name, beside[0], f"{ms['Penstock']:.2f}", beside[1], f"{speed:.0f}")
            del candidates
    console.print(table)
    keep("video", kept, options.json)


if __name__ == "__main__":
    main()
