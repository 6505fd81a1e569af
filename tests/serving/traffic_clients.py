"""Lightweight clients for HTTP and gRPC, so that the load generator takes little CPU time."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import grpc
import numpy as np
from traffic_requests import Arrays, Request, Tensor
from tritonclient.grpc import service_pb2, service_pb2_grpc

TYPES = {"FP32": np.float32, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8}

STATUSES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE"}
"""The gRPC status that corresponds to each HTTP status."""

LOST = "LOST"
"""The status if the connection broke, or could not be made."""


@dataclass(frozen=True)
class Answer:
    """An answer of a server: tensors, or an error.

    Attributes:
        identity: the request's id, which the server returns; an empty string in errors.
        tensors: the tensors by name.
        status: the gRPC status; ``OK`` if there was no error.
        message: the error's message.
    """

    identity: str = ""
    tensors: Arrays | None = None
    status: str = "OK"
    message: str = ""


class Client(Protocol):
    """A client with one connection, which sends one request at a time."""

    async def ask(self, request: Request) -> Answer:
        """Send a request and wait for the answer."""

    async def abandon(self, request: Request, after: float) -> Answer | None:
        """Send a request, and give up after ``after`` seconds; return the answer if it arrived before."""

    async def close(self) -> None:
        """End the connection."""


def array_of(datatype: str, shape: Iterable[int], data: bytes) -> np.ndarray:
    """Return a tensor made from the bytes of a response."""
    extents = tuple(int(extent) for extent in shape)
    if datatype != "BYTES":
        return np.frombuffer(data, TYPES[datatype]).reshape(extents)
    elements, start = [], 0
    while start < len(data):
        stop = start + 4 + int.from_bytes(data[start : start + 4], "little")
        elements.append(data[start + 4 : stop])
        start = stop
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array.reshape(extents)


class HttpClient:
    """A client that uses HTTP over one persistent connection."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.rpartition(":")
        self._port = int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request) -> Answer:
        try:
            reader, writer = await self._connected()
            writer.writelines(_http_message(request))
            return await _http_answer(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            return Answer(status=LOST, message=f"{type(error).__name__}: {error}")

    async def abandon(self, request: Request, after: float) -> Answer | None:
        """Send a request, or half of it, and close the connection after ``after`` seconds; return None, or an answer
        with the status LOST.
        """
        try:
            _, writer = await self._connected()
            message = b"".join(_http_message(request))
            writer.write(message if request.identity % 2 else message[: len(message) // 2])
            await asyncio.sleep(after)
        except OSError as error:
            return Answer(status=LOST, message=f"{type(error).__name__}: {error}")
        finally:
            await self.close()
        return None

    async def close(self) -> None:
        if self._streams is not None:
            writer, self._streams = self._streams[1], None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        return self._streams


def _http_message(request: Request) -> list[bytes]:
    described = {
        "id": str(request.identity),
        "inputs": [_described(tensor) for tensor in request.tensors],
        "parameters": {"binary_data_output": True, **request.parameters},
    }
    if request.outputs:
        described["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in request.outputs]
    header = json.dumps(described).encode()
    body = [tensor.data for tensor in request.tensors]
    length = len(header) + sum(map(len, body))
    top = (
        f"POST /v2/models/{request.model}/infer HTTP/1.1\r\nHost: traffic\r\nContent-Length: {length}\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\n\r\n"
    )
    return [top.encode(), header, *body]


def _described(tensor: Tensor) -> dict[str, object]:
    return {
        "name": tensor.name,
        "shape": tensor.shape,
        "datatype": tensor.datatype,
        "parameters": {"binary_data_size": len(tensor.data)},
    }


async def _http_answer(reader: asyncio.StreamReader) -> Answer:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    code = int(first.split()[1])
    if code != 200:
        try:
            message = json.loads(body)["error"]
        except (ValueError, KeyError):
            message = body.decode("latin-1")
        return Answer(status=STATUSES.get(code, str(code)), message=message)
    size = int(headers.get("inference-header-content-length", len(body)))
    described = json.loads(body[:size])
    tensors, start = {}, size
    for output in described["outputs"]:
        stop = start + output["parameters"]["binary_data_size"]
        tensors[output["name"]] = array_of(output["datatype"], output["shape"], body[start:stop])
        start = stop
    return Answer(described.get("id", ""), tensors)


class GrpcClient:
    """A client that uses gRPC over one connection."""

    def __init__(self, url: str) -> None:
        options = [
            # A separate connection: by default, all clients of the process would share one.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            # This is also the time limit for an attempt to connect: a busy server is slow to accept.
            ("grpc.min_reconnect_backoff_ms", 20_000),
            ("grpc.max_reconnect_backoff_ms", 300),
        ]
        self._channel = grpc.aio.insecure_channel(url, options)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    async def ask(self, request: Request) -> Answer:
        try:
            return _grpc_answer(await self._stub.ModelInfer(_grpc_message(request)))
        except grpc.aio.AioRpcError as error:
            return _grpc_error(error)

    async def abandon(self, request: Request, after: float) -> Answer | None:
        """Send a request, and cancel the call after ``after`` seconds; return the answer if it arrived before."""
        call = self._stub.ModelInfer(_grpc_message(request))
        asyncio.get_running_loop().call_later(after, call.cancel)
        try:
            return _grpc_answer(await call)
        except asyncio.CancelledError:
            return None
        except grpc.aio.AioRpcError as error:
            return None if error.code() is grpc.StatusCode.CANCELLED else _grpc_error(error)

    async def ask_until(self, request: Request, seconds: float) -> Answer | None:
        """Send a request with a deadline of ``seconds``; return the answer if it arrived before."""
        try:
            return _grpc_answer(await self._stub.ModelInfer(_grpc_message(request), timeout=seconds))
        except grpc.aio.AioRpcError as error:
            return None if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else _grpc_error(error)

    async def close(self) -> None:
        await self._channel.close()


def _grpc_message(request: Request) -> service_pb2.ModelInferRequest:
    inputs = [
        service_pb2.ModelInferRequest.InferInputTensor(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        for tensor in request.tensors
    ]
    outputs = [service_pb2.ModelInferRequest.InferRequestedOutputTensor(name=name) for name in request.outputs]
    return service_pb2.ModelInferRequest(
        model_name=request.model,
        id=str(request.identity),
        inputs=inputs,
        outputs=outputs,
        parameters={name: service_pb2.InferParameter(int64_param=value) for name, value in request.parameters.items()},
        raw_input_contents=[tensor.data for tensor in request.tensors],
    )


def _grpc_answer(response: service_pb2.ModelInferResponse) -> Answer:
    tensors = {
        output.name: array_of(output.datatype, output.shape, data)
        for output, data in zip(response.outputs, response.raw_output_contents)
    }
    return Answer(response.id, tensors)


def _grpc_error(error: grpc.aio.AioRpcError) -> Answer:
    message = error.details() or ""
    # If there is no server, the gRPC library raises UNAVAILABLE; an UNAVAILABLE from Triton names the model.
    lost = error.code().name == "UNAVAILABLE" and "model" not in message
    return Answer(status=LOST if lost else error.code().name, message=message)
