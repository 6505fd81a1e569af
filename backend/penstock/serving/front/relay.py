"""Passes gRPC calls on to Triton without their deadlines and cancellations.

Triton's gRPC front can crash when a call is cancelled at the wrong moment, by its client or by its deadline (seen with 2.51).
Here, if a client no longer waits for its call, only the client's side of the call ends: Triton still answers, and the answer is dropped.
Messages are passed on as bytes, without decoding.

    python relay.py unix:/path/of/socket 127.0.0.1:8001 MAX_MESSAGE_BYTES
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TypeVar

import grpc
import grpc.aio

MAX_CALLS = 256
"""The largest number of calls in flight to Triton, including those of disconnected clients. Further calls wait, and end if their
clients disconnect.
"""

MAX_STREAMS = 256
"""The largest number of open streams to Triton, including those of disconnected clients."""

MAX_DROPPED_ANSWERS = 10_000
"""How many answers of a stream Triton may still send after the client has disconnected; then the stream is cancelled after
all.
"""

STOP_SECONDS = 5.0
"""How many seconds a stopped relay waits for calls in flight, and then for the calls of disconnected clients."""

_STREAM_METHOD = "ModelStreamInfer"
_HOP_METADATA = ("user-agent", "authorization", "te", "content-type")
"""Metadata that is not passed on: it belongs to the connection to the front, or is meant for the front."""

Result = TypeVar("Result")
Metadata = tuple[tuple[str, str | bytes], ...]


def _do_nothing() -> None:
    pass


class Relay(grpc.GenericRpcHandler):  # type: ignore[misc]  # it has no types
    """Handles each method by passing the bytes of its messages on to Triton.

    Args:
        channel: the channel to Triton.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._free_calls = asyncio.Semaphore(MAX_CALLS)
        self._streams = 0
        self._tasks: set[asyncio.Task[object]] = set()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler of a call, for any method: Triton reports unknown ones."""
        method = details.method
        if method.endswith(f"/{_STREAM_METHOD}"):
            return grpc.stream_stream_rpc_method_handler(self._stream(method))
        return grpc.unary_unary_rpc_method_handler(self._unary(method))

    async def finish(self, seconds: float) -> None:
        """Wait for calls in flight to Triton, which the end of this process would cancel."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _unary(self, method: str) -> Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]:
        upstream = self._channel.unary_unary(method)

        async def handle(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            await self._free_calls.acquire()
            # If the client disconnects, or its deadline expires, this handler is cancelled; the shield keeps the call to Triton from being
            # cancelled, too.
            call = self._start(_answer(upstream(request, metadata=_passed_on(context))), self._free_calls.release)
            try:
                return await asyncio.shield(call)
            except grpc.aio.AioRpcError as error:
                await _repeat(error, context)
                raise  # not reached: the line above raises

        return handle

    def _stream(self, method: str) -> Callable[[AsyncIterator[bytes], grpc.aio.ServicerContext], AsyncIterator[bytes]]:
        upstream = self._channel.stream_stream(method)

        async def handle(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
            if self._streams == MAX_STREAMS:
                await context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_STREAMS} streams are open; try again later"
                )
            self._streams += 1
            # In separate tasks: if this handler awaited the call to Triton directly, the handler's cancellation would cancel the call.
            call = upstream(metadata=_passed_on(context))
            self._start(_send(requests, call))
            answers = _Answers()
            receiver = self._start(answers.receive(call), self._end_stream)
            try:
                while (answer := await answers.queue.get()) is not None:
                    yield answer
                await asyncio.shield(receiver)
            except grpc.aio.AioRpcError as error:
                await _repeat(error, context)
            finally:
                answers.drop()

        return handle

    def _end_stream(self) -> None:
        self._streams -= 1

    def _start(
        self, work: Coroutine[object, object, Result], then: Callable[[], None] = _do_nothing
    ) -> asyncio.Task[Result]:
        """Start a task that continues if the handler that starts it is cancelled; call ``then`` when it ends."""

        def finish(task: asyncio.Task[Result]) -> None:
            self._tasks.discard(task)
            then()
            if not task.cancelled():
                task.exception()  # mark the exception as retrieved, in case nobody awaits it any more

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(finish)
        return task


class _Answers:
    """The answers of a stream that wait for the client; after the client has disconnected, they are dropped."""

    def __init__(self) -> None:
        # None marks the end. The queue is short, so that a slow client slows Triton down.
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=2)
        self._dropped: int | None = None

    def drop(self) -> None:
        """Drop the waiting answers and all further ones, as nobody waits for them."""
        self._dropped = 0
        while not self.queue.empty():  # makes room, for which `receive` may be waiting
            self.queue.get_nowait()

    async def receive(self, call: grpc.aio.StreamStreamCall) -> None:
        """Receive answers until the call ends; raise AioRpcError if it ends with an error."""
        try:
            async for answer in call:
                if self._dropped is None:
                    await self.queue.put(answer)
                    continue
                self._dropped += 1
                if self._dropped == MAX_DROPPED_ANSWERS:
                    call.cancel()
        finally:
            if self._dropped is None:
                await self.queue.put(None)


async def _answer(call: Awaitable[bytes]) -> bytes:
    return await call


async def _send(requests: AsyncIterator[bytes], call: grpc.aio.StreamStreamCall) -> None:
    """Send the client's messages until it has no more or has disconnected; then close the sending side, so that Triton ends the call."""
    # If the client has disconnected, the call ends with some error, which does not matter.
    with contextlib.suppress(Exception):
        try:
            async for request in requests:
                await call.write(request)
        finally:
            await call.done_writing()


async def _repeat(error: grpc.aio.AioRpcError, context: grpc.aio.ServicerContext) -> None:
    """End the client's call with the error with which Triton has ended its call."""
    await context.abort(error.code(), error.details() or "", error.trailing_metadata() or ())


def _passed_on(context: grpc.aio.ServicerContext) -> Metadata:
    received = context.invocation_metadata() or ()
    return tuple((key, value) for key, value in received if key not in _HOP_METADATA and not key.startswith("grpc-"))


async def serve(socket: str, triton: str, max_message_bytes: int) -> None:
    """Relay calls until this process gets SIGTERM.

    Args:
        socket: the address to listen on, ``unix:PATH``.
        triton: ``host:port`` of Triton's gRPC interface.
        max_message_bytes: the largest size of a client's message; answers of Triton may have any size.
    """
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(triton, options=[*unlimited, ("grpc.enable_retries", 0)]) as channel:
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.max_send_message_length", -1),
            ]
        )
        relay = Relay(channel)
        server.add_generic_rpc_handlers((relay,))
        server.add_insecure_port(socket)
        await server.start()
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()
        await server.stop(grace=STOP_SECONDS)
        await relay.finish(STOP_SECONDS)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
