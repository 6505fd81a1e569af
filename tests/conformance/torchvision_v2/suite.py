"""Runs torchvision's tests of `transforms.v2` on Penstock's transforms, and counts outcomes: the table in docs/torchvision.md.

    PYTHONPATH=backend python tests/conformance/torchvision_v2/suite.py PATH/TO/vision/test [--sample 9] [--write]

The folder is `test` of a checkout of torchvision's repository, with `test_transforms_v2.py`, `common_utils.py`, `conftest.py` and
`assets`; none of these files is in this repository. If the checkout is newer than the installed torchvision, tests that torchvision
itself fails do not count.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "torchvision.md"
MARK = re.compile(r"(<!-- suite -->\n).*?(<!-- /suite -->)", re.DOTALL)
OUTCOMES = ("passed", "other words", "failed")


def outcomes(folder: Path, *, original: bool, sample: int) -> dict[str, tuple[str, str]]:
    """Return each test's outcome (`passed`, `other words`, `private`, `skipped` or `failed`) and message."""
    with tempfile.TemporaryDirectory() as written:
        report = Path(written) / "report.xml"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2] / "backend")])}
        environment |= {"SUITE_SAMPLE": str(sample), "OMP_NUM_THREADS": "1", "SUITE_ORIGINAL": "1" if original else ""}
        # Without a configuration file: in a checkout below this repository's folder, pytest would find this repository's.
        command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"]
        command += ["-p", "substituted", "-q", "--tb=line", f"--junitxml={report}", "test_transforms_v2.py"]
        run = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
        if run.returncode not in (0, 1):
            raise SystemExit(f"pytest did not run the tests of {folder}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        root = ElementTree.parse(report).getroot()
    return {f"{case.get('classname')}::{case.get('name')}": _outcome(case) for case in root.iter("testcase")}


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    for part in case:
        said = part.get("message") or ""
        if part.tag in ("failure", "error"):
            return "failed", said
        if part.tag == "skipped" and part.get("type") != "pytest.xfail":
            kind = {"private": "private", "words": "other words"}.get(said.partition(":")[0], "skipped")
            return kind, said
    return "passed", ""


def table(found: dict[str, tuple[str, str]]) -> str:
    """Return a summary and a table in Markdown: a row for each class of tests, those with most failures first, and the totals."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for name, (outcome, _) in found.items():
        rows[name.split("::")[0].rpartition(".")[2]][outcome] += 1
    rows = {name: row for name, row in rows.items() if any(row[kind] for kind in OUTCOMES)}
    total = sum(rows.values(), Counter())
    lines = ["| tests | passed | other words | failed | private names |", "| --- | --: | --: | --: | --: |"]
    ordered = sorted(rows.items(), key=lambda named: (-named[1]["failed"], -named[1]["other words"], named[0]))
    for name, row in [("**all**", total), *ordered]:
        lines.append(f"| {name} | {' | '.join(str(row[kind]) for kind in (*OUTCOMES, 'private'))} |")
    counted = sum(total[kind] for kind in OUTCOMES)
    right = total["passed"] + total["other words"]
    summary = (
        f"{total['passed'] / counted:.1%} pass as they are, {right / counted:.1%} if an error may have other words."
    )
    return "\n".join([summary, "", *lines])


def main() -> None:
    """Print the table and the tests that fail or have other messages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=1, help="only about every N-th test")
    parser.add_argument("--write", action="store_true", help="put the table into docs/torchvision.md")
    asked = parser.parse_args()
    theirs, ours = (outcomes(asked.folder, original=which, sample=asked.sample) for which in (True, False))
    counted = {name: found for name, found in ours.items() if theirs.get(name, ("passed",))[0] != "failed"}
    versions = ", ".join(f"{name} {version(name)}" for name in ("torchvision", "torch", "pillow"))
    share = "" if asked.sample == 1 else f" About one of {asked.sample} tests ran."
    text = f"{versions}; {len(ours) - len(counted)} tests that torchvision itself fails are left out.{share}\n{table(counted)}\n"
    print(text)
    for name, (outcome, said) in counted.items():
        if outcome in ("failed", "other words"):
            print(f"{outcome}: {name}: {said[:200]}")
    if asked.write:
        page = PAGE.read_text()
        PAGE.write_text(MARK.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page))


if __name__ == "__main__":
    main()
