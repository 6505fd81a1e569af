"""Which samples a request has, if inputs are controls or are taken from earlier requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from penstock.serving.intake import Intake
from penstock.serving.requests import InputSpec, RequestError

NUMBERS = InputSpec("x", is_bytes=False, ndim=1)
START = InputSpec("START", is_bytes=False, ndim=1, optional=True, is_control=True)


@dataclass
class Asked:
    """A request made of plain data."""

    inputs: Mapping[str, np.ndarray]
    parameters: Mapping[str, object] = field(default_factory=dict)

    def tensor(self, name: str) -> Any:
        return self.inputs.get(name)


def rows(*values: int) -> np.ndarray:
    return np.array(values, np.int32)[:, None]


@pytest.mark.parametrize("sent", [rows(1), rows(1, 0), rows(1, 0, 0)])
def test_a_control_has_one_value_for_all_samples(sent: np.ndarray) -> None:
    values, starts = Intake([NUMBERS, START], 4).samples_of(Asked({"x": rows(7, 8, 9), "START": sent}))  # type: ignore[arg-type]
    assert [int(value[0]) for value in values] == [7, 8, 9]  # type: ignore[index]
    assert [int(start[0]) for start in starts] == [1, 1, 1]  # type: ignore[index]


def test_values_are_repeated_from_the_last_request_that_had_them() -> None:
    intake = Intake([NUMBERS, InputSpec("y", is_bytes=False, ndim=1, optional=True, repeats=True)], 4)
    sent = rows(5, 6)
    with pytest.raises(RequestError, match="neither a default nor an earlier value"):
        intake.samples_of(Asked({"x": rows(1, 2)}))  # type: ignore[arg-type]
    intake.samples_of(Asked({"x": rows(1, 2), "y": sent}))  # type: ignore[arg-type]
    # After a request, its sender may overwrite its memory.
    sent[:] = 0
    _, again = intake.samples_of(Asked({"x": rows(3, 4)}))  # type: ignore[arg-type]
    assert [int(value[0]) for value in again] == [5, 6]  # type: ignore[index]
    with pytest.raises(RequestError, match="it had 2 samples, this request has 3"):
        intake.samples_of(Asked({"x": rows(1, 2, 3)}))  # type: ignore[arg-type]
