"""Error messages for clients."""

from __future__ import annotations

from penstock.errors import OperatorError
from penstock.serving.refusals import refusal_of


def test_a_sample_is_named_as_its_request_counts() -> None:
    error = OperatorError("Failed to decode sample #4. It has #40 and #1", "penstock.fn.decoders.image", sample=4)
    told = refusal_of(error, start=3)
    assert told.message == (
        "penstock.fn.decoders.image: Failed to decode sample #1. It has #40 and #1 (sample 1 of this request)"
    )
    assert told.sample == 1
