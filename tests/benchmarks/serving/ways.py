"""Models in Triton's own process compared with models in its Python stub: speed, CPU time, memory, start-up.

    python tests/benchmarks/serving/ways.py [--dali-env ENVIRONMENT]

Both servers run from the same environment, both are up all the time, and take turns; each number is the median of the
rounds. Memory and start are those of a server of its own. Real DALI in a plain Python model, which runs in a stub in both
servers, has rows of its own.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from bench import CORES, HERE, OURS, ROOT, encoded_images, write_dali
from load import image_request, numbers_request, put_load
from processes import cpu_seconds, resident_bytes
from rich.console import Console
from rich.table import Table

from penstock.serving.environment import describe, find_environment
from penstock.serving.export import export_model
from penstock.serving.server import WAYS, LocalServer

console = Console(width=150 if not sys.stdout.isatty() else None, highlight=False)


@dataclass
class Case:
    """One kind of requests.

    Attributes:
        name: as the table calls it.
        model: who is asked.
        requests: what is sent, in turn.
        clients: how many are in flight.
        rates, costs, medians: of each round, by way: requests/s, processor milliseconds for a request, p50 in milliseconds.
    """

    name: str
    model: str
    requests: Sequence[bytes]
    clients: int
    rates: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    costs: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    medians: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})

    def measure(self, way: str, server: LocalServer, seconds: float) -> None:
        """Adds a round."""
        before = cpu_seconds(server.pid)
        load = put_load(server.http_url, self.requests, self.clients, seconds)
        self.costs[way].append(1e3 * (cpu_seconds(server.pid) - before) / len(load.latencies))
        self.rates[way].append(load.throughput)
        self.medians[way].append(1e3 * load.percentile(50))


def write_models(folder: Path) -> None:
    """The repository that both ways serve."""
    export_model(ROOT / "pipelines" / f"{OURS}.py", folder / OURS)
    for name in ("passing", "blank"):
        export_model(HERE / "models" / f"{name}.py", folder / name)
    for name, instances in (("alone", 1), ("two", 2)):
        export_model(ROOT / "pipelines" / f"{OURS}.py", folder / name)
        with (folder / name / "config.pbtxt").open("a") as config:
            config.write(f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n")
            config.write('parameters { key: "num_threads" value { string_value: "1" } }\n')


def cases(images: Sequence[bytes], with_dali: bool) -> list[Case]:
    """What is asked."""
    dali = [image_request("dali", image) for image in images] if with_dali else []
    half = [bytes(150_000)]
    return [
        Case("150 kB in, 0.6 MB out", "blank", [image_request("blank", half[0])], 16),
        Case("four numbers", "passing", [numbers_request("passing")], 16),
        Case("four numbers", "passing", [numbers_request("passing")], 1),
        *(Case("photographs", OURS, [image_request(OURS, image) for image in images], clients) for clients in (1, 16)),
        *(Case("photographs, real DALI", "dali", dali, clients) for clients in (1, 16) if dali),
        *(
            Case(f"photographs, {name}", model, [image_request(model, image) for image in images], 16)
            for model, name in (("alone", "one instance, one thread"), ("two", "two such instances"))
        ),
    ]


def show(found: Sequence[Case]) -> None:
    """Prints the table."""
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
    ):
        table.add_column(name, justify="left" if name == "work" else "right")
    for case in found:
        cells: list[str] = []
        for values, digits in ((case.rates, 0), (case.costs, 3)):
            stub, native = (statistics.median(values[way]) for way in ("stub", "native"))
            cells += [f"{stub:.{digits}f}", f"{native:.{digits}f}", f"{native / stub:.2f}x"]
        cells += [f"{statistics.median(case.medians[way]):.2f}" for way in ("stub", "native")]
        table.add_row(case.name, str(case.clients), *cells)
    console.print(table)


def started(repository: Path, way: str) -> tuple[float, float]:
    """Seconds until a repository is ready, and megabytes that its server and their children then hold, after some requests."""
    began = time.perf_counter()
    with LocalServer(repository, way=way) as server:
        seconds = time.perf_counter() - began
        return seconds, resident_bytes(server.pid) / 1e6


def main() -> None:
    """Runs the benchmark and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--dali-env", type=Path, help="with nvidia-dali and numpy 1.26")
    parser.add_argument(
        "--grow",
        type=int,
        default=0,
        help="requests of four numbers, and a tenth of them photographs, to look at memory",
    )
    options = parser.parse_args()
    images, source = encoded_images(None)
    environment = find_environment()
    console.print(f"date      {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, {CORES} cores")
    console.print(f"with      numpy {environment.numpy}; {source}\n")
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        if options.dali_env:
            write_dali(Path(folder) / "dali", describe(options.dali_env))
        with ExitStack() as stack:
            servers = {way: stack.enter_context(LocalServer(folder, way=way)) for way in WAYS}
            found = cases(images, bool(options.dali_env))
            for case in found:
                for server in servers.values():
                    put_load(server.http_url, case.requests, case.clients, 0.5)
                for _ in range(options.rounds):
                    for way, server in servers.items():
                        case.measure(way, server, options.seconds)
            show(found)
            if options.grow:
                grow(servers["native"], [numbers_request("passing")], options.grow)
                grow(servers["native"], [image_request(OURS, image) for image in images], options.grow // 10)
    for way in WAYS:
        # The first start fills what is kept from start to start.
        started(ROOT / "model_repository", way)
        seconds, megabytes = started(ROOT / "model_repository", way)
        console.print(f"model_repository, {way:6}: ready after {seconds:.1f} s, {megabytes:.0f} MB resident")


def grow(server: LocalServer, requests: Sequence[bytes], count: int) -> None:
    """Prints how memory grew."""
    first = 0
    for done in (count // 10, count):
        put_load(server.http_url, requests, 16, count=done - first)
        first = done
        console.print(f"native, resident after {done:6} requests: {resident_bytes(server.pid) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
