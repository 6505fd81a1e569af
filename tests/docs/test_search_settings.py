"""The settings of the search name existing pages; `llms.txt` and folded tables are as described."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import hooks
import pytest
from llms import LlmsIndex
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


def test_llms_txt_lists_pages_by_tab_with_their_first_sentence() -> None:
    index = LlmsIndex()
    design = SimpleNamespace(title="Design", ancestors=[])
    guides = SimpleNamespace(title="Guides", ancestors=[])
    index.add(SimpleNamespace(title="Tour", url="design.html", ancestors=[design]), "<p>No end</p>")
    index.add(
        SimpleNamespace(title="A", url="a.html", ancestors=[guides]), "<h1>A</h1><p>One &amp; <b>two</b>. Three.</p>"
    )
    text = index.text(SimpleNamespace(site_name="Site", site_description="What it is"))
    assert text == (
        "# Site\n\n> What it is.\n\n## Guides\n\n- [A](a.html): One & two.\n\n## Optional\n\n- [Tour](design.html)\n"
    )


@pytest.mark.parametrize(("rows", "is_folded"), [(15, False), (16, True)])
def test_long_tables_are_folded(rows: int, is_folded: bool) -> None:
    table = "<table>" + "<tr><td>1</td></tr>\n" * (rows + 1) + "</table>"
    page = SimpleNamespace(title="A", url="a.html", ancestors=[], file=SimpleNamespace(src_uri="a.md"))
    html = hooks.on_page_content(table, page, None, None)
    assert html.startswith("<details" if is_folded else "<table>")
    assert table in html
