"""Decisions are named after their titles, each is listed once, and every reference to a decision resolves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
SOURCES = ("backend", "client_examples", "docker", "docs", "examples", "pipelines", "tests", "training")
SUFFIXES = {".cc", ".cu", ".cuh", ".h", ".md", ".py", ".toml", ".yml"}
_REFERENCE = re.compile(r"decisions/([\w-]+\.md)")
_LINK = re.compile(r"\]\(([\w-]+\.md)\)")
_NUMBERED = re.compile(r"\bdecision[ \n]\s*\d+(?!\.)", re.IGNORECASE)


def slug_of(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-")


def texts() -> list[Path]:
    found = [path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [path for path in (*ROOT.glob("*.md"), *found) if path != Path(__file__)]


def title_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_are_named_after_their_titles_and_have_the_usual_sections(page: Path) -> None:
    assert page.stem == slug_of(title_of(page))
    sections = re.findall(r"^## (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[:2] == ["Context", "Decision"]
    assert set(sections) <= {"Context", "Decision", "Consequences", "Alternatives", "Measurement"}


def test_the_index_lists_each_page_once_by_its_title() -> None:
    listed = re.findall(r"^- \[(.*)\]\((.*)\)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted((title_of(page), page.name) for page in PAGES)


def test_references_resolve() -> None:
    names = {page.name for page in (*PAGES, FOLDER / "README.md")} | {"index.md"}
    broken = []
    for path in texts():
        text = path.read_text(encoding="utf-8")
        referred = _REFERENCE.findall(text) + (_LINK.findall(text) if path.parent == FOLDER else [])
        broken += [f"{path.relative_to(ROOT)}: {name}" for name in referred if name not in names]
        broken += [f"{path.relative_to(ROOT)}: {match}" for match in _NUMBERED.findall(text)]
    assert broken == []
