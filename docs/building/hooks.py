"""MkDocs hooks: add generated pages to the site, and check links.

Files of the repository outside of `docs/` become pages; links between them and to them follow. External links are listed in
`external-links.txt`, and not fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from commands import commands_page
from operator_pages import navigation, operator_pages
from repository import REPOSITORY_PAGES, ROOT, page_markdown

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_EXTERNAL = re.compile(r'href="(https?://[^"#]+)')
_external_links: dict[str, set[str]] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add generated entries to the navigation: operators by family, decisions as their index lists them."""
    found = {"operators/": navigation(), "decisions/": ["decisions/index.md", *_decisions()]}
    config.nav = [_filled(entry, found) for entry in config.nav or []]
    return config


def _filled(entry: object, found: dict[str, list[object]]) -> object:
    if isinstance(entry, dict):
        return {
            title: found.get(below, below) if isinstance(below, str) else [_filled(e, found) for e in below]
            for title, below in entry.items()
        }
    return entry


def _decisions() -> Iterator[str]:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    return (f"decisions/{name}" for name in re.findall(r"^- \[.*\]\((.+\.md)\)$", index, re.MULTILINE))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages and pictures that are made now."""
    from mkdocs.structure.files import File

    made = {"api/commands.md": commands_page()}
    made |= {page: page_markdown(source) for source, page in REPOSITORY_PAGES.items()}
    for uri, content in (*made.items(), *operator_pages()):
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links from the pages of `docs/` to the rest of the repository to where those files are in the site."""
    generated = page.file.generated_by is not None
    return markdown if generated else page_markdown(Path("docs", page.file.src_uri), markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Notes the external links of a page."""
    for url in _EXTERNAL.findall(output):
        _external_links.setdefault(url, set()).add(page.file.src_uri)
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Lists the external links with the pages that have them."""
    lines = [f"{url}  {' '.join(sorted(pages))}\n" for url, pages in sorted(_external_links.items())]
    Path(config.site_dir, "external-links.txt").write_text("".join(lines), encoding="utf-8")
