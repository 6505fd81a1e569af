"""Clients that send prepared requests to a server over persistent HTTP connections, and measure throughput and latency."""

from __future__ import annotations

import http.client
import json
import math
import multiprocessing
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from types import TracebackType

import numpy as np

_REQUEST_TIMEOUT_SECONDS = 60.0
_JSON_SIZE_HEADER = "Inference-Header-Content-Length"


@dataclass(frozen=True)
class InferRequest:
    """An HTTP request for inference: a JSON header, and the bytes of the tensors.

    Attributes:
        body: the header followed by the tensors.
        header_bytes: the size of the header in bytes.
    """

    body: bytes
    header_bytes: int

    @classmethod
    def of(cls, tensors: Mapping[str, np.ndarray], datatypes: Mapping[str, str], batched: bool) -> InferRequest:
        """Build a request for one sample.

        Args:
            tensors: the sample's arrays, by input; encoded data is uint8 of shape (bytes,).
            datatypes: Triton's names of the inputs' types, such as ``"FP32"``, or ``"BYTES"`` for encoded data.
            batched: whether the model takes batches, so that a first dimension of 1 is added.
        """
        inputs, parts = [], []
        for name, tensor in tensors.items():
            content = np.ascontiguousarray(tensor).tobytes()
            shape = list(tensor.shape)
            if datatypes[name] == "BYTES":
                content, shape = len(content).to_bytes(4, "little") + content, [1]
            shape = [1, *shape] if batched else shape
            size = {"binary_data_size": len(content)}
            inputs.append({"name": name, "datatype": datatypes[name], "shape": shape, "parameters": size})
            parts.append(content)
        header = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        return cls(b"".join([header, *parts]), len(header))


@dataclass(frozen=True)
class Load:
    """Measurements taken while clients kept a server busy.

    Attributes:
        rate: the number of answers per second.
        p50, p99: the latencies in seconds that 50 % and 99 % of the answers did not exceed.
        failed: the number of requests that were refused or not answered.
        reason: why one of these requests failed; an empty string if none did.
    """

    rate: float
    p50: float
    p99: float
    failed: int
    reason: str = ""


class LoadGenerator:
    """Clients in separate processes, so that they do not have to take turns.

    Args:
        requests: the requests to send, in turn and repeatedly.
        clients: the number of connections, each with one request in flight.

    Example:
        >>> with LoadGenerator(requests, clients=16) as load:
        ...     print(load.run("127.0.0.1:8000", "imagenet_preprocess", seconds=3).rate)
    """

    def __init__(self, requests: Sequence[InferRequest], clients: int) -> None:
        processes = max(min(clients, len(os.sched_getaffinity(0)) // 2), 1)
        self._clients = [len(range(number, clients, processes)) for number in range(processes)]
        self._pool = ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), initializer=_set_requests, initargs=(list(requests),)
        )

    def __enter__(self) -> LoadGenerator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def run(self, address: str, model: str, seconds: float) -> Load:
        """Keep a model busy for some seconds, and return the measurements.

        Args:
            address: host:port of the server's HTTP interface.
            model: the model's name.
            seconds: the number of seconds after which no more requests are sent.
        """
        # All processes begin at this time, by which all of them have started.
        start = time.time() + 0.05
        runs = [
            self._pool.submit(_send_from_threads, address, model, start, seconds, clients) for clients in self._clients
        ]
        counts = [run.result() for run in runs]
        latencies = np.sort(np.concatenate([np.array(found) for found, _, _ in counts]))
        failed = sum(count for _, count, _ in counts)
        reason = next((reason for _, _, reason in counts if reason), "")
        if not latencies.size:
            return Load(0.0, math.inf, math.inf, failed, reason)
        p50, p99 = (float(latencies[int(share * (latencies.size - 1))]) for share in (0.5, 0.99))
        return Load(latencies.size / seconds, p50, p99, failed, reason)


def ask(address: str, model: str, request: InferRequest) -> str:
    """Send a request, and return why it failed; an empty string if it was answered."""
    connection = http.client.HTTPConnection(address, timeout=_REQUEST_TIMEOUT_SECONDS)
    try:
        return _ask(connection, model, request)
    finally:
        connection.close()


_requests: list[InferRequest] = []


def _set_requests(requests: list[InferRequest]) -> None:
    _requests[:] = requests


def _send_from_threads(
    address: str, model: str, start: float, seconds: float, clients: int
) -> tuple[list[float], int, str]:
    """Send requests from several connections; return latencies in seconds, the number of failures, and the reason for one failure."""
    latencies: list[float] = []
    reasons: list[str] = []
    time.sleep(max(start - time.time(), 0.0))
    deadline = time.perf_counter() + seconds

    def send(number: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=_REQUEST_TIMEOUT_SECONDS)
        position = number * len(_requests) // clients
        while (begin := time.perf_counter()) < deadline:
            reason = _ask(connection, model, _requests[position % len(_requests)])
            position += 1
            if reason:
                reasons.append(reason)
            else:
                latencies.append(time.perf_counter() - begin)
        connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, len(reasons), reasons[0] if reasons else ""


def _ask(connection: http.client.HTTPConnection, model: str, request: InferRequest) -> str:
    try:
        connection.request(
            "POST", f"/v2/models/{model}/infer", request.body, {_JSON_SIZE_HEADER: str(request.header_bytes)}
        )
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()  # the next request opens it again
        return f"{type(error).__name__}: {error}"
    return "" if response.status == 200 else content.decode(errors="replace")
