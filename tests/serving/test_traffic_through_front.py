"""With the front, traffic with deadlines and cancellations, which may kill Triton, causes neither deaths nor wrong answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.serving.front.options import FrontOptions
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import stopped_later
from traffic import Deaths, Reloads, Traffic, one_by_one
from traffic_models import write_repository

REQUESTS = 5000

pytestmark = pytest.mark.exhaustive

deaths = Deaths()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = write_repository(tmp_path_factory.mktemp("repository"))
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    front = FrontOptions("127.0.0.1", anonymous=True)
    with stopped_later(
        LocalServer(repository, flags=flags, allow_failures=True, front=front, report=deaths)
    ) as running:
        yield running


def test_deadlines_and_cancels_end_nobody(server: LocalServer) -> None:
    assert server.front is not None
    urls = server.front.address("HTTP"), server.front.address("gRPC")
    with (
        Reloads(server.control, server.repositories[0], every=0.5) as reloads,
        Traffic(*urls, clients=16, requests=REQUESTS, deadlines=0.1, cancelled=0.1, abandoned=0.1, seed=11) as traffic,
    ):
        counts = traffic.wait()
    assert deaths.count == 0, deaths.lines
    assert counts.spotless, counts.mistakes
    assert counts.abandoned.total() > 0.02 * REQUESTS
    assert reloads.done
    assert reloads.refused == []
    alone = one_by_one(*urls, seed=12)
    assert alone.spotless, alone.mistakes
