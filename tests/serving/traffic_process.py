"""A client process: sends requests, checks each answer, and prints counts as lines of JSON.

`traffic.py` starts it, with the settings as the only argument; it ends early if its standard input is closed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from traffic_clients import LOST, Answer, Client, GrpcClient, HttpClient
from traffic_requests import ASKED, Refusal, Request, RequestMaker

PATIENCE = 60.0
"""Seconds after which a request counts as never answered."""

MIN_DEADLINE, DEADLINE_SPREAD = 0.0015, 0.0035
"""The shortest deadline and the range of deadlines, in seconds: about as long as an answer takes, so that a deadline
may expire before the answer, at the same time, or after it.
"""

BIN = 0.05
"""The length of a bin of the timeline, in seconds."""

KEPT_MISTAKES = 3
"""The number of mistakes of each kind whose descriptions are stored."""


@dataclass(frozen=True)
class Settings:
    """The settings of a process.

    Attributes:
        http_url, grpc_url: the server's addresses for HTTP and gRPC; the clients take turns between the two protocols.
        clients: the number of clients that send requests at the same time.
        requests: the number of requests to send; 0: no limit.
        seconds: for how many seconds to send requests; 0: until all are sent.
        bad: the fraction of requests that are bad.
        abandoned: the fraction of good requests over HTTP whose connection is closed before the answer.
        cancelled: the fraction of good requests over gRPC that are cancelled. Up to 25.01, Triton may die if a cancelled request ends at
            the same time (triton-inference-server/server#7368).
        deadlines: the fraction of good requests over gRPC that have a deadline of a few milliseconds, which may kill
            Triton, too.
        models: the models to which requests are sent, in turn.
        pause: the number of seconds between two requests of a client.
        single: whether good requests have one sample each.
        seed: the seed of the random numbers.
        number, processes: the number of this process, and the number of processes.
    """

    http_url: str
    grpc_url: str
    clients: int = 32
    requests: int = 0
    seconds: float = 0.0
    bad: float = 0.1
    abandoned: float = 0.02
    cancelled: float = 0.0
    deadlines: float = 0.0
    models: tuple[str, ...] = ASKED
    pause: float = 0.0
    single: bool = False
    seed: int = 0
    number: int = 0
    processes: int = 1


@dataclass
class Counts:
    """The outcomes of requests.

    Attributes:
        right: the number of good requests with the right answer, by model.
        wrong: the number of good requests with another answer, by model.
        failed: the number of good requests with an error, by model and error; also includes bad requests that found no server.
        away: the number of failed good requests that found no server, or a server that was still loading the model, by model.
        refused: the number of bad requests with the expected error, by kind.
        misjudged: the number of bad requests with another error, by model and kind.
        accepted: the number of bad requests with an answer, by model and kind.
        abandoned: the number of good requests that their client gave up, by model: closed, cancelled, or past their
            deadline.
        mistakes: descriptions of the first mistakes of each kind.
        waited: the number of right answers by the time that they took, in four bins for each doubling of the time.
        timeline: the number of right answers and the number of others, for each bin of time and each model.
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    away: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    misjudged: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    abandoned: Counter[str] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)
    mistakes: dict[str, list[str]] = field(default_factory=dict)
    timeline: dict[str, list[int]] = field(default_factory=dict)

    @property
    def sent(self) -> int:
        """The number of requests with a known outcome."""
        every = (self.right, self.wrong, self.failed, self.refused, self.misjudged, self.accepted, self.abandoned)
        return sum(counter.total() for counter in every)

    @property
    def seconds(self) -> float:
        """The number of seconds from the first answer to a good request to the last one."""
        bins = [int(key.split()[0]) for key in self.timeline]
        return (max(bins) - min(bins) + 1) * BIN if bins else 0.0

    @property
    def spotless(self) -> bool:
        """Whether each good request got its answer, and each bad request its error."""
        return not (self.wrong or self.failed or self.misjudged or self.accepted)

    @property
    def honest(self) -> bool:
        """Whether each request got the right answer or found no server, as after a death."""
        return not (self.wrong or self.misjudged or self.accepted) and self.away.total() == self.failed.total()

    def add(self, other: Counts) -> Counts:
        """Add other counts to these, and return the sum."""
        for entry in dataclasses.fields(self):
            mine, theirs = getattr(self, entry.name), getattr(other, entry.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
        for kind, texts in other.mistakes.items():
            for text in texts:
                self._mistake(kind, text)
        for key, (right, others) in other.timeline.items():
            known = self.timeline.setdefault(key, [0, 0])
            known[0] += right
            known[1] += others
        return self

    def as_json(self) -> str:
        """Return the counts as JSON, for `of_json`."""
        return json.dumps(vars(self))

    @classmethod
    def of_json(cls, text: str) -> Counts:
        """Return the counts that `as_json` wrote."""
        told = json.loads(text)
        return cls(**{key: value if key in ("mistakes", "timeline") else Counter(value) for key, value in told.items()})

    # -- counting outcomes -----------------------------------------------------------------------------------------

    def judge(self, request: Request, answer: Answer | None, began: float) -> None:
        """Count a request and its outcome."""
        now = time.time()
        if answer is None:
            self.abandoned[request.model] += 1
        elif isinstance(request.expected, Refusal):
            self._judge_refusal(request, request.expected, answer)
        else:
            right = self._judge_answer(request, answer)
            self._mark(now, request.model, right)
            if right:
                self.waited[str(round(4 * np.log2(max(now - began, 1e-4) * 1000)))] += 1

    def _judge_answer(self, request: Request, answer: Answer) -> bool:
        if answer.tensors is None:
            self._fail(request, answer)
            return False
        difference = differences(request, answer)
        if difference:
            self.wrong[request.model] += 1
            self._mistake(f"{request.model} answered wrongly", difference)
            return False
        self.right[request.model] += 1
        return True

    def _judge_refusal(self, request: Request, deserved: Refusal, answer: Answer) -> None:
        if answer.tensors is not None:
            self.accepted[f"{request.model}: {request.kind}"] += 1
            self._mistake(f"{request.kind} was answered", f"by {request.model}")
        elif is_away(answer):
            self._fail(request, answer)
        elif not deserved.fits(answer.status, answer.message):
            self.misjudged[f"{request.model}: {request.kind}"] += 1
            self._mistake(
                f"{request.kind} misjudged",
                f"{request.model}: {answer.status} {answer.message[:300]!r}, not {deserved.status} of sample "
                f"{deserved.sample} with {deserved.words}",
            )
        else:
            self.refused[request.kind] += 1

    def _fail(self, request: Request, answer: Answer) -> None:
        self.failed[f"{request.model}: {answer.status}"] += 1
        self.away[request.model] += is_away(answer)
        self._mistake(f"{request.model} failed", f"{answer.status} {answer.message[:300]}")

    def _mistake(self, kind: str, text: str) -> None:
        known = self.mistakes.setdefault(kind, [])
        if len(known) < KEPT_MISTAKES:
            known.append(text)

    def _mark(self, now: float, model: str, right: bool) -> None:
        self.timeline.setdefault(f"{int(now / BIN)} {model}", [0, 0])[not right] += 1


def is_away(answer: Answer) -> bool:
    """Return whether an error says that there is no server, or that it has not loaded the model."""
    return answer.status in (LOST, "UNAVAILABLE") or "no available versions" in answer.message


def differences(request: Request, answer: Answer) -> str:
    """Return how an answer differs from the expected one; an empty string if it does not."""
    assert isinstance(request.expected, dict)
    assert answer.tensors is not None
    if answer.identity != str(request.identity):
        return f"request {request.identity} got the answer of '{answer.identity}'"
    if set(answer.tensors) != set(request.expected):
        return f"outputs {sorted(answer.tensors)}, not {sorted(request.expected)}"
    for name, right in request.expected.items():
        given = answer.tensors[name]
        if given.dtype != right.dtype or given.shape != right.shape:
            return f"'{name}' is {given.dtype}{list(given.shape)}, not {right.dtype}{list(right.shape)}"
        if not np.array_equal(given, right):
            return f"'{name}' of request {request.identity} begins {_begin(given)}, not {_begin(right)}"
    return ""


def _begin(array: np.ndarray) -> str:
    return str(array.reshape(-1)[:8].tolist())


class Process:
    """The clients of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._maker = RequestMaker(settings.seed, settings.number, settings.processes, settings.models, settings.single)
        self._counts = Counts()
        self._begun = 0
        self._stopped = False

    async def run(self) -> None:
        """Send all requests; print the counts every half second and at the end."""
        settings = self._settings
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._stop)
        if settings.seconds:
            loop.call_later(settings.seconds, self._stop)
        clients: list[Client] = [
            GrpcClient(settings.grpc_url) if number % 2 else HttpClient(settings.http_url)
            for number in range(settings.clients)
        ]
        reporter = asyncio.create_task(self._report())
        await asyncio.gather(*map(self._send, clients))
        reporter.cancel()
        await asyncio.gather(*(client.close() for client in clients))
        print(self._counts.as_json(), flush=True)

    def _stop(self) -> None:
        self._stopped = True
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            print(self._counts.as_json(), flush=True)
            # Counts are reset after they are printed; the receiver adds them up.
            self._counts = Counts()

    async def _send(self, client: Client) -> None:
        while not self._stopped and not 0 < self._settings.requests <= self._begun:
            self._begun += 1
            began = time.time()
            request, answer = await self._one(client)
            self._counts.judge(request, answer, began)
            # Wait, so that not thousands of requests per second are sent while there is no server.
            await asyncio.sleep(max(self._settings.pause, 0.05 if answer and answer.status == LOST else 0.0))

    async def _one(self, client: Client) -> tuple[Request, Answer | None]:
        maker, settings = self._maker, self._settings
        if maker.chance() < settings.bad:
            request = maker.bad()
        else:
            request = maker.good()
            if isinstance(client, GrpcClient) and maker.chance() < settings.deadlines:
                return request, await client.ask_until(request, MIN_DEADLINE + maker.chance() * DEADLINE_SPREAD)
            if maker.chance() < (settings.cancelled if isinstance(client, GrpcClient) else settings.abandoned):
                return request, await client.abandon(request, maker.chance() * 0.004)
        try:
            return request, await asyncio.wait_for(client.ask(request), PATIENCE)
        except TimeoutError:
            await client.close()
            return request, Answer(status="NEVER", message=f"no answer in {PATIENCE:.0f} s")


if __name__ == "__main__":
    asyncio.run(Process(Settings(**json.loads(sys.argv[1]))).run())
