"""Measure several ways to answer the same requests, in turns; clients are separate processes on the server's cores."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from processes import cpu_seconds

CORES = len(os.sched_getaffinity(0))
START_SECONDS = 900.0  # so long because other programs may use the machine, too
WARM_UP_SECONDS = 4.0

Answer = Callable[[bytes], Any]
"""A function that sends a request and returns the answer."""


@dataclass(frozen=True)
class Ways:
    """The ways that are compared.

    Attributes:
        module: the name of a module with ``WAYS``: for each way, a function from the server's address, a model's folder and a client's
            requests to an :data:`Answer`.
        names: the names of the ways.
        ours: the name of the way with which the others are compared.
        limit: the name of the way that uses no server.
        unit: the name of the thing that a request is about, such as a page.
        differ: a function that returns whether two answers differ.
    """

    module: str
    names: tuple[str, ...]
    ours: str
    limit: str
    unit: str = "page"
    differ: Callable[[Any, Any], bool] = lambda one, other: bool(one != other)


def serve_client(
    module: str, way: str, address: str, folder: Path, requests: Sequence[bytes], pipe: Connection
) -> None:
    """Run a client's process: for each number that arrives over ``pipe``, send requests for this many seconds, and send back what was
    measured.
    """
    answer = importlib.import_module(module).WAYS[way](address, folder, requests)
    answer(requests[0])
    pipe.send(None)
    number = 0
    while (seconds := pipe.recv()) is not None:
        latencies, answers, used, end = [], {}, time.process_time(), time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            answers[number % len(requests)] = answer(requests[number % len(requests)])
            latencies.append(time.perf_counter() - began)
            number += 1
        pipe.send((latencies, answers, time.process_time() - used))


@dataclass
class Round:
    """The measurements of one round.

    Attributes:
        seconds: the length of the round in seconds.
        latencies: the latency of each request in seconds.
        cpu_seconds: the processor time of the server and the clients, in seconds.
    """

    seconds: float
    latencies: list[float]
    cpu_seconds: float


@dataclass
class Candidate:
    """A way to answer, and its measurements.

    Attributes:
        way: the name of the way.
        rounds: the rounds that were measured.
        answers: the answers, by client and request.
    """

    way: str
    rounds: list[Round] = field(default_factory=list)
    answers: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def throughput(self) -> float:
        """The number of answers per second."""
        return statistics.median(len(one.latencies) / one.seconds for one in self.rounds)

    @property
    def processor(self) -> float:
        """The milliseconds of processor time per answer."""
        return 1e3 * statistics.median(one.cpu_seconds / len(one.latencies) for one in self.rounds)

    def latency(self, percent: float) -> float:
        """Return the latency, in milliseconds, below which this percentage of requests stays."""
        return 1e3 * float(np.percentile([latency for one in self.rounds for latency in one.latencies], percent))


class Clients:
    """Client processes that send requests in one way, and wait between rounds."""

    def __init__(self, module: str, way: str, address: str, folder: Path, requests: Sequence[Sequence[bytes]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        for own in requests:
            pipe, other = context.Pipe()
            process = context.Process(target=serve_client, args=(module, way, address, folder, own, other), daemon=True)
            process.start()
            self._pipes.append(pipe)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()

    def measure(self, candidate: Candidate, seconds: float, server: int | None) -> None:
        """Add a round."""
        served = 0.0 if server is None else cpu_seconds(server)
        began = time.perf_counter()
        for pipe in self._pipes:
            pipe.send(seconds)
        found = [pipe.recv() for pipe in self._pipes]
        elapsed = time.perf_counter() - began
        served = 0.0 if server is None else cpu_seconds(server) - served
        latencies = [latency for own, _, _ in found for latency in own]
        candidate.rounds.append(Round(elapsed, latencies, served + sum(used for _, _, used in found)))
        for client, (_, answers, _) in enumerate(found):
            candidate.answers |= {(client, request): own for request, own in answers.items()}

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


@contextlib.contextmanager
def serving(repository: Path, environment: Path | None = None) -> Iterator[Any]:
    """Run a server of a repository, on separate ports, from an environment; None: the default environment."""
    from penstock.serving.server import LocalServer

    server = LocalServer(repository, environment=environment, timeout=START_SECONDS).start()
    try:
        yield server
    finally:
        server.stop()


def take_turns(
    ways: Ways, server: Any, folder: Path, requests: Sequence[Sequence[bytes]], rounds: int, seconds: float
) -> list[Candidate]:
    """Measure all ways in turns, after a round to warm up.

    Args:
        server: the server that runs the models.
        folder: the folder of the model that needs only one request.
        requests: the requests of each client.
        rounds, seconds: the number of rounds, and the length of each in seconds.
    """
    candidates = {way: Candidate(way) for way in ways.names}
    clients = {
        way: Clients(ways.module, way, server.http_url, folder, requests[:CORES] if way == ways.limit else requests)
        for way in ways.names
    }
    for number in range(-1, rounds):
        for way, candidate in candidates.items():
            measured, duration = (Candidate(way), WARM_UP_SECONDS) if number < 0 else (candidate, seconds)
            clients[way].measure(measured, duration, None if way == ways.limit else server.pid)
    for own in clients.values():
        own.close()
    return list(candidates.values())


def show(found: Sequence[Candidate], ways: Ways) -> None:
    """Print the table."""
    ours = next(one for one in found if one.way == ways.ours)
    limit = next(one for one in found if one.way == ways.limit)
    unit = ways.unit
    print(
        f"| | {unit}s/s | penstock is | p50 ms | p99 ms | CPU ms a {unit} | penstock is | of these in networks | {unit}s read otherwise |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for one in found:
        both = one.answers.keys() & ours.answers.keys()
        changed = sum(ways.differ(one.answers[key], ours.answers[key]) for key in both)
        print(
            f"| {one.way} | {one.throughput:.2f} | {ours.throughput / one.throughput:.2f}x | {one.latency(50):.0f} "
            f"| {one.latency(99):.0f} | {one.processor:.0f} | {one.processor / ours.processor:.2f}x | {limit.processor / one.processor:.0%} "
            f"| {changed} of {len(both)} |"
        )
