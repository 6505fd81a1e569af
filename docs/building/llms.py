"""`llms.txt`: a list of the site's pages, with a sentence about each, for language models (https://llmstxt.org)."""

from __future__ import annotations

import html as entities
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_SENTENCE = re.compile(r"(.+?[.:])(?: |$)")
# The pages that a reader with a small context may skip.
_OPTIONAL = "Design"


class LlmsIndex:
    """The pages of a build, by the tabs of the navigation."""

    def __init__(self) -> None:
        self._sections: dict[str, list[str]] = {}

    def add(self, page: Page, html: str) -> None:
        """Add a page; its first sentence describes it."""
        tab = page.ancestors[-1].title if page.ancestors else str(page.title)
        paragraph = _PARAGRAPH.search(html)
        text = " ".join(entities.unescape(_TAG.sub("", paragraph[1])).split()) if paragraph else ""
        sentence = _SENTENCE.match(text)
        description = f": {sentence[1].rstrip(':')}" if sentence else ""
        self._sections.setdefault(tab, []).append(f"- [{page.title}]({page.url}){description}")

    def text(self, config: MkDocsConfig) -> str:
        """Return the file's text, with optional pages last."""
        titles = sorted(self._sections, key=lambda title: title == _OPTIONAL)
        parts = [f"# {config.site_name}", "", f"> {config.site_description}.", ""]
        for title in titles:
            parts += [f"## {'Optional' if title == _OPTIONAL else title}", "", *self._sections[title], ""]
        return "\n".join(parts)
