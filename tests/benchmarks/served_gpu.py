"""Photographs sent to a model on a GPU: images per second, the time that each of Triton's steps takes, and a check of the answers.

    python tests/benchmarks/served_gpu.py [--seconds 3] [--checked 10000] [--only PATTERN] [--beside SETTING] [--json FILE]
    python tests/benchmarks/served_gpu.py --in-process [--seconds 3] [--rounds 3]

Clients are threads of several processes, which send prepared requests and do not look at the answers: they run on the same cores as
the server, and a client library would take longer than the server. All photographs differ in size, and each request of several images
is another selection, so that no batch repeats an earlier one.

Finally, requests are sent over HTTP and gRPC, a tenth of them with broken files, and their answers are compared with the answers to the
same files sent alone.
Needs a serving environment, and tritonclient[grpc] in the environment of this program.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import random
import re
import statistics
import struct
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "serving"))

import numpy as np
from load import Connection, http_request, image_requests_in_shared_memory
from PIL import Image

from penstock.serving.pipeline_runner import PipelineRunner
from penstock.serving.server import LocalServer
from penstock.tensors import TensorListCPU

FLOAT, BYTES = "as_float", "as_bytes"
OUTPUT = "image"
ANSWER_BYTES = {FLOAT: 4 * 3 * 224 * 224, BYTES: 3 * 224 * 224}
BATCH = 64
_WARM_UP_SECONDS = 0.5
MODEL = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=64, output_dtype=types.{kind}, output_ndim=3)
def {name}(device="gpu"):
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    {last}
"""
RESIZED = "fn.resize(fn.decoders.image(encoded, device='mixed'), resize_shorter=256)"
LAST = {
    FLOAT: (
        "mean, std = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]\n    return fn.crop_mirror_normalize("
        f'{RESIZED}, crop=(224, 224), mean=mean, std=std, dtype=types.FLOAT, output_layout="CHW", name="image")'
    ),
    BYTES: f'return fn.crop_mirror_normalize({RESIZED}, crop=(224, 224), dtype=types.UINT8, output_layout="HWC", name="image")',
}
CONFIG = """backend: "penstock"
max_batch_size: 64
input [ {{ name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] }} ]
instance_group [ {{ kind: KIND_GPU count: {instances} }} ]
parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value: {{ string_value: "no" }} }}
"""


def write_models(folder: Path, instances: int) -> None:
    """Write a repository with two models: the same preprocessing with float outputs and with uint8 outputs."""
    for name, kind in ((FLOAT, "FLOAT"), (BYTES, "UINT8")):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "1" / "pipeline.py").write_text(MODEL.format(name=name, kind=kind, last=LAST[name]))
        (folder / name / "config.pbtxt").write_text(CONFIG.format(instances=instances))


# -- clients, in separate processes ------------------------------------------------------------------------------------

photographs: list[bytes] = []


