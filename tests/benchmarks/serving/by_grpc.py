"""Photographs sent to a model on a GPU over gRPC, by many clients.

    python tests/benchmarks/serving/by_grpc.py [--clients 32] [--model-host native] [--cores 16] [--json FILE]

The clients are threads of several processes, because in a single process, Python would take longer than the server. Answers, of 0.6 MB
each, are sent over gRPC, too. With ``--cores``, the server has this number of cores, and the clients have the others. Needs a serving
environment, and tritonclient[grpc] in the environment of this program.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import OURS, encoded_images
from turns import headline, keep
from ways import write_gpu_models

from penstock.serving.model_hosts import MODEL_HOSTS
from penstock.serving.server import LocalServer


def asked(address: str, images: Sequence[bytes], clients: int, begin: float, end: float) -> list[float]:
    """Run clients; return the latency, in seconds, of each request that was answered between two times on the system's clock."""
    import numpy as np
    from tritonclient.grpc import InferenceServerClient, InferInput, InferRequestedOutput

    def inputs(image: bytes) -> list[InferInput]:
        given = InferInput("encoded_image", [1, 1], "BYTES")
        given.set_data_from_numpy(np.array([[image]], np.object_))
        return [given]

    prepared, wanted = list(map(inputs, images)), [InferRequestedOutput("image")]
    took: list[float] = []

    def client(number: int) -> None:
        with InferenceServerClient(address) as connection:
            while time.time() < end:
                number += 1
                started = time.perf_counter()
                answer = connection.infer(OURS, prepared[number % len(prepared)], outputs=wanted)
                latency = time.perf_counter() - started
                assert answer.as_numpy("image").shape == (1, 3, 224, 224)
                if begin <= time.time() < end:
                    took.append(latency)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def split_cores(count: int) -> tuple[set[int], set[int]]:
    """Return the server's cores, of which there are ``count``, and the clients' cores, which are the others; if it is 0, both have all."""
    cores = sorted(os.sched_getaffinity(0))
    return (set(cores[:count]), set(cores[count:])) if count else (set(cores), set(cores))


def keep_to(cores: set[int]) -> None:
    """Restrict this process, and those that it starts, to these cores."""
    os.sched_setaffinity(0, cores)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument(
        "--cores", type=int, default=0, help="of the server; the clients have the others (0: both have all)"
    )
    parser.add_argument("--instances", type=int, default=1, help="of the model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model-host", choices=MODEL_HOSTS, default="native")
    parser.add_argument("--images", type=Path, help="a folder of JPEG files")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    images, source = encoded_images(options.images)
    rows = []
    own, others = split_cores(options.cores)
    keep_to(own)
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, spawning.Pool(options.processes, keep_to, (others,)) as pool:
        write_gpu_models(Path(folder), options.instances)
        with LocalServer(folder, model_host=options.model_host) as server:
            address = server.grpc_url
            share = options.clients // options.processes
            for _ in range(options.rounds + 1):
                begin = time.time() + 1.5
                work = (address, images, share, begin, begin + options.seconds)
                took = sorted(chain.from_iterable(pool.starmap(asked, [work] * options.processes)))
                rows.append(
                    {
                        "requests/s": len(took) / options.seconds,
                        "p50 ms": 1e3 * statistics.median(took),
                        "p99 ms": 1e3 * took[int(len(took) * 0.99)],
                    }
                )
    # The first round is a warm-up.
    rows = rows[1:]
    print(headline())
    print(f"{options.clients} clients in {options.processes} processes, {options.model_host}; {source}")
    for row in rows:
        print(", ".join(f"{name} {value:.1f}" for name, value in row.items()))
    how = {
        "clients": options.clients,
        "way": options.model_host,
        "instances": options.instances,
        "server's cores": len(own),
        "clients' cores": len(others),
    }
    keep("serving-grpc", [how | row for row in rows], options.json)


if __name__ == "__main__":
    main()
