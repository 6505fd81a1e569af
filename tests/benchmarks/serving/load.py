"""A lightweight load generator: sends prepared requests over persistent connections, with one thread per connection."""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np


def http_request(
    model: str, tensor: dict[str, Any], data: bytes, output: str, answer: dict[str, Any] | None = None
) -> bytes:
    """Return an inference request with binary tensors, ready to be sent.

    Args:
        model: the name of the model.
        tensor: the input's name, datatype and shape; and its parameters, if its content is not in ``data``.
        data: the input's binary content.
        output: the name of the requested output.
        answer: the parameters of the requested output; by default, its content is sent with the answer.
    """
    header = json.dumps(
        {
            "inputs": [{"parameters": {"binary_data_size": len(data)}} | tensor],
            "outputs": [{"name": output, "parameters": answer or {"binary_data": True}}],
        }
    ).encode()
    lines = (
        f"POST /v2/models/{model}/infer HTTP/1.1",
        "Host: localhost",
        f"Inference-Header-Content-Length: {len(header)}",
        f"Content-Length: {len(header) + len(data)}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + header + data


def image_request(model: str, encoded: bytes) -> bytes:
    """Return a request to preprocess one encoded image."""
    tensor = {"name": "encoded_image", "datatype": "BYTES", "shape": [1, 1]}
    return http_request(model, tensor, struct.pack("<I", len(encoded)) + encoded, "image")


@contextmanager
def image_requests_in_shared_memory(
    address: str, model: str, images: Sequence[bytes], answer: int
) -> Iterator[list[bytes]]:
    """Within the context, provide requests for images that the server reads from shared memory, to which it also writes the answers.

    So neither clients nor Triton's HTTP server spend time on tensors, and only the model is measured.

    Args:
        address: the host:port of HTTP.
        model: the name of the model.
        images: the encoded images.
        answer: the size of an answer in bytes.
    """
    framed = [struct.pack("<I", len(image)) + image for image in images]
    given = SharedMemory(create=True, size=sum(map(len, framed)))
    taken = SharedMemory(create=True, size=answer * len(images))
    try:
        given.buf[: sum(map(len, framed))] = b"".join(framed)
        for memory in (given, taken):
            _ask_json(
                address, f"{memory.name}/register", {"key": f"/{memory.name}", "offset": 0, "byte_size": memory.size}
            )
        requests, start = [], 0
        for number, one in enumerate(framed):
            tensor = {
                "name": "encoded_image",
                "datatype": "BYTES",
                "shape": [1, 1],
                "parameters": _part(given, start, len(one)),
            }
            requests.append(http_request(model, tensor, b"", "image", _part(taken, number * answer, answer)))
            start += len(one)
        yield requests
        for memory in (given, taken):
            _ask_json(address, f"{memory.name}/unregister", {})
    finally:
        for memory in (given, taken):
            memory.close()
            memory.unlink()


def _part(memory: SharedMemory, start: int, size: int) -> dict[str, Any]:
    return {"shared_memory_region": memory.name, "shared_memory_offset": start, "shared_memory_byte_size": size}


def _ask_json(address: str, what: str, content: dict[str, Any]) -> None:
    url = f"http://{address}/v2/systemsharedmemory/region/{what}"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(content).encode()), timeout=10):
        pass


def numbers_request(model: str) -> bytes:
    """Return a request with four numbers, for a model that returns its input."""
    tensor = {"name": "numbers", "datatype": "FP32", "shape": [1, 4]}
    return http_request(model, tensor, np.arange(4, dtype=np.float32).tobytes(), "same")


class Connection:
    """A persistent HTTP connection that sends prepared requests and always reads the answers into the same memory."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 20)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def ask(self, request: bytes) -> memoryview:
        """Send a request and wait for the answer.

        Returns:
            The answer's binary part; valid until the next call.

        Raises:
            RuntimeError: the server refused the request.
        """
        self._socket.sendall(request)
        view, filled, head = memoryview(self._buffer), 0, -1
        while head < 0:
            received = self._socket.recv_into(view[filled:])
            if not received:
                raise RuntimeError("the server closed the connection")
            filled += received
            head = self._buffer.find(b"\r\n\r\n", 0, filled)
        status, *lines = bytes(view[:head]).decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        end = head + 4 + int(fields["content-length"])
        if end > len(self._buffer):
            raise RuntimeError(f"an answer of {end} bytes is longer than expected")
        while filled < end:
            filled += self._socket.recv_into(view[filled:end])
        if " 200 " not in f"{status} ":
            raise RuntimeError(f"{status}: {bytes(view[head + 4 : end]).decode(errors='replace')}")
        return view[head + 4 + int(fields.get("inference-header-content-length", 0)) : end]


@dataclass
class Measurement:
    """The measurements of a load.

    Attributes:
        seconds: the time from the first request to the last answer, in seconds.
        latencies: each request's latency, in seconds.
    """

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def throughput(self) -> float:
        """The number of answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, percent: float) -> float:
        """Return the latency, in seconds, below which this percentage of requests stays."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100))]


def put_load(
    address: str, requests: Sequence[bytes], clients: int, seconds: float = math.inf, count: int | None = None
) -> Measurement:
    """Keep a server busy: each client sends its next request when the last one is answered.

    Args:
        address: the host:port of HTTP.
        requests: the requests to send, in turns.
        clients: the number of clients, which is the number of requests in flight.
        seconds, count: the time, in seconds, and the number of requests after which to stop, whichever comes first.
    """
    result, failures = Measurement(), []
    numbers: Iterator[int] = iter(range(count if count is not None else 1 << 60))
    started = time.perf_counter()

    def client() -> None:
        connection = Connection(address)
        latencies = []
        try:
            for number in numbers:
                sent = time.perf_counter()
                if sent - started > seconds:
                    break
                connection.ask(requests[number % len(requests)])
                latencies.append(time.perf_counter() - sent)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()
            result.latencies += latencies

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result.seconds = time.perf_counter() - started
    if failures:
        raise failures[0]
    return result