def make_photographs(seed: int, count: int) -> int:
    """Make this process's photographs, of about 1.2 million pixels each; return the mean size of their files in bytes."""
    rng = np.random.default_rng(seed)
    scene = np.zeros((1400, 1600, 3), np.float32)
    for cells in (4, 16, 64, 256):
        noise = Image.fromarray(rng.integers(0, 256, (cells, cells * 3 // 2, 3), dtype=np.uint8))
        scene += np.asarray(noise.resize((1600, 1400), Image.Resampling.BICUBIC), np.float32) / cells**0.5
    scene = (scene - scene.min()) * (255 / np.ptp(scene))
    whole = Image.fromarray(scene.astype(np.uint8))
    for _ in range(count):
        width, height = int(rng.integers(1100, 1500)), int(rng.integers(750, 1000))
        left, top = int(rng.integers(0, 1600 - width)), int(rng.integers(0, 1400 - height))
        buffer = io.BytesIO()
        whole.crop((left, top, left + width, top + height)).save(buffer, "JPEG", quality=int(rng.integers(85, 95)))
        photographs.append(buffer.getvalue())
    return int(statistics.mean(map(len, photographs)))


def framed(images: Sequence[bytes]) -> bytes:
    """Return files as the bytes of a tensor of byte strings, each preceded by its length."""
    return b"".join(struct.pack("<I", len(image)) + image for image in images)


def by_http(model: str, images: Sequence[bytes]) -> bytes:
    """Return an HTTP request with one tensor, ready to be sent."""
    tensor = {"name": "encoded_image", "datatype": "BYTES", "shape": [len(images), 1]}
    return http_request(model, tensor, framed(images), OUTPUT)


def by_grpc(model: str, images: Sequence[bytes]) -> bytes:
    """Return a gRPC request with one tensor, ready to be sent."""
    from tritonclient.grpc import service_pb2

    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="encoded_image", datatype="BYTES", shape=[len(images), 1])
    request.outputs.add(name=OUTPUT)
    request.raw_input_contents.append(framed(images))
    return bytes(request.SerializeToString())


class GrpcConnection:
    """A gRPC channel that sends and receives messages as bytes."""

    def __init__(self, address: str) -> None:
        import grpc

        unlimited = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(address, unlimited)
        self._call = self._channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer", request_serializer=None, response_deserializer=None
        )

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the answer."""
        return bytes(self._call(request, timeout=60))

    def close(self) -> None:
        """End the connection."""
        self._channel.close()


def opened(protocol: str, address: str, room: int) -> Any:
    """Return a connection for prepared requests; ``room``: the size in bytes of the memory for an answer."""
    if protocol == "grpc":
        return GrpcConnection(address)
    connection = Connection(address)
    connection._buffer = bytearray(room)
    return connection


@dataclass(frozen=True)
class Load:
    """The requests that the clients of one process send for a row, and how they are sent.

    Attributes:
        model: the name of the model.
        protocol: ``http``, ``grpc``, or ``shm`` for HTTP with tensors in shared memory.
        images: the number of images per request.
        clients: the number of clients in this process.
        begin, end: the start and end of the measurement, on the system's clock.
    """

    model: str
    protocol: str
    address: str
    images: int
    clients: int
    begin: float
    end: float


def put_load(load: Load) -> list[float]:
    """Send requests; return the latency, in seconds, of each request that was answered between ``load.begin`` and ``load.end``."""
    took: list[float] = []
    failures: list[BaseException] = []
    least = ANSWER_BYTES[load.model] * load.images
    count = len(photographs) if load.images == 1 else 24
    with ExitStack() as stack:
        if load.protocol == "shm":
            given = image_requests_in_shared_memory(load.address, load.model, photographs, least)
            prepared = stack.enter_context(given)
        else:
            make = by_grpc if load.protocol == "grpc" else by_http
            groups = ([photographs[number]] for number in range(count))
            if load.images > 1:
                groups = (random.choices(photographs, k=load.images) for _ in range(count))
            prepared = [make(load.model, group) for group in groups]

        def client(number: int) -> None:
            connection = opened(load.protocol, load.address, least + (1 << 16))
            own = random.Random(number)
            try:
                while time.time() < load.end:
                    started = time.perf_counter()
                    answer = connection.ask(prepared[own.randrange(len(prepared))])
                    latency = time.perf_counter() - started
                    if load.protocol != "shm" and len(answer) < least:
                        raise RuntimeError(f"an answer of {len(answer)} bytes is too short")
                    if load.begin <= time.time() < load.end:
                        took.append(latency)
            except BaseException as error:
                failures.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=client, args=(number,)) for number in range(load.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise RuntimeError(f"{len(failures)} clients failed: {failures[0]!r}")
    return took


# -- what is measured ------------------------------------------------------------------------------------------------------


def statistics_of(server: LocalServer, model: str) -> dict[str, float]:
    """Return Triton's statistics of a model: the nanoseconds of each step, and the numbers of requests, images and batches."""
    with urllib.request.urlopen(f"http://{server.http_url}/v2/models/{model}/stats", timeout=10) as answer:
        (stats,) = json.load(answer)["model_stats"]
    steps = ("queue", "compute_infer", "compute_output")
    found = {step: float(stats["inference_stats"][step]["ns"]) for step in steps}
    return found | {
        "requests": stats["inference_stats"]["success"]["count"],
        "images": stats["inference_count"],
        "batches": stats["execution_count"],
    }


def measure(server: LocalServer, pool: Pool, processes: int, row: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Measure a row; return it with its figures."""
    used = min(processes, row["clients"])
    shares = [len(range(number, row["clients"], used)) for number in range(used)]
    begin = time.time() + 1.0
    address = server.grpc_url if row["protocol"] == "grpc" else server.http_url
    loads = [
        Load(row["model"], row["protocol"], address, row["images"], share, begin, begin + seconds) for share in shares
    ]
    before = statistics_of(server, row["model"])
    took = sorted(latency for own in pool.map(put_load, loads, chunksize=1) for latency in own)
    after = statistics_of(server, row["model"])
    change = {name: after[name] - before[name] for name in after}
    requests = change["requests"] or 1
    return row | {
        "images/s": round(row["images"] * len(took) / seconds),
        "p50 ms": round(1e3 * took[len(took) // 2], 2),
        "p99 ms": round(1e3 * took[int(len(took) * 0.99)], 2),
        "images a batch": round(change["images"] / (change["batches"] or 1), 1),
        "queue ms": round(change["queue"] / requests / 1e6, 2),
        "infer ms": round(change["compute_infer"] / requests / 1e6, 2),
        "output ms": round(change["compute_output"] / requests / 1e6, 2),
    }


def rows() -> list[dict[str, Any]]:
    """Return the rows to measure, without figures."""
    found = [
        {"model": model, "protocol": protocol, "images": 1, "clients": clients}
        for model in (FLOAT, BYTES)
        for protocol in ("http", "grpc", "shm")
        for clients in (1, 8, 32, 64)
        if protocol != "shm" or clients in (32, 64)
    ]
    return found + [
        {"model": model, "protocol": protocol, "images": 32, "clients": 8}
        for model in (FLOAT, BYTES)
        for protocol in ("http", "grpc")
    ]


# -- answers that are checked ------------------------------------------------------------------------------------------------


def broken(photograph: bytes, number: int) -> bytes:
    """Return a damaged file."""
    ways: list[Callable[[], bytes]] = [
        lambda: photograph[:300],
        lambda: b"\xff\xd8\xff" + random.Random(number).randbytes(5000),
        lambda: b"not an image at all",
        lambda: photograph[: len(photograph) // 3],
    ]
    return ways[number % len(ways)]()


def check(server: LocalServer, requests: int, clients: int = 64) -> Counter[str]:
    """Send random requests over HTTP and gRPC, a tenth of them with broken files, and compare the answers with those to the same files
    without load; return the number of answers of each kind, right or wrong.
    """
    if not photographs:
        make_photographs(99, 180)
    files = [*photographs, *(broken(photographs[number], number) for number in range(20))]
    prepared = {
        protocol: [make(FLOAT, [file]) for file in files] for protocol, make in (("http", by_http), ("grpc", by_grpc))
    }
    addresses = {"http": server.http_url, "grpc": server.grpc_url}
    size = ANSWER_BYTES[FLOAT]

    def answer_of(connections: dict[str, Any], protocol: str, index: int) -> bytes | str:
        try:
            if protocol not in connections:
                connections[protocol] = opened(protocol, addresses[protocol], size + (1 << 16))
            # In both protocols, the answer ends with the tensor.
            return bytes(connections[protocol].ask(prepared[protocol][index]))[-size:]
        except Exception as error:
            if connection := connections.pop(protocol, None):
                connection.close()
            text = f"{error}"
            if not re.search(r"decod|image|format", text, re.IGNORECASE):
                return f"unexpected: {text[:300]}"
            return "refused"

    alone: dict[str, Any] = {}
    expected = [answer_of(alone, "http", index) for index in range(len(files))]
    counts: Counter[str] = Counter()
    good = len(photographs)
    for index, answer in enumerate(expected):
        if isinstance(answer, str) != (index >= good):
            counts[f"alone: {'a good file is refused' if index < good else 'a broken file is taken'}"] += 1
    numbers = iter(range(requests))
    lock = threading.Lock()

    def client(seed: int) -> None:
        own, connections = random.Random(seed), dict[str, Any]()
        for number in numbers:
            bad = own.random() < 0.1
            index = good + own.randrange(len(files) - good) if bad else own.randrange(good)
            answer = answer_of(connections, ("http", "grpc")[number % 2], index)
            kind = "wrong"
            if answer == expected[index]:
                kind = "right refusals" if isinstance(answer, str) else "right answers"
            elif isinstance(answer, str):
                kind = f"wrong: {answer}"
            with lock:
                counts[kind] += 1
        for connection in connections.values():
            connection.close()

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


# -- in one process, without Triton ------------------------------------------------------------------------------------------


def in_process(seconds: float, rounds: int) -> None:
    """Print the images per second with batches one after the other and with two batches in flight, measured in turns."""
    make_photographs(1, 192)
    files = [np.frombuffer(photograph, np.uint8) for photograph in photographs]
    namespace: dict[str, Any] = {}
    exec(MODEL.format(name=FLOAT, kind="FLOAT", last=LAST[FLOAT]).replace("@autoserialize", ""), namespace)
    settings = {"device_id": 0, "prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}
    pipeline = namespace[FLOAT](num_threads=len(os.sched_getaffinity(0)), **settings)
    runner, drawing = PipelineRunner(pipeline), random.Random(0)

    def rate(count: int, overlaps: bool, seconds: float) -> float:
        batches, began, before = 0, time.perf_counter(), None
        with ThreadPoolExecutor(1) as thread:
            while time.perf_counter() - began < seconds:
                begun = runner.begin({"encoded_image": TensorListCPU(drawing.sample(files, count))}, count)
                if before is not None:
                    before.result()
                before = thread.submit(runner.complete, begun)
                if not overlaps:
                    before.result()
                batches += 1
        return batches * count / (time.perf_counter() - began)

    for count in (1, 8, 32, 64):
        found: dict[bool, list[float]] = {False: [], True: []}
        for overlaps in found:
            rate(count, overlaps, 0.2)
        for _ in range(rounds):
            for overlaps, rates in found.items():
                rates.append(rate(count, overlaps, seconds))
        alone, overlapped = (round(statistics.median(rates)) for rates in found.values())
        print(json.dumps({"images": count, "one after the other": alone, "two in flight": overlapped}), flush=True)
    pipeline.close()


def main() -> None:
    """Measure, check, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a row")
    parser.add_argument("--processes", type=int, default=min(8, len(os.sched_getaffinity(0))), help="of clients")
    parser.add_argument("--photographs", type=int, default=48, help="of each process")
    parser.add_argument(
        "--instances", type=int, nargs="+", default=[1], help="of each model; several are measured in turns"
    )
    parser.add_argument("--rounds", type=int, default=1, help="of each row")
    parser.add_argument("--checked", type=int, default=10000, help="requests whose answers are compared")
    parser.add_argument("--only", default="", help="the rows that match, as 'as_float http 1 64'")
    parser.add_argument("--flag", action="append", default=[], help="of Triton's, as '--http-thread-count=16'")
    parser.add_argument(
        "--setting", action="append", default=[], help="of all models, as 'device=cpu' or 'overlap_batches=false'"
    )
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        help="another server with this setting, measured in turns with the first",
    )
    parser.add_argument("--python-env", type=Path, help="to serve from")
    parser.add_argument("--in-process", action="store_true", help="batches of photographs without Triton instead")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    if options.in_process:
        in_process(options.seconds, options.rounds)
        return
    spawning = multiprocessing.get_context("spawn")
    found: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    warm: defaultdict[str, set[str]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder, spawning.Pool(options.processes) as pool:
        made = pool.starmap(
            make_photographs, [(seed, options.photographs) for seed in range(options.processes)], chunksize=1
        )
        print(f"{sum(made) / len(made) / 1e3:.0f} kB a photograph on average", flush=True)
        with ExitStack() as stack:
            servers: dict[str, LocalServer] = {}
            for instances in options.instances:
                repository = Path(folder) / f"{instances} instances"
                write_models(repository, instances)
                for beside in ("", *options.beside):
                    settings = dict(setting.split("=", 1) for setting in (*options.setting, beside) if setting)
                    server = LocalServer(
                        repository,
                        model_host="native",
                        environment=options.python_env,
                        flags=options.flag,
                        settings=settings,
                    )
                    name = f"{instances} instances {beside}".strip()
                    servers[name] = stack.enter_context(server)
            for row in rows():
                name = f"{row['model']} {row['protocol']} {row['images']} {row['clients']}"
                if not re.search(options.only, name):
                    continue
                for variant, server in servers.items():
                    if row["model"] not in warm[variant]:
                        measure(server, pool, options.processes, row, _WARM_UP_SECONDS)
                        warm[variant].add(row["model"])
                for _ in range(options.rounds):
                    for variant, server in servers.items():
                        row["variant"] = variant
                        found.append(measure(server, pool, options.processes, row, options.seconds))
                        print(json.dumps(found[-1]), flush=True)
            if options.checked:
                counts = check(next(iter(servers.values())), options.checked)
                print(json.dumps(counts), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rows": found, "checked": counts}, indent=1))
    if any(not kind.startswith("right") for kind in counts):
        sys.exit(1)


if __name__ == "__main__":
    main()
