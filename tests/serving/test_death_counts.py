"""The supervisor's pauses before it restarts processes that keep dying."""

from __future__ import annotations

from penstock.serving import supervisor


def test_pauses_double_up_to_a_limit() -> None:
    deaths = supervisor._Deaths()
    pauses = []
    for _ in range(12):
        deaths.add()
        pauses.append(deaths.pause(free=1))
        deaths.recovered()
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]


def test_a_server_that_dies_for_days_is_still_started_again() -> None:
    # Computing the pause once raised OverflowError after 1,026 deaths (17 hours, at 60 s each), which ended the
    # supervisor.
    deaths = supervisor._Deaths()
    deaths.count = 100_000
    assert deaths.pause(free=1) == supervisor._MAX_PAUSE_SECONDS


def test_a_death_after_a_time_of_service_counts_as_the_first() -> None:
    deaths = supervisor._Deaths()
    for _ in range(5):
        deaths.add()
        deaths.recovered()
    assert deaths.count == 5
    deaths._recovered -= 2 * supervisor._STABLE_SECONDS
    deaths.add()
    assert (deaths.count, deaths.pause(free=1)) == (1, 0.0)
