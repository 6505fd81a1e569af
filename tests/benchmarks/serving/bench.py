"""Speed and memory of preprocessing in Triton, compared with other ways to do it, in one run.

    python tests/benchmarks/serving/bench.py --dali-env ENVIRONMENT

Encoded photographs are sent over HTTP to the model `imagenet_preprocess`, and to models that do the same work with

- DALI:     real DALI in a plain Triton Python model (only with --dali-env or $PENSTOCK_DALI_ENV: an environment with
            nvidia-dali, numpy 1.26 and the serving environment's version of Python);
- Pillow:   Pillow and numpy in a plain Python model, in one process and in one for each core;
- floor:    a Python model that answers at once with an output of the same size.

The candidates take turns for several rounds, so that other load on the machine affects all of them; each number is the
median of the rounds. Processor time is that of Triton and its models, without that of the load generator, which runs on the same
cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from load import Connection, Measurement, image_request, numbers_request, put_load
from processes import busy_seconds, cpu_seconds, resident_bytes
from rich.console import Console
from rich.table import Table

from penstock.serving.environment import Environment, describe, find_environment
from penstock.serving.export import export_model
from penstock.serving.model_files import load_pipeline
from penstock.serving.server import LocalServer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PHOTOGRAPHS = ROOT.parent / "shared" / "data" / "images" / "jpeg"
OURS = "imagenet_preprocess"
CORES = len(os.sched_getaffinity(0))
console = Console(width=132 if not sys.stdout.isatty() else None, highlight=False)

IMAGE_CONFIG = """backend: "python"
max_batch_size: 64
input [ { name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
dynamic_batching { }
"""
NUMBERS_CONFIG = """backend: "python"
max_batch_size: 64
input [ { name: "numbers" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "same" data_type: TYPE_FP32 dims: [ 4 ] } ]
dynamic_batching { }
"""


@dataclass
class Candidate:
    """One way to do the work.

    Attributes:
        name: the name in the table.
        model: the name of the model in the server.
        rounds: for each number of clients, the measurements: the result of the load, and the server's processor time in seconds.
    """

    name: str
    model: str
    rounds: dict[int, list[tuple[Measurement, float]]] = field(default_factory=dict)

    def throughput(self, clients: int) -> float:
        """Return requests per second."""
        return statistics.median(load.throughput for load, _ in self.rounds[clients])

    def latency(self, clients: int, percent: float) -> float:
        """Return the latency, in milliseconds, below which this percentage of requests stays."""
        return 1e3 * statistics.median(load.percentile(percent) for load, _ in self.rounds[clients])

    def processor(self, clients: int) -> float:
        """Return milliseconds of processor time for each request."""
        return 1e3 * statistics.median(seconds / len(load.latencies) for load, seconds in self.rounds[clients])


# -- the models to compare -------------------------------------------------------------------------------------------


def write_models(folder: Path, dali: Environment | None) -> list[Candidate]:
    """Write the other candidates' models into a repository; return all candidates, Penstock first."""
    export_model(ROOT / "pipelines" / f"{OURS}.py", folder / OURS)
    export_model(HERE / "models" / "passing.py", folder / "passing")
    _write_python(folder / "pillow", "pillow.py", IMAGE_CONFIG)
    _write_python(folder / "pillow_parallel", "pillow.py", IMAGE_CONFIG + f"instance_group [ {{ count: {CORES} }} ]\n")
    _write_python(folder / "identity", "identity.py", IMAGE_CONFIG)
    _write_python(folder / "identity_numbers", "identity.py", NUMBERS_CONFIG)
    candidates = [Candidate("penstock", OURS)]
    if dali is not None:
        write_dali(folder / "dali", dali)
        candidates.append(Candidate("DALI", "dali"))
    return [
        *candidates,
        Candidate("Pillow", "pillow"),
        Candidate(f"Pillow, {CORES} processes", "pillow_parallel"),
        Candidate("floor", "identity"),
    ]


def write_dali(folder: Path, environment: Environment) -> None:
    """Write a plain Python model that runs DALI, from a separate environment."""
    parameter = (
        f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{environment.programs.parent}" }} }}\n'
    )
    _write_python(folder, "dali.py", IMAGE_CONFIG + parameter)


def _write_python(folder: Path, source: str, config: str) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text((HERE / "models" / source).read_text())
    (folder / "config.pbtxt").write_text(config)


def encoded_images(folder: Path | None) -> tuple[list[bytes], str]:
    """Return the photographs to send, and where they come from."""
    if folder is None and PHOTOGRAPHS.is_dir():
        folder = PHOTOGRAPHS
    if folder is None:
        return [_generated(seed) for seed in range(16)], "generated, 1280x853"
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"there are no JPEG files in '{folder}'")
    return [path.read_bytes() for path in files], f"{len(files)} files of {folder.name}/"


def _generated(seed: int) -> bytes:
    """Return a JPEG with detail at all scales, like a photograph."""
    import io

    from PIL import Image

    rng = np.random.default_rng(seed)
    width, height = 1280, 853
    pixels = np.zeros((height, width, 3), np.float32)
    for cells in (4, 16, 64, 256):
        noise = Image.fromarray(rng.integers(0, 256, (cells, cells * 3 // 2, 3), dtype=np.uint8))
        pixels += np.asarray(noise.resize((width, height), Image.Resampling.BICUBIC), np.float32) / cells**0.5
    pixels = (pixels - pixels.min()) * (255 / np.ptp(pixels))
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


# -- measuring -------------------------------------------------------------------------------------------------------


def measure(server: LocalServer, candidates: Sequence[Candidate], images: Sequence[bytes], options: Any) -> float:
    """Measure the candidates' rounds; return how many cores other programs used meanwhile."""
    requests = {one.model: [image_request(one.model, image) for image in images] for one in candidates}
    for candidate in candidates:
        for clients in options.clients:
            put_load(server.http_url, requests[candidate.model], clients, options.warm_up)
    started, busy, own = time.perf_counter(), busy_seconds(), cpu_seconds(server.pid) + time.process_time()
    for clients in options.clients:
        for _ in range(options.rounds):
            for candidate in candidates:
                before = cpu_seconds(server.pid)
                load = put_load(server.http_url, requests[candidate.model], clients, options.seconds)
                candidate.rounds.setdefault(clients, []).append((load, cpu_seconds(server.pid) - before))
    spent = cpu_seconds(server.pid) + time.process_time() - own
    return max(0.0, busy_seconds() - busy - spent) / (time.perf_counter() - started)


def largest_difference(server: LocalServer, first: str, second: str, images: Sequence[bytes]) -> float:
    """Return the largest difference between two models' outputs, in units of an 8-bit pixel value."""
    connection = Connection(server.http_url)
    worst = 0.0
    for image in images:
        one, other = (
            np.frombuffer(connection.ask(image_request(name, image)), np.float32).copy() for name in (first, second)
        )
        worst = max(worst, float(np.abs(one - other).max()))
    connection.close()
    return worst * 0.225 * 255


def own_cost(server: LocalServer, requests: int = 200) -> dict[str, float]:
    """Return the microseconds that Triton spends in each of two models that return their input of four numbers: a plain Python model, and
    a pipeline.
    """
    found: dict[str, list[float]] = {"identity_numbers": [], "passing": []}
    for _ in range(10):
        for model, values in found.items():
            before = _compute(server, model)
            put_load(server.http_url, [numbers_request(model)], 1, count=requests)
            after = _compute(server, model)
            values.append((after[0] - before[0]) / (after[1] - before[1]) / 1e3)
    # Use the least disturbed run, because differences of these small numbers are reported.
    return {model: min(values) for model, values in found.items()}


def pipeline_cost(runs: int = 200) -> float:
    """Return the microseconds that a run of the pipeline that returns its input of four numbers takes without Triton."""
    settings = {"num_threads": CORES, "prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}
    pipeline = load_pipeline(HERE / "models" / "passing.py", **settings)
    pipeline.build()
    batch, found = [np.arange(4, dtype=np.float32)], []
    for _ in range(10):
        spent = 0.0
        for _ in range(runs):
            pipeline.feed_input("numbers", batch)
            started = time.perf_counter()
            pipeline.executor.run_once()
            spent += time.perf_counter() - started
        found.append(spent / runs)
    pipeline.close()
    return 1e6 * min(found)


def _compute(server: LocalServer, model: str) -> tuple[int, int]:
    """Return Triton's count of inferences, and the nanoseconds that they took."""
    with urllib.request.urlopen(f"http://{server.http_url}/v2/models/{model}/stats", timeout=10) as answer:
        (stats,) = json.load(answer)["model_stats"]
    return stats["inference_stats"]["compute_infer"]["ns"], stats["inference_stats"]["compute_infer"]["count"]


def memory(server: LocalServer, images: Sequence[bytes], counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the resident memory of the server and its models after each of these numbers of requests, as pairs (requests, bytes)."""
    requests, sent, found = [image_request(OURS, image) for image in images], 0, []
    for count in counts:
        put_load(server.http_url, requests, 16, count=count - sent)
        sent = count
        found.append((count, resident_bytes(server.pid)))
    return found


# -- reporting -------------------------------------------------------------------------------------------------------


def show_speed(candidates: Sequence[Candidate], clients: int) -> None:
    """Print the table for one number of clients."""
    ours = candidates[0]
    table = Table(title=f"{clients} client{'s' if clients > 1 else ''}", title_justify="left", header_style="bold")
    table.add_column("")
    for name in ("requests/s", "penstock is", "p50 ms", "p99 ms", "CPU ms/request", "penstock uses"):
        table.add_column(name, justify="right")
    for one in candidates:
        faster = ours.throughput(clients) / one.throughput(clients)
        saving = ours.processor(clients) / one.processor(clients)
        table.add_row(
            one.name,
            f"{one.throughput(clients):.0f}",
            "" if one is ours else f"{faster:.2f}x",
            f"{one.latency(clients, 50):.2f}",
            f"{one.latency(clients, 99):.2f}",
            f"{one.processor(clients):.2f}",
            "" if one is ours else f"{saving:.2f}x",
        )
    console.print(table)


def describe_run(serving: Environment, dali: Environment | None, images: Sequence[bytes], source: str) -> None:
    """Print when, where and with what the benchmark runs."""
    size = statistics.mean(map(len, images)) / 1e3
    console.print(f"date      {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    console.print(f"hardware  {_processor()}, {CORES} cores used, {_memory_gb():.0f} GB")
    console.print(
        f"versions  {_versions(serving, ('penstock-triton', 'nvidia-pytriton', 'numpy', 'numba', 'nvidia-nvimgcodec-cu12', 'pillow'))}"
    )
    if dali is not None:
        console.print(f"          {_versions(dali, ('nvidia-dali-cuda120', 'numpy'))}")
    console.print(f"images    {source}, {size:.0f} kB on average")
    console.print(f"command   {shlex.join(['python', *sys.argv])}\n")


def _processor() -> str:
    names = (
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    )
    return next(names, platform.machine())


def _memory_gb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def _versions(environment: Environment, packages: Sequence[str]) -> str:
    program = "import sys, importlib.metadata as m; print(*(f'{p} {m.version(p)}' for p in sys.argv[1:]), sep=', ')"
    command = [str(environment.python), "-I", "-c", program, *packages]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"Python {environment.version[0]}.{environment.version[1]}: {told}"


# -- the command -----------------------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dali-env", type=Path, default=os.environ.get("PENSTOCK_DALI_ENV"), help="with nvidia-dali")
    parser.add_argument("--python-env", type=Path, help="to serve from; found as `penstock serve` does if not given")
    parser.add_argument("--images", type=Path, help="a folder of JPEG files; generated ones if there is none")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16], help="requests in flight (default: 1 16)")
    parser.add_argument("--rounds", type=int, default=5, help="for each candidate (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a round (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=2.0, help="seconds before the first (default: %(default)s)")
    parser.add_argument("--memory", type=int, nargs="*", default=[2000, 20000], help="requests after which to look")
    parser.add_argument("--no-speed", action="store_true", help="look at memory alone")
    return parser.parse_args()


@contextmanager
def serving(folder: Path, environment: Environment) -> Iterator[LocalServer]:
    """Run a server of a repository, on separate ports."""
    with console.status("starting Triton ..."):
        server = LocalServer(folder, environment=environment).start()
    try:
        yield server
    finally:
        server.stop()


def main() -> None:
    """Run the benchmark and print its results."""
    options = parse()
    environment = find_environment(options.python_env)
    dali = describe(options.dali_env) if options.dali_env else None
    images, source = encoded_images(options.images)
    describe_run(environment, dali, images, source)
    with tempfile.TemporaryDirectory() as folder:
        if not options.no_speed:
            repository = Path(folder) / "speed"
            candidates = write_models(repository, dali)
            with serving(repository, environment) as server:
                compare(server, candidates, images, options)
        if options.memory:
            repository = Path(folder) / "memory"
            export_model(ROOT / "pipelines" / f"{OURS}.py", repository / OURS)
            with serving(repository, environment) as server:
                show_memory(memory(server, images, options.memory))


def compare(server: LocalServer, candidates: Sequence[Candidate], images: Sequence[bytes], options: Any) -> None:
    """Measure and print speed."""
    for candidate in candidates:
        if candidate.model == "dali":
            steps = largest_difference(server, OURS, candidate.model, images)
            console.print(f"penstock and DALI differ by at most {steps:.2f} steps of an 8-bit pixel\n")
    with console.status("measuring ..."):
        others = measure(server, candidates, images, options)
    for clients in options.clients:
        show_speed(candidates, clients)
    console.print(f"other programs used {others:.2f} cores meanwhile\n")
    costs, run = own_cost(server), pipeline_cost()
    plain, ours = costs["identity_numbers"], costs["passing"]
    console.print(
        f"Passing four numbers on takes {plain:.0f} us in a plain Python model and {ours:.0f} us in a penstock pipeline, "
        f"whose run alone takes {run:.0f} us: the backend itself adds {ours - plain - run:.0f} us to a request.\n"
    )


def show_memory(found: Sequence[tuple[int, int]]) -> None:
    """Print how memory grew."""
    first = found[0][1]
    for count, size in found:
        console.print(f"resident after {count:6} requests: {size / 1e6:8.1f} MB ({size / first - 1:+.2%})")


if __name__ == "__main__":
    main()
