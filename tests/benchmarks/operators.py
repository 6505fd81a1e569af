"""Each operator compared with DALI's, on the same batch, in one process, interleaved.

    python tests/benchmarks/operators.py [--gpu] [--filter resize] [--json FILE]

Needs DALI in the same environment (`make bench` makes one). On CPU a figure is processor time of all threads for each
sample, on GPU (where two batches are on their way, and the inputs lie on the GPU) time; the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from side_by_side import Work, both
from turns import cpu_ms, gpu_ms, headline, in_turns, keep

RATE = 16000
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
TURN = np.array([[0.9, -0.2, 30.0], [0.2, 0.9, -10.0]], np.float32)


def batches(count: int) -> dict[str, tuple[list[np.ndarray], str | None]]:
    """The inputs by name, with their layouts."""
    rng = np.random.default_rng(0)

    def images(height: int, width: int, channels: int = 3) -> list[np.ndarray]:
        return [rng.integers(0, 255, (height, width, channels), np.uint8) for _ in range(count)]

    boxes = rng.random((count, 50, 4), np.float32) / 2
    boxes[..., 2:] += boxes[..., :2]
    sound = [rng.standard_normal(5 * RATE).astype(np.float32) for _ in range(count)]
    power = [rng.random((257, 500), np.float32) for _ in range(count)]
    bands = [rng.random((80, 500), np.float32) for _ in range(count)]
    return {
        "256x256": (images(256, 256), "HWC"),
        "480x640": (images(480, 640), "HWC"),
        "1080x1920": (images(1080, 1920)[: max(1, count // 4)], "HWC"),
        "grey": (images(480, 640, 1), "HWC"),
        "mosaic": ([image[..., 0] for image in images(480, 640, 1)], "HW"),
        "floats": ([image.astype(np.float32) for image in images(256, 256)], "HWC"),
        "frames": ([rng.integers(0, 255, (8, 128, 128, 3), np.uint8) for _ in range(count)], "FHWC"),
        "boxes": (list(boxes), None),
        "5 s": (sound, None),
        "power": (power, "ft"),
        "bands": (bands, "ft"),
    }


def cases(gpu: bool) -> Iterator[tuple[str, str, Work]]:
    """``(operator and arguments, input, work)`` for each row."""
    if gpu:
        yield "jitter", "480x640", lambda m, x: m.fn.jitter(x, seed=1)
    yield from _axis_aligned()
    yield from _warps()
    yield from _colours()
    yield from _filters()
    yield from _elementwise()
    yield from _sound()


def _axis_aligned() -> Iterator[tuple[str, str, Work]]:
    for size in ("256x256", "480x640", "1080x1920"):
        yield "resize 224x224", size, lambda m, x: m.fn.resize(x, size=(224, 224))
        yield (
            "crop_mirror_normalize 224",
            size,
            lambda m, x: m.fn.crop_mirror_normalize(x, crop=(224, 224), mean=MEAN, std=STD, mirror=1),
        )
    yield "resize to double", "480x640", lambda m, x: m.fn.resize(x, size=(960, 1280))
    yield "resize 224, cubic", "480x640", lambda m, x: m.fn.resize(x, size=224, interp_type=m.types.INTERP_CUBIC)
    yield "resize 224, lanczos", "480x640", lambda m, x: m.fn.resize(x, size=224, interp_type=m.types.INTERP_LANCZOS3)
    yield "resize 224, nearest", "480x640", lambda m, x: m.fn.resize(x, size=224, interp_type=m.types.INTERP_NN)
    yield "random_resized_crop", "480x640", lambda m, x: m.fn.random_resized_crop(x, size=(224, 224), seed=1)
    yield (
        "resize_crop_mirror",
        "480x640",
        lambda m, x: m.fn.resize_crop_mirror(x, resize_shorter=256.0, crop=(224, 224), mirror=1),
    )
    yield "crop 224", "480x640", lambda m, x: m.fn.crop(x, crop=(224, 224))
    yield "slice", "480x640", lambda m, x: m.fn.slice(x, 50, 300, axes=[0])
    yield "flip", "480x640", lambda m, x: m.fn.flip(x)
    yield "flip, vertical", "480x640", lambda m, x: m.fn.flip(x, horizontal=0, vertical=1)
    yield "transpose to CHW", "480x640", lambda m, x: m.fn.transpose(x, perm=[2, 0, 1])
    yield "pad", "480x640", lambda m, x: m.fn.pad(x, axes=[0, 1], align=[512, 512])
    yield "paste", "256x256", lambda m, x: m.fn.paste(x, fill_value=(1, 2, 3), ratio=1.5)
    yield "erase", "480x640", lambda m, x: m.fn.erase(x, anchor=(50, 50), shape=(100, 100), axis_names="HW")
    yield "grid_mask", "480x640", lambda m, x: m.fn.grid_mask(x, tile=50)
    yield "sequence_rearrange", "frames", lambda m, x: m.fn.sequence_rearrange(x, new_order=[7, 6, 5, 4, 3, 2, 1, 0])


def _warps() -> Iterator[tuple[str, str, Work]]:
    yield "rotate 10", "480x640", lambda m, x: m.fn.rotate(x, angle=10.0, keep_size=True, fill_value=0)
    yield "warp_affine", "480x640", lambda m, x: m.fn.warp_affine(x, matrix=TURN.ravel().tolist(), fill_value=0)
    yield "sphere", "480x640", lambda m, x: m.fn.sphere(x)
    yield "water", "480x640", lambda m, x: m.fn.water(x)
    yield (
        "coord_transform",
        "boxes",
        lambda m, x: m.fn.coord_transform(x, M=np.eye(4, dtype=np.float32).ravel().tolist()),
    )


def _colours() -> Iterator[tuple[str, str, Work]]:
    yield "brightness", "480x640", lambda m, x: m.fn.brightness(x, brightness=1.2)
    yield "contrast", "480x640", lambda m, x: m.fn.contrast(x, contrast=1.2)
    yield "brightness_contrast", "480x640", lambda m, x: m.fn.brightness_contrast(x, brightness=1.2, contrast=0.9)
    yield "hue", "480x640", lambda m, x: m.fn.hue(x, hue=20.0)
    yield "saturation", "480x640", lambda m, x: m.fn.saturation(x, saturation=1.2)
    yield "hsv", "480x640", lambda m, x: m.fn.hsv(x, hue=20.0, saturation=1.1, value=0.9)
    yield "color_twist", "480x640", lambda m, x: m.fn.color_twist(x, hue=20.0, contrast=1.1)
    yield (
        "RGB to YCbCr",
        "480x640",
        lambda m, x: m.fn.color_space_conversion(x, image_type=m.types.RGB, output_type=m.types.YCbCr),
    )
    yield (
        "RGB to grey",
        "480x640",
        lambda m, x: m.fn.color_space_conversion(x, image_type=m.types.RGB, output_type=m.types.GRAY),
    )
    yield "equalize", "480x640", lambda m, x: m.fn.equalize(x)
    yield "clahe", "grey", lambda m, x: m.fn.clahe(x, tiles_x=8, tiles_y=8, clip_limit=2.0)
    yield (
        "lookup_table",
        "480x640",
        lambda m, x: m.fn.lookup_table(
            x, keys=list(range(255)), values=[float(v) / 255 for v in range(255)], dtype=m.types.FLOAT
        ),
    )
    yield "debayer", "mosaic", lambda m, x: m.fn.debayer(x, blue_position=[0, 0])


def _filters() -> Iterator[tuple[str, str, Work]]:
    kernel = np.full((5, 5), 0.04, np.float32)
    yield "gaussian_blur 5", "480x640", lambda m, x: m.fn.gaussian_blur(x, window_size=5)
    yield "gaussian_blur 15", "480x640", lambda m, x: m.fn.gaussian_blur(x, window_size=15)
    yield "laplacian 3", "480x640", lambda m, x: m.fn.laplacian(x, window_size=3)
    yield "filter 5x5", "480x640", lambda m, x: m.fn.filter(x, kernel)
    yield "noise.gaussian", "480x640", lambda m, x: m.fn.noise.gaussian(x, stddev=10.0, seed=1)
    yield "noise.salt_and_pepper", "480x640", lambda m, x: m.fn.noise.salt_and_pepper(x, seed=1)
    yield "noise.shot", "256x256", lambda m, x: m.fn.noise.shot(x, factor=10.0, seed=1)
    yield "jpeg_compression_distortion", "480x640", lambda m, x: m.fn.jpeg_compression_distortion(x, quality=50)


def _elementwise() -> Iterator[tuple[str, str, Work]]:
    yield "cast to float", "480x640", lambda m, x: m.fn.cast(x, dtype=m.types.FLOAT)
    yield "cast to uint8", "floats", lambda m, x: m.fn.cast(x, dtype=m.types.UINT8)
    yield "x * 2 + 1", "floats", lambda m, x: x * np.float32(2) + np.float32(1)
    yield "x * 0.5, of uint8", "480x640", lambda m, x: x * np.float32(0.5)
    yield "sqrt", "floats", lambda m, x: m.math.sqrt(x)
    yield "normalize", "480x640", lambda m, x: m.fn.normalize(x, axes=[0, 1])
    yield "reductions.mean", "480x640", lambda m, x: m.fn.reductions.mean(x, axes=[0, 1])
    yield "reductions.max", "480x640", lambda m, x: m.fn.reductions.max(x)
    yield "reductions.std_dev", "floats", lambda m, x: m.fn.reductions.std_dev(x, m.fn.reductions.mean(x))
    yield "cat", "480x640", lambda m, x: m.fn.cat(x, x, axis=0)
    yield "stack", "480x640", lambda m, x: m.fn.stack(x, x)
    yield "one_hot", "boxes", lambda m, x: m.fn.one_hot(x, num_classes=10)
    yield "bb_flip", "boxes", lambda m, x: m.fn.bb_flip(x, ltrb=True)


def _sound() -> Iterator[tuple[str, str, Work]]:
    yield "spectrogram", "5 s", lambda m, x: m.fn.spectrogram(x, nfft=512, window_length=400, window_step=160)
    yield "mel_filter_bank", "power", lambda m, x: m.fn.mel_filter_bank(x, sample_rate=float(RATE), nfilter=80)
    yield "to_decibels", "power", lambda m, x: m.fn.to_decibels(x)
    yield "mfcc", "bands", lambda m, x: m.fn.mfcc(x, n_mfcc=20)
    yield "preemphasis_filter", "5 s", lambda m, x: m.fn.preemphasis_filter(x)
    yield "nonsilent_region", "5 s", lambda m, x: tuple(m.fn.nonsilent_region(x))
    yield "audio_resample", "5 s", lambda m, x: m.fn.audio_resample(x, scale=0.5)


def measured(
    work: Work, batch: list[np.ndarray], layout: str | None, gpu: bool, options: argparse.Namespace
) -> dict[str, float]:
    """Milliseconds for each sample, by candidate."""
    samples: list[Any] = batch
    if gpu:
        import cupy

        samples = [cupy.asarray(sample) for sample in batch]
    candidates = both(work, [samples], options.threads, gpu, layout)
    times = in_turns(candidates, gpu_ms if gpu else cpu_ms, options.rounds, options.seconds)
    return {name: time / len(batch) for name, time in times.items()}


def main() -> None:
    """Measures all rows and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="on the GPU (else on the CPU)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each round")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--filter", default="", help="only rows whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=110)
    console.print(headline(), highlight=False)
    what = "time" if options.gpu else "CPU time"
    table = Table("operator", "input", "DALI, ms", "Penstock, ms", "DALI / Penstock", title=f"{what} for each sample")
    inputs, kept = batches(options.batch), []
    for name, source, work in cases(options.gpu):
        if options.filter in name:
            try:
                ms = measured(work, *inputs[source], options.gpu, options)
            except Exception as error:
                console.print(
                    f"{name}: {' '.join(str(error).split())[-150:]}", style="red", highlight=False, markup=False
                )
                continue
            ratio = ms["DALI"] / ms["Penstock"]
            kept.append({"operator": name, "input": source, "ms": ms, "ratio": round(ratio, 3)})
            table.add_row(name, source, f"{ms['DALI']:.4f}", f"{ms['Penstock']:.4f}", f"{ratio:.2f}")
    console.print(table)
    ratios = [row["ratio"] for row in kept]
    ahead, half = sum(ratio >= 1 for ratio in ratios), sum(ratio < 0.5 for ratio in ratios)
    console.print(f"{ahead} of {len(ratios)} at DALI's speed or above, {half} below half of it")
    keep("operators", kept, options.json)


if __name__ == "__main__":
    main()
