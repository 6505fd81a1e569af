"""The package claims equality only where it was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.parity import measured, table

PAGE = Path(__file__).parents[2] / "docs" / "same-pixels.md"
LIBRARIES = ("pil", "torchvision", "opencv", "pillow_function", "opencv_function", "transforms", "transformers")


def test_ten_thousand_cases_of_resizing_and_none_different() -> None:
    rows = measured()
    assert {row.library for row in rows} == set(LIBRARIES)
    assert sum(row.cases for row in rows if row.library in LIBRARIES[:3]) >= 10_000
    assert sum(row.cases for row in rows if row.library == "opencv_function") >= 10_000
    assert not any(row.different for row in rows)


@pytest.mark.every_case
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_page_tells_what_was_found(library: str) -> None:
    assert table(library) in PAGE.read_text()
