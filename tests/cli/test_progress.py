"""``penstock serve`` shows progress while a server starts."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from penstock.cli import serve


def shown(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> str:
    file = io.StringIO()
    monkeypatch.setattr(serve, "_console", Console(file=file, force_terminal=is_terminal, width=80))
    progress = serve._Progress()
    with progress:
        progress.show("loading a[0]")
    progress.show("afterwards")
    return file.getvalue()


def test_a_terminal_shows_one_changing_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(monkeypatch, is_terminal=True)
    assert "loading a[0] ..." in written
    assert "afterwards" not in written, "the line is gone once the server has started"


def test_a_file_gets_a_line_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, is_terminal=False).splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["loading a[0]", "afterwards"]
