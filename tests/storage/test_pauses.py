"""Pauses between attempts grow, stay within bounds, and can be computed for any settings."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.storage import Retries

seconds = st.floats(1e-3, 1e5)


@settings(derandomize=True, deadline=None)
@given(seconds, seconds, st.integers(1, 10**6))
def test_a_pause_is_within_its_bounds(first: float, most: float, failures: int) -> None:
    # From 1,025 failures on, 2 ** failures exceeds a float.
    longest = min(first * 2.0 ** min(failures - 1, 900), most)
    assert 0.75 * longest <= Retries(first_pause=first, max_pause=most).pause(failures) <= longest


@settings(derandomize=True, deadline=None)
@given(seconds, seconds, st.integers(1, 2000))
def test_pauses_do_not_shrink_by_more_than_they_are_shortened_at_random(
    first: float, most: float, failures: int
) -> None:
    retries = Retries(first_pause=first, max_pause=most)
    assert retries.pause(failures + 1) >= 0.75 * retries.pause(failures)
