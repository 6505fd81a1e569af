"""Inputs with a layout or number of dimensions that an operator does not declare are rejected before anything else is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.errors import OperatorError

Define = Callable[[Any], Any]

OPERATORS: dict[str, Define] = {
    # The engine checks the layouts for these operators.
    "content_window": lambda data: fn.content_window(data)[0],
    "fitted_size": lambda data: fn.fitted_size(data, rule="qwen2-vl", factor=28, least=3136, most=12544)[0],
    # These operators check the layout themselves, too.
    "brightness": fn.brightness,
    "rotate": lambda data: fn.rotate(data, angle=1.0),
    "sphere": fn.sphere,
}


def run(define: Define, shape: tuple[int, ...], layout: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        return define(fn.external_source(lambda: [np.zeros(shape, np.uint8)], layout=layout))

    pipeline().run()


@pytest.mark.every_case
@pytest.mark.parametrize("name", OPERATORS)
def test_other_layouts_are_refused(name: str) -> None:
    with pytest.raises(OperatorError, match='The layout "XYZ" does not match any of the allowed layouts for input 0'):
        run(OPERATORS[name], (4, 4, 3), "XYZ")


@pytest.mark.every_case
@pytest.mark.parametrize("name", OPERATORS)
def test_other_numbers_of_dimensions_are_refused(name: str) -> None:
    with pytest.raises(OperatorError, match="The number of dimensions 7 does not match any of the allowed layouts"):
        run(OPERATORS[name], (1,) * 7, "")


@pytest.mark.parametrize("layout", ["", "HWC"])
def test_declared_layouts_are_taken(layout: str) -> None:
    run(fn.sphere, (4, 4, 3), layout)
