"""Models in Triton's process compared with models in its Python stub: speed, CPU time, memory, start-up.

    python tests/benchmarks/serving/ways.py [--dali-env ENVIRONMENT] [--gpu]

Both servers run from the same environment. Both are running all the time, and take turns with requests; each number is the median of the
rounds. Memory and start-up time are measured with separate servers. Real DALI in a plain Python model, which runs in a stub in
both servers, has separate rows.

Comparing one instance with two shows whether instances wait for each other, e.g. for the GIL. On a machine with two cores, this requires
that nothing else takes much of the second core; so tensors are in shared memory, and clients and Triton's HTTP server take only a tenth
of a millisecond per request.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench import CORES, HERE, OURS, ROOT, encoded_images, write_dali
from load import image_request, image_requests_in_shared_memory, numbers_request, put_load
from processes import cpu_seconds, resident_bytes
from rich.console import Console
from rich.table import Table

from penstock.serving.environment import describe, find_environment
from penstock.serving.export import export_model
from penstock.serving.model_hosts import MODEL_HOSTS
from penstock.serving.server import LocalServer

console = Console(width=150 if not sys.stdout.isatty() else None, highlight=False)

IMAGE_BYTES = 4 * 3 * 224 * 224
# The steps of `imagenet_preprocess`, divided into two models; between them, the image stays on the GPU.
STAGES = {
    "pixels": """
@autoserialize
@pipeline_def(batch_size=64, output_dtype=types.UINT8, output_ndim=3)
def pixels(device="gpu"):
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(encoded, device="mixed"), resize_shorter=256)
    return fn.crop(images, crop=(224, 224), name="pixels")
""",
    "normalized": """
@autoserialize
@pipeline_def(batch_size=64, output_dtype=types.FLOAT, output_ndim=3)
def normalized(device="gpu"):
    pixels = fn.external_source(name="pixels", dtype=types.UINT8, ndim=3, layout="HWC", device="gpu")
    mean, std = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
    return fn.crop_mirror_normalize(pixels, mean=mean, std=std, dtype=types.FLOAT, output_layout="CHW", name="image")
