"""How long new processes wait for their first batch, and for the slowest one of the next batches.

    python tests/benchmarks/first_batches.py [NAME ...] [--batches N] [--gpu]

Each pipeline runs in a separate process, with an empty HOME and cache. The time of the first batch includes the import of penstock. If
there is a library of compiled kernels, nothing is compiled, and numba is not imported. With --gpu, pipelines A to E run on a GPU, and the
time of the first batch includes creating CUDA's context and copying the outputs to the host.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
BATCH = 32


def encoded(width: int, height: int, count: int) -> list[Any]:
    """Return JPEGs of noise, of different sizes."""
    import numpy as np
    from PIL import Image

    rng, files = np.random.default_rng(0), []
    for number in range(count):
        noise = Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8))
        file = io.BytesIO()
        noise.resize((width + 7 * (number % 5), height + 5 * (number % 7)), Image.Resampling.BICUBIC).save(file, "JPEG")
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return files


def pipeline_of(name: str, gpu: bool) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Return a function that makes a pipeline, and the data that the pipeline is fed."""
    import numpy as np

    from penstock import fn, pipeline_def

    sys.path.insert(0, str(PIPELINES))
    rng = np.random.default_rng(0)
    mean, std = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
    options: dict[str, Any] = {
        "batch_size": BATCH,
        "num_threads": 2,
        "device_id": 0 if gpu else None,
        "prefetch_queue_depth": 1,
    }
    decoders = "mixed" if gpu else "cpu"

    def from_input(work: Any) -> Callable[[], Any]:
        @pipeline_def(**options)
        def define() -> Any:
            data = fn.external_source(name="data", layout="HWC" if name == "E" else None)
            return work(data.gpu() if gpu and name in ("D", "E") else data)

        return define

    def normalized(images: Any, **arguments: Any) -> Any:
        return fn.crop_mirror_normalize(images, mean=mean, std=std, **arguments)

    def decibels(signal: Any) -> Any:
        power = fn.spectrogram(signal, nfft=512, window_length=400, window_step=160)
        power = fn.mel_filter_bank(power, sample_rate=16000.0, nfilter=80)
        return fn.normalize(fn.to_decibels(power, cutoff_db=-80.0), axes=[1])

    def random_crop(data: Any) -> Any:
        images = fn.resize(fn.decoders.image_random_crop(data, device=decoders, seed=1), size=(224, 224))
        return normalized(images, mirror=fn.random.coin_flip(seed=2))

    photographs = {
        "A": lambda data: normalized(
            fn.resize(fn.decoders.image(data, device=decoders), resize_shorter=256.0), crop=(224, 224)
        ),
        "B": lambda data: normalized(fn.resize(fn.decoders.image(data, device=decoders), size=(224, 224))),
        "C": random_crop,
    }
    if name in photographs:
        return from_input(photographs[name]), {"data": encoded(1280, 853, BATCH)}
    if name == "D":
        return from_input(decibels), {"data": [rng.standard_normal(80000).astype(np.float32) for _ in range(BATCH)]}
    if name == "E":
        pixels = [rng.integers(0, 255, (1080, 1920, 3), np.uint8) for _ in range(8)]
        return from_input(lambda data: normalized(fn.resize(data, size=(224, 224)))), {"data": pixels}
    if name in ("digits", "imagenet", "detection"):
        definition = getattr(__import__(f"{name}_preprocess"), f"{name}_preprocess")
        return lambda: definition(**options), {"encoded_image": encoded(640, 480, BATCH)}
    from penstock.presets import preset

    return lambda: preset(PRESETS[name], **options), {"images": encoded(640, 480, BATCH)}


PRESETS = {
    "qwen2-vl": {"image_processor_type": "Qwen2VLImageProcessor"},
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": 224, "crop_size": 224},
}
NAMES = ("A", "B", "C", "D", "E", "digits", "imagenet", "detection", *PRESETS)


def measured(name: str, batches: int, gpu: bool) -> dict[str, Any]:
    """Return the times for which this process, which has just started, waits for batches."""
    begin = time.perf_counter()
    import penstock.fn

    imported = time.perf_counter() - begin
    make, fed = pipeline_of(name, gpu)
    begun = time.perf_counter()
    pipeline, times = make(), list[float]()
    for _ in range(batches + 1):
        outputs = pipeline.run(**fed)
        if gpu:
            [output.as_cpu() for output in outputs]
        times.append(time.perf_counter())
    later = sorted(end - start for start, end in itertools.pairwise(times)) or [0.0]
    return {
        "name": name,
        "first": imported + times[0] - begun,
        "imports": imported,
        "package": penstock.__file__,
        "slowest": later[-1],
        "median": later[len(later) // 2],
        "numba": "numba" in sys.modules,
    }


def main() -> None:
    """Measure all cases, or those on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of pipelines: {', '.join(NAMES)}; all of them if none"
    )
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--gpu", action="store_true", help="on GPU 0: A to E")
    parser.add_argument("--here", action="store_true", help="in this process, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured(options.names[0], options.batches, options.gpu)))
        return
    if unknown := set(options.names).difference(NAMES):
        parser.error(f"there is no pipeline {', '.join(sorted(unknown))}")
    names = options.names or [name for name in NAMES if not options.gpu or name in "ABCDE"]
    print(f"{'pipeline':<12}{'first batch':>12}{'imports':>9}{'slowest':>9}{'median':>9}  numba")
    for name in names:
        with tempfile.TemporaryDirectory() as home:
            variables = {"HOME": home, "NUMBA_CACHE_DIR": f"{home}/kernels", "XDG_CACHE_HOME": f"{home}/cache"}
            command = [
                sys.executable,
                __file__,
                name,
                "--here",
                "--batches",
                str(options.batches),
                *(["--gpu"] if options.gpu else []),
            ]
            done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        row = json.loads(done.stdout.splitlines()[-1])
        figures = "".join(f"{row[key]:9.3f}" for key in ("imports", "slowest", "median"))
        print(f"{name:<12}{row['first']:12.3f}{figures}  {'imported' if row['numba'] else 'not imported'}", flush=True)


if __name__ == "__main__":
    main()
