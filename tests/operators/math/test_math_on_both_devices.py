"""Statistics give the same results on CPU and GPU."""

from __future__ import annotations

import pytest
from devices import Define, check_close, images

from penstock import fn

# Only with --exhaustive: in the default run, `tests/sweeps` compares CPU and GPU.
pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("with_gpu")]


CLOSE: dict[str, Define] = {
    "normalized": lambda device: fn.normalize(images(device)),
    "normalized together": lambda device: fn.normalize(images(device), axes=[0, 1], batch=True, ddof=1),
}
"""Cases whose results may differ between devices: integers by at most 1, real numbers by at most 1e-5."""


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    check_close(CLOSE[name])
