"""Settings of served models that can be tuned: they are read from configurations, applied to them, and written into their text."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.serving.load_generator import InferRequest
from penstock.serving.tuning import ServingSettings

TEXT = """\
# Photographs.
backend: "penstock"
max_batch_size: 64
instance_group [ { count: 3 kind: KIND_CPU } ]
dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 7 }
parameters [ { key: "num_threads" value: { string_value: "5" } }, { key: "max_pixels" value: { string_value: "9" } } ]
"""
CONFIGURATION = {
    "instance_group": [{"name": "m", "kind": "KIND_GPU", "count": 3, "gpus": [0, 1]}],
    "parameters": {"num_threads": {"string_value": "5"}},
    "dynamic_batching": {"preferred_batch_size": [8], "max_queue_delay_microseconds": 7},
}


def test_settings_are_read_and_applied() -> None:
    assert ServingSettings.of(CONFIGURATION) == ServingSettings(3, 5, 7)
    changed = ServingSettings(1, None, 0).applied_to(CONFIGURATION)
    assert ServingSettings.of(changed) == ServingSettings(1, None, 0)
    assert changed["dynamic_batching"]["preferred_batch_size"] == [8]
    assert ServingSettings.of(CONFIGURATION) == ServingSettings(3, 5, 7), "the original has changed"


def test_models_that_do_not_batch_have_no_delay() -> None:
    configuration = {"instance_group": [{"count": 1}]}
    assert ServingSettings.of(configuration).queue_delay_us is None
    assert "dynamic_batching" not in ServingSettings(2, 4, None).applied_to(configuration)


def test_written_settings_leave_the_rest_as_it_is() -> None:
    assert ServingSettings(2, 4, 500).written_into(TEXT, "KIND_CPU", []) == (
        '# Photographs.\nbackend: "penstock"\nmax_batch_size: 64\n'
        "dynamic_batching { preferred_batch_size: [ 8 ] }\n"
        'parameters [ { key: "max_pixels" value: { string_value: "9" } } ]\n'
        "instance_group [ { count: 2 kind: KIND_CPU } ]\n"
        'parameters { key: "num_threads" value: { string_value: "4" } }\n'
        "dynamic_batching { max_queue_delay_microseconds: 500 }\n"
    )


def test_written_settings_that_are_defaults_are_left_out() -> None:
    text = ServingSettings(1, None, 0).written_into(TEXT, "KIND_GPU", [0, 1])
    assert "instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0, 1 ] } ]\n" in text
    assert "num_threads" not in text
    assert "max_queue_delay" not in text


@pytest.mark.parametrize("batched", [True, False])
def test_requests_have_a_header_and_the_bytes(batched: bool) -> None:
    sample = {"encoded": np.frombuffer(b"abc", np.uint8), "crop": np.arange(2, dtype=np.float32)}
    request = InferRequest.of(sample, {"encoded": "BYTES", "crop": "FP32"}, batched)
    header, tensors = request.body[: request.header_bytes], request.body[request.header_bytes :]
    assert tensors == b"\x03\0\0\0abc" + sample["crop"].tobytes()
    shapes = ("[1, 1]", "[1, 2]") if batched else ("[1]", "[2]")
    assert all(f'"shape": {shape}'.encode() in header for shape in shapes)