""",
}
ON_GPU = """
instance_group [ { kind: KIND_GPU count: %d } ]
parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value: { string_value: "no" } }
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 64
input [ { name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
ensemble_scheduling { step [
  { model_name: "pixels" model_version: -1
    input_map { key: "encoded_image" value: "encoded_image" } output_map { key: "pixels" value: "pixels" } },
  { model_name: "normalized" model_version: -1
    input_map { key: "pixels" value: "pixels" } output_map { key: "image" value: "image" } }
] }
"""


@dataclass
class Case:
    """One kind of request.

    Attributes:
        name: the name in the table.
        model: the name of the model.
        requests: the requests to send, in turns.
        clients: the number of clients, which is the number of requests in flight.
        images: the images to send instead of ``requests``, with tensors in shared memory.
        rates, costs, medians, tails: by way of serving, for each round: the requests per second, the milliseconds of processor time per
            request, and the p50 and p99 of latency in milliseconds.
    """

    name: str
    model: str
    requests: Sequence[bytes]
    clients: int
    images: Sequence[bytes] = ()
    rates: dict[str, list[float]] = field(default_factory=lambda: {model_host: [] for model_host in MODEL_HOSTS})
    costs: dict[str, list[float]] = field(default_factory=lambda: {model_host: [] for model_host in MODEL_HOSTS})
    medians: dict[str, list[float]] = field(default_factory=lambda: {model_host: [] for model_host in MODEL_HOSTS})
    tails: dict[str, list[float]] = field(default_factory=lambda: {model_host: [] for model_host in MODEL_HOSTS})

    def measure(self, model_host: str, server: LocalServer, seconds: float) -> None:
        """Add a round."""
        with self._ready(server) as requests:
            before = cpu_seconds(server.pid)
            load = put_load(server.http_url, requests, self.clients, seconds)
            self.costs[model_host].append(1e3 * (cpu_seconds(server.pid) - before) / len(load.latencies))
        self.rates[model_host].append(load.throughput)
        self.medians[model_host].append(1e3 * load.percentile(50))
        self.tails[model_host].append(1e3 * load.percentile(99))

    def warm_up(self, server: LocalServer) -> None:
        """Send some requests that do not count."""
        with self._ready(server) as requests:
            put_load(server.http_url, requests, self.clients, 0.5)

    def _ready(self, server: LocalServer) -> AbstractContextManager[Sequence[bytes]]:
        if not self.images:
            return nullcontext(self.requests)
        return image_requests_in_shared_memory(server.http_url, self.model, self.images, IMAGE_BYTES)


def write_gpu_models(folder: Path, instances: int = 1) -> None:
    """Write the repository that both servers serve on a GPU."""
    export_model(ROOT / "pipelines" / f"{OURS}.py", folder / OURS)
    with (folder / OURS / "config.pbtxt").open("a") as config:
        config.write(ON_GPU % instances)
    for name, source in STAGES.items():
        (folder / name / "1").mkdir(parents=True)
        header = "from penstock import fn, pipeline_def, types\nfrom penstock.plugin.triton import autoserialize\n\n"
        (folder / name / "1" / "pipeline.py").write_text(header + source)
        (folder / name / "config.pbtxt").write_text('backend: "penstock"\nmax_batch_size: 64\n' + ON_GPU % instances)
    # Encoded images differ in length, so the input is a tensor of byte strings.
    with (folder / "pixels" / "config.pbtxt").open("a") as config:
        config.write('input [ { name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] } ]\n')
    (folder / "staged" / "1").mkdir(parents=True)
    (folder / "staged" / "config.pbtxt").write_text(ENSEMBLE)


def gpu_cases(images: Sequence[bytes]) -> list[Case]:
    """Return the cases for a GPU."""
    models = ((OURS, "photographs"), ("staged", "the same in two models"))
    return [
        Case(name, model, [image_request(model, image) for image in images], clients)
        for model, name in models
        for clients in (1, 8, 32)
    ]


def write_models(folder: Path) -> None:
    """Write the repository that both servers serve."""
    export_model(ROOT / "pipelines" / f"{OURS}.py", folder / OURS)
    for name in ("passing", "blank"):
        export_model(HERE / "models" / f"{name}.py", folder / name)
    for name, instances in (("alone", 1), ("two", 2)):
        export_model(ROOT / "pipelines" / f"{OURS}.py", folder / name)
        with (folder / name / "config.pbtxt").open("a") as config:
            config.write(f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n")
            config.write('parameters { key: "num_threads" value { string_value: "1" } }\n')


def cases(images: Sequence[bytes], with_dali: bool) -> list[Case]:
    """Return the cases for a CPU."""
    dali = [image_request("dali", image) for image in images] if with_dali else []
    half = [bytes(150_000)]
    return [
        Case("150 kB in, 0.6 MB out", "blank", [image_request("blank", half[0])], 16),
        Case("four numbers", "passing", [numbers_request("passing")], 16),
        Case("four numbers", "passing", [numbers_request("passing")], 1),
        *(Case("photographs", OURS, [image_request(OURS, image) for image in images], clients) for clients in (1, 16)),
        *(Case("photographs, real DALI", "dali", dali, clients) for clients in (1, 16) if dali),
        *(
            Case(f"photographs, {name}", model, [], 16, images)
            for model, name in (("alone", "one instance, one thread"), ("two", "two such instances"))
        ),
    ]


def show(found: Sequence[Case]) -> None:
    """Print the table."""
    table = Table(header_style="bold")
    for name in (
        "work",
        "clients",
        "requests/s: stub",
        "native",
        "",
        "CPU ms: stub",
        "native",
        "",
        "p50 ms: stub",
        "native",
        "p99 ms: stub",
        "native",
    ):
        table.add_column(name, justify="left" if name == "work" else "right")
    for case in found:
        cells: list[str] = []
        for values, digits in ((case.rates, 0), (case.costs, 3)):
            stub, native = (statistics.median(values[model_host]) for model_host in ("stub", "native"))
            cells += [f"{stub:.{digits}f}", f"{native:.{digits}f}", f"{native / stub:.2f}x"]
        for latencies in (case.medians, case.tails):
            cells += [f"{statistics.median(latencies[model_host]):.2f}" for model_host in ("stub", "native")]
        table.add_row(case.name, str(case.clients), *cells)
    console.print(table)


def started(repository: Path, model_host: str) -> tuple[float, float]:
    """Start a server; return the seconds until its repository is ready, and its memory in megabytes after some requests."""
    began = time.perf_counter()
    with LocalServer(repository, model_host=model_host) as server:
        seconds = time.perf_counter() - began
        return seconds, resident_bytes(server.pid) / 1e6


def main() -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--dali-env", type=Path, help="with nvidia-dali and numpy 1.26")
    parser.add_argument(
        "--only", default="", help="the rows whose name matches this pattern, and nothing of memory and start"
    )
    parser.add_argument("--gpu", action="store_true", help="models on a GPU instead, and nothing of memory and start")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="before all other programs of the machine, where that is allowed: for machines that are busy",
    )
    parser.add_argument(
        "--grow",
        type=int,
        default=0,
        help="requests of four numbers, and a tenth of them photographs, to look at memory",
    )
    options = parser.parse_args()
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    images, source = encoded_images(None)
    environment = find_environment()
    console.print(f"date      {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {CORES} cores")
    console.print(f"with      numpy {environment.numpy}; {source}\n")
    with tempfile.TemporaryDirectory() as folder:
        (write_gpu_models if options.gpu else write_models)(Path(folder))
        if options.dali_env:
            write_dali(Path(folder) / "dali", describe(options.dali_env))
        with ExitStack() as stack:
            servers = {
                model_host: stack.enter_context(LocalServer(folder, model_host=model_host))
                for model_host in MODEL_HOSTS
            }
            found = gpu_cases(images) if options.gpu else cases(images, bool(options.dali_env))
            found = [case for case in found if re.search(options.only, case.name)]
            for case in found:
                for server in servers.values():
                    case.warm_up(server)
                for _ in range(options.rounds):
                    for model_host, server in servers.items():
                        case.measure(model_host, server, options.seconds)
            show(found)
            if options.grow:
                grow(servers["native"], [numbers_request("passing")], options.grow)
                grow(servers["native"], [image_request(OURS, image) for image in images], options.grow // 10)
    for model_host in () if options.gpu or options.only else MODEL_HOSTS:
        # The first start fills the caches that later starts use.
        started(ROOT / "model_repository", model_host)
        seconds, megabytes = started(ROOT / "model_repository", model_host)
        console.print(f"model_repository, {model_host:6}: ready after {seconds:.1f} s, {megabytes:.0f} MB resident")


def grow(server: LocalServer, requests: Sequence[bytes], count: int) -> None:
    """Print how memory grew."""
    first = 0
    for done in (count // 10, count):
        put_load(server.http_url, requests, 16, count=done - first)
        first = done
        console.print(f"native, resident after {done:6} requests: {resident_bytes(server.pid) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
