"""Measure Penstock's share of a request's time: compare a pipeline that returns its input with a compiled backend that does so.

    python tests/benchmarks/serving/front.py [--rounds 5] [--seconds 2] [--json FILE]

Both models run in the same server, and take turns. The compiled backend is `floor.cc`: its time is that of Triton's HTTP server
and scheduler, and of copying tensors, which every backend does. Processor time is the server's, without the clients'.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from load import http_request, put_load
from processes import cpu_seconds
from turns import headline

from penstock.core.compiling import compiler
from penstock.serving.server import LocalServer

HERE = Path(__file__).resolve().parent
FLOOR, OURS = "floor", "handed_on"
PIPELINE = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=64)
def handed_on():
    return fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
"""
CONFIG = """backend: "{backend}"
max_batch_size: 64
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }} ]
output [ {{ name: "{output}" data_type: TYPE_FP32 dims: [ -1 ] }} ]
dynamic_batching {{ }}
instance_group [ {{ kind: KIND_CPU }} ]
"""
OUTPUTS = {FLOOR: "y", OURS: "y"}


@dataclass
class Row:
    """One row: requests of one size from a number of clients, and the figures of each round, by model."""

    elements: int
    clients: int
    rates: dict[str, list[float]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    costs: dict[str, list[float]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    medians: dict[str, list[float]] = field(default_factory=lambda: {FLOOR: [], OURS: []})
    tails: dict[str, list[float]] = field(default_factory=lambda: {FLOOR: [], OURS: []})

    def measure(self, server: LocalServer, seconds: float) -> None:
        """Add a round."""
        for model in (FLOOR, OURS):
            tensor = {"name": "x", "datatype": "FP32", "shape": [1, self.elements]}
            data = np.arange(self.elements, dtype=np.float32).tobytes()
            request = http_request(model, tensor, data, OUTPUTS[model])
            before = cpu_seconds(server.pid)
            load = put_load(server.http_url, [request], self.clients, seconds)
            self.costs[model].append(1e6 * (cpu_seconds(server.pid) - before) / len(load.latencies))
            self.rates[model].append(load.throughput)
            self.medians[model].append(1e3 * load.percentile(50))
            self.tails[model].append(1e3 * load.percentile(99))

    def figures(self) -> dict[str, float]:
        """Return the medians of all rounds."""
        names = {"requests/s": self.rates, "CPU us": self.costs, "p50 ms": self.medians, "p99 ms": self.tails}
        found: dict[str, float] = {"bytes": 4 * self.elements, "clients": self.clients}
        for name, values in names.items():
            for model in (FLOOR, OURS):
                found[f"{model} {name}"] = round(statistics.median(values[model]), 3)
        return found


def write_models(folder: Path) -> None:
    """Write the repository."""
    (folder / OURS / "1").mkdir(parents=True)
    (folder / OURS / "1" / "pipeline.py").write_text(PIPELINE)
    (folder / FLOOR / "1").mkdir(parents=True)
    library = folder / FLOOR / "1" / f"libtriton_{FLOOR}.so"
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([*compiler(), *flags, str(HERE / "floor.cc"), "-o", str(library)], check=True)
    for model, backend in ((OURS, "penstock"), (FLOOR, FLOOR)):
        (folder / model / "config.pbtxt").write_text(CONFIG.format(backend=backend, output=OUTPUTS[model]))


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round of each model")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    rows = [Row(elements, clients) for elements in (4, 3 * 224 * 224) for clients in options.clients]
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        with LocalServer(folder, model_host="native") as server:
            for row in rows:
                Row(row.elements, row.clients).measure(server, 0.5)
                for _ in range(options.rounds):
                    row.measure(server, options.seconds)
    print(headline())
    print(f"load {os.getloadavg()[0]:.1f}")
    for row in rows:
        print(json.dumps(row.figures()))
    if options.json:
        options.json.write_text(json.dumps([row.figures() for row in rows], indent=1))


if __name__ == "__main__":
    main()
