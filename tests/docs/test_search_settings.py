"""What weights the search names pages that exist."""

from __future__ import annotations

from pathlib import Path

import hooks
import pytest
from repository import REPOSITORY_PAGES

DOCS = Path(__file__).resolve().parents[2] / "docs"
GENERATED = ("operators/", "api/commands.md", *REPOSITORY_PAGES.values())


@pytest.mark.parametrize(
    "page", [beginning for beginning in hooks.SEARCH_BOOSTS if beginning] + list(hooks.SEARCH_TAGS)
)
def test_pages_exist(page: str) -> None:
    assert (DOCS / page).exists() or page.startswith(GENERATED) or any(made.startswith(page) for made in GENERATED)


def test_every_page_has_a_weight() -> None:
    assert hooks.SEARCH_BOOSTS[""] > 0
    assert list(hooks.SEARCH_BOOSTS)[-1] == "", "later beginnings are never looked at"
