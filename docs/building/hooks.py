"""MkDocs hooks: add generated pages to the site, weight its search, and check links.

Files of the repository outside of `docs/` become pages; links between them and to them follow. External links are listed in
`external-links.txt`, and not fetched. `llms.txt` lists all pages for language models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from commands import commands_page
from home import home_pictures
from llms import LlmsIndex
from operator_pages import navigation, operator_pages
from repository import REPOSITORY_PAGES, ROOT, page_markdown

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_EXTERNAL = re.compile(r'href="(https?://[^"#]+)')
_external_links: dict[str, set[str]] = {}
_llms = LlmsIndex()
# By the beginning of a page's path, how much its hits in the search count; 0 leaves the page out.
SEARCH_BOOSTS = {
    "decisions/": 0.0,
    "changelog.md": 0.0,
    "design/": 0.5,
    "contributing.md": 0.5,
    "benchmarks.md": 0.5,
    "operators/": 4.0,
    "install.md": 8.0,
    "api/": 1.0,
    "": 2.0,
}
# Words that readers search for, which the page's title lacks. Tags count more than titles, and are not shown.
SEARCH_TAGS = {
    "api/pipeline.md": ["prefetch", "num_threads"],
    "glossary.md": ["batch size"],
    "facing-a-network.md": ["api key", "tls", "authentication"],
    "guides/containers.md": ["docker"],
    "install.md": ["pip"],
    "tutorials/conditionals.md": ["conditional"],
    "tutorials/deploy.md": ["kubernetes", "systemd", "production"],
    "tutorials/errors-and-isolation.md": ["corrupt", "damaged", "exception"],
    "tutorials/your-own-network.md": ["onnx", "model"],
    "versions.md": ["cuda version", "triton version"],
}
# Readers would scroll past longer tables in a guide; references, in which they look things up, show tables in full.
MAX_UNFOLDED_ROWS = 15
_UNFOLDED = ("operators/", "api/")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
# The plugin `offline` adds this script from another host; ours takes its place.
_FOREIGN_SCRIPT = re.compile(r"https://unpkg\.com/iframe-worker/shim")


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
    """Add the generated pages and pictures."""
    from mkdocs.structure.files import File

    made = {"api/commands.md": commands_page()}
    made |= {page: page_markdown(source) for source, page in REPOSITORY_PAGES.items()}
    for uri, content in (*made.items(), *operator_pages(), *home_pictures()):
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Set how the search weights a page, and rewrite its links to files of the repository as links to their pages."""
    boost = next(boost for beginning, boost in SEARCH_BOOSTS.items() if page.file.src_uri.startswith(beginning))
    page.meta["search"] = {"boost": boost} if boost else {"exclude": True}
    operator = Path(page.file.src_uri).stem if page.file.src_uri.startswith("operators/") else ""
    # Of flip, coord_flip and random.coin_flip, "flip" means the first.
    page.meta["tags"] = SEARCH_TAGS.get(page.file.src_uri, [operator] if operator.isalpha() else [])
    generated = page.file.generated_by is not None
    return markdown if generated else page_markdown(Path("docs", page.file.src_uri), markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fold long tables, and note the page for `llms.txt`."""
    _llms.add(page, html)
    return html if page.file.src_uri.startswith(_UNFOLDED) else _TABLE.sub(_folded, html)


def _folded(table: re.Match[str]) -> str:
    rows = table[0].count("<tr>") - 1
    if rows <= MAX_UNFOLDED_ROWS:
        return table[0]
    return f'<details class="abstract"><summary>A table of {rows} rows</summary>\n{table[0]}\n</details>'


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Replace the script that another host would serve, and note the external links of a page."""
    from mkdocs.utils import get_relative_url

    output = _FOREIGN_SCRIPT.sub(get_relative_url("assets/worker.js", page.url), output)
    for url in _EXTERNAL.findall(output):
        _external_links.setdefault(url, set()).add(page.file.src_uri)
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write the list of external links with their pages, and `llms.txt`."""
    lines = [f"{url}  {' '.join(sorted(pages))}\n" for url, pages in sorted(_external_links.items())]
    Path(config.site_dir, "external-links.txt").write_text("".join(lines), encoding="utf-8")
    Path(config.site_dir, "llms.txt").write_text(_llms.text(config), encoding="utf-8")
