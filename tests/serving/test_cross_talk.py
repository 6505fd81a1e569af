"""Each answer belongs to its request: 20,000 requests of 32 clients over HTTP and gRPC, a tenth of them bad; the same while
models are reloaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import stopped_later
from traffic import Memory, Reloads, Traffic, children, one_by_one, summary_of
from traffic_models import write_repository
from traffic_process import Counts
from traffic_requests import ASKED, RequestMaker

REQUESTS = 20_000

# The first test starts the run that all tests here use. On a busy machine, this takes longer than tests usually may.
pytestmark = pytest.mark.exhaustive


@dataclass
class Run:
    """The outcome of the traffic: the counts before, during and after it, and its duration."""

    alone_before: Counts
    clean: Counts
    mixed: Counts
    reloaded: Counts
    alone_after: Counts
    memory: Memory
    stubs_before: set[int]
    stubs_after: set[int]
    reloads: Reloads


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = write_repository(tmp_path_factory.mktemp("repository"))
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    with stopped_later(LocalServer(repository, flags=flags, allow_failures=True)) as running:
        yield running


@pytest.fixture(scope="module")
def run(server: LocalServer) -> Run:
    urls = server.http_url, server.grpc_url
    stubs = set(children(server.pid))
    alone = one_by_one(*urls, seed=1)
    with Traffic(*urls, requests=REQUESTS // 10, bad=0, seed=2) as traffic:
        clean = traffic.wait()
    with Memory(server.pid, every=0.25) as memory, Traffic(*urls, requests=REQUESTS, seed=3) as traffic:
        mixed = traffic.wait()
    # Printed for readers of the log: timings depend on the machine, so no test checks them.
    told, of_clean = summary_of(mixed), summary_of(clean)
    kept = told["right_per_second"] / of_clean["right_per_second"]
    print(f"right answers per second beside bad requests: {kept:.0%} of those without")
    print(json.dumps(told, indent=2))
    stubs_after = set(children(server.pid))
    with (
        Reloads(server.control, server.repositories[0], every=0.5) as reloads,
        Traffic(*urls, requests=REQUESTS // 4, abandoned=0.1, seed=5) as traffic,
    ):
        reloaded = traffic.wait()
    return Run(alone, clean, mixed, reloaded, one_by_one(*urls, seed=4), memory, stubs, stubs_after, reloads)


def test_all_models_are_served(server: LocalServer) -> None:
    assert [model for model in server.models() if not model.ready] == []


@pytest.mark.parametrize("part", ["alone_before", "clean", "mixed", "reloaded", "alone_after"])
def test_every_good_request_gets_its_own_answer(run: Run, part: str) -> None:
    counts: Counts = getattr(run, part)
    assert (counts.wrong, counts.failed) == ({}, {}), counts.mistakes
    assert set(counts.right) == set(ASKED)


def test_all_requests_have_come_to_an_end(run: Run) -> None:
    assert run.mixed.sent == REQUESTS
    assert run.mixed.right.total() > 0.8 * REQUESTS
    assert run.mixed.abandoned.total() > 0.005 * REQUESTS


@pytest.mark.parametrize("kind", RequestMaker(0).kinds)
def test_every_bad_request_gets_its_own_error(run: Run, kind: str) -> None:
    other = [key for key in (*run.mixed.accepted, *run.mixed.misjudged) if key.endswith(f": {kind}")]
    assert other == [], run.mixed.mistakes
    assert run.mixed.refused[kind] > REQUESTS / 10 / len(RequestMaker(0).kinds) / 2


def test_models_are_reloaded_meanwhile(run: Run) -> None:
    assert run.reloads.refused == []
    assert run.reloads.done >= len(ASKED)
    assert run.reloaded.spotless, run.reloaded.mistakes
    assert run.reloaded.abandoned.total() > 0.01 * REQUESTS / 4


def test_no_process_has_died(run: Run) -> None:
    assert run.stubs_before <= run.stubs_after


def test_memory_stays_flat(run: Run) -> None:
    early, late = run.memory.around(0.25), run.memory.around(1)
    assert late < 1.1 * early + 20, f"{early:.0f} MiB after a fourth of the requests, {late:.0f} MiB in the end"
