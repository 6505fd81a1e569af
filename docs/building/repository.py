"""Turn files outside `docs/` into pages of the site, and resolve links to them."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# From paths in the repository to pages of the site.
REPOSITORY_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "backend/DESIGN.md": "design/index.md",
    "docker/README.md": "guides/containers.md",
    "docs/decisions/README.md": "decisions/index.md",
    "model_repository/README.md": "guides/models-that-ship.md",
    "tests/benchmarks/results/tables.md": "benchmarks.md",
}
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


class LinkError(LookupError):
    """A link leads to a file that the repository does not have."""


def page_markdown(source: str | Path, markdown: str | None = None) -> str:
    """Return the text of a file of the repository, with links to other files as links to their pages.

    A link to a file without a page becomes its path as text: the site stands alone.
    """
    source = Path(source)
    text = (ROOT / source).read_text(encoding="utf-8") if markdown is None else markdown
    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(lambda match: _link(source, match), part) for part in parts[::2]]
    return "".join(parts)


def _link(source: Path, match: re.Match[str]) -> str:
    text, target, anchor = match[1], match[2], match[3] or ""
    if "://" in target or target.startswith("mailto:"):
        return match[0]
    path = os.path.normpath(source.parent / target)
    page = _page_of(path)
    if page is None:
        # In `docs/`, MkDocs reports missing pages itself: generated pages have no file.
        if not (ROOT / path).exists():
            return match[0] if path.startswith("docs/") else _missing(source, target)
        return text if text.startswith("`") else f"{text} (`{path}`)"
    here = Path(_page_of(str(source)) or source)
    return f"[{text}]({os.path.relpath(page, here.parent)}{anchor})"


def _page_of(path: str) -> str | None:
    """Return the page of a file of the repository, as a path below the site's root."""
    if path in REPOSITORY_PAGES:
        return REPOSITORY_PAGES[path]
    if (ROOT / path).is_dir():
        return REPOSITORY_PAGES.get(f"{path}/README.md")
    inside = path.startswith("docs/") and not path.startswith("docs/building") and (ROOT / path).is_file()
    return path.removeprefix("docs/") if inside else None


def _missing(source: Path, target: str) -> str:
    raise LinkError(f"{source} links to {target}, which the repository does not have")
