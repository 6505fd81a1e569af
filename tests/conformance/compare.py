"""Runs the tests of this folder in an environment with DALI, and counts equal and different cases by area.

``make conformance`` makes that environment. Arguments are passed to pytest, e.g. ``-k resizing`` to select cases. Exits with 1 if a
case differs that ``known_differences.py`` does not list, or if a listed case is equal.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

_console = Console(highlight=False)


class Tally:
    """Counts the outcomes of the cases that pytest reports, by area."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] = defaultdict(lambda: {"equal": 0, "listed": 0, "different": 0})
        self.listed: dict[str, int] = defaultdict(int)
        self.different: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count the outcome of a case; pytest calls this for each phase of each case."""
        if report.when == "call" and report.passed:
            self._count(report, "equal")
        elif hasattr(report, "wasxfail"):
            self._count(report, "listed")
            self.listed[report.wasxfail] += 1
        elif report.failed:
            self._count(report, "different")
            self.different.append((report.nodeid.rpartition("tests/")[2], _last_line(report)))

    def _count(self, report: Any, outcome: str) -> None:
        self.counts[area(report.nodeid)][outcome] += 1


def area(nodeid: str) -> str:
    """Return the area of a test case: for a golden case, the operator family; otherwise, the subject of the test file."""
    family = re.search(r"test_families\.py::\w+\[(\w+): ", nodeid)
    if family:
        return family[1]
    return Path(nodeid.partition("::")[0]).stem.removeprefix("test_").replace("_", " ")


def _last_line(report: Any) -> str:
    message = getattr(getattr(report.longrepr, "reprcrash", None), "message", str(report.longrepr))
    return " ".join(message.split())[:200]


def show(tally: Tally) -> None:
    """Print the table, then the unknown differences, then the reasons for the listed differences."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("area")
    for column in ("cases", "equal", "different", "of these listed"):
        table.add_column(column, justify="right")
    total = dict.fromkeys(("equal", "listed", "different"), 0)
    for name, counts in [*sorted(tally.counts.items()), ("all", total)]:
        for outcome in total if counts is not total else ():
            total[outcome] += counts[outcome]
        differing = counts["different"] + counts["listed"]
        style = "red" if counts["different"] else None
        row = (name, counts["equal"] + differing, counts["equal"], differing, counts["listed"])
        table.add_row(*map(str, row), style=style)
    _console.print(table)
    for name, message in tally.different:
        _console.print(f"\n{name}", style="red", markup=False, soft_wrap=True)
        _console.print(f"  {message}", markup=False, soft_wrap=True)
    if tally.listed:
        _console.print("\nlisted differences:")
        for reason, count in sorted(tally.listed.items()):
            _console.print(f"  {count} x {reason}", markup=False, soft_wrap=True)


def main(arguments: list[str]) -> int:
    """Run the cases; return the exit code."""
    tally = Tally()
    options = ["-o", "addopts=--import-mode=importlib", "-p", "no:terminal", "-p", "no:cacheprovider", "-W", "ignore"]
    code = pytest.main([str(Path(__file__).parent), *options, *arguments], plugins=[tally])
    show(tally)
    if not tally.counts:
        _console.print(f"nothing was compared (pytest ended with {code!r})")
        return 1
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
