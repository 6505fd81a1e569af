"""Requests that crash Triton, for the tests of the front. Run as a program, this module sends them to any server.

    python tests/serving/hostile_requests.py http 127.0.0.1:8000 MODEL
    python tests/serving/hostile_requests.py deadlines 127.0.0.1:8001 MODEL      # gRPC; 8 clients, 8,000 requests
    python tests/serving/hostile_requests.py cancellations 127.0.0.1:8001 MODEL

The model takes a UINT8 tensor `x` of shape [1, N].
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import multiprocessing
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from tritonclient.grpc import service_pb2

INFER = "/inference.GRPCInferenceService/ModelInfer"
CHUNKS = 1_000_000
MIN_DEADLINE_SECONDS, MAX_DEADLINE_SECONDS = 0.0015, 0.005
_ROW_BYTES = 10_000
"""The length of a request's row in a storm; the model takes about as long for such a row as the deadlines allow."""


@dataclass(frozen=True)
class Target:
    """A server's HTTP or gRPC port.

    Attributes:
        address: ``host:port``.
        model: the model to which requests are sent.
        headers: headers that are sent with each request, e.g. a key.
    """

    address: str
    model: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/v2/models/{self.model}/infer"

    def post(self, body: bytes, path: str = "", **headers: str) -> tuple[int, bytes]:
        """Return the status and body of an answer; status 0: the server closed the connection without one."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        # The server may have answered before it had received the whole body.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", path or self.path, body, self.headers | sent)
        try:
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError):
            return 0, b""
        finally:
            connection.close()


def request_body(shape: list[Any], data: list[int], **others: Any) -> bytes:
    """Return a request in JSON."""
    return json.dumps({"inputs": [{"name": "x", "shape": shape, "datatype": "UINT8", "data": data} | others]}).encode()


def nested_body(target: Target) -> int:
    return target.post(b"[" * 200_000)[0]


def overflowing_shape(target: Target) -> int:
    return target.post(request_body([1, 1 << 62], [1]))[0]


def huge_shape(target: Target) -> int:
    return target.post(request_body([1_000_000_000_000], [1]))[0]


def many_chunks(target: Target) -> int:
    """Send a request in chunks of one byte; return the status of the answer."""
    host, port = target.address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        headers = {"Host": target.address, "Transfer-Encoding": "chunked", **target.headers}
        lines = [f"POST {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(CHUNKS // 10_000):
                connection.sendall(b"1\r\n \r\n" * 10_000)
            connection.sendall(b"0\r\n\r\n")
        try:
            answer = connection.recv(100)
        except ConnectionResetError:
            return 0
    return int(answer.split()[1]) if answer else 0


def compressed_body(target: Target) -> int:
    """Send a body of one megabyte that decompresses to a gigabyte; return the status of the answer."""
    packed = gzip.compress(bytes(1 << 30), 1)
    return target.post(packed, content_encoding="gzip")[0]


CRASHES: dict[str, Callable[[Target], int]] = {
    "nested": nested_body,
    "overflowing shape": overflowing_shape,
    "huge shape": huge_shape,
    "chunks": many_chunks,
}
"""Functions that send an HTTP request that ends Triton 2.51, and return the status of the answer."""


def grpc_request(model: str, elements: int = 3) -> bytes:
    """Return a serialized gRPC request."""
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="x", datatype="UINT8", shape=[1, elements])
    request.raw_input_contents.append(b"a" * elements)
    return bytes(request.SerializeToString())


def _send_with_deadlines(call: Any, request: bytes, metadata: Any) -> str:
    try:
        call(request, timeout=random.uniform(MIN_DEADLINE_SECONDS, MAX_DEADLINE_SECONDS), metadata=metadata)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def _send_and_cancel(call: Any, request: bytes, metadata: Any) -> str:
    answer = call.future(request, metadata=metadata)
    time.sleep(random.uniform(0, MAX_DEADLINE_SECONDS))
    answer.cancel()
    try:
        answer.result()
    except grpc.FutureCancelledError:
        return "CANCELLED"
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


STORMS = {"deadlines": _send_with_deadlines, "cancellations": _send_and_cancel}


def _client(storm: str, target: Target, requests: int, results: Any) -> None:
    request, counts = grpc_request(target.model, _ROW_BYTES), Counter[str]()
    with grpc.insecure_channel(target.address) as channel:
        call = channel.unary_unary(INFER)
        for _ in range(requests):
            counts[STORMS[storm](call, request, tuple(target.headers.items()))] += 1
            if counts["UNAVAILABLE"] > 20:  # the server is gone
                break
    results.put(counts)


def send_storm(storm: str, target: Target, requests: int = 8000, clients: int = 8) -> Counter[str]:
    """Send requests from several processes; return how many requests ended with each status."""
    # Not forked: gRPC does not work in forked processes.
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    processes = [
        context.Process(target=_client, args=(storm, target, requests // clients, results)) for _ in range(clients)
    ]
    for process in processes:
        process.start()
    counts = sum((results.get() for _ in processes), Counter[str]())
    for process in processes:
        process.join()
    return counts


def main() -> None:
    """Send the requests that the command line selects."""
    what, address, model = sys.argv[1:]
    target = Target(address, model)
    if what in STORMS:
        print(what, dict(send_storm(what, target)))
        return
    for name, send in CRASHES.items():
        print(f"{name}: {send(target) or 'no answer'}")
        time.sleep(5)  # the server's supervisor may restart it


if __name__ == "__main__":
    main()
