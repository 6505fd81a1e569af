"""Runs DALI's published notebooks on Penstock: ``make notebooks CHECKOUT=PATH/TO/DALI``.

CHECKOUT is a checkout of https://github.com/NVIDIA/DALI, or a part of one that contains ``docs``. The code cells of each notebook, without
IPython's magics, are joined into one program, which ``python -m penstock.compat --device cpu`` runs in a copy of
``docs``, as some notebooks read files there. The table that is printed lists why notebooks fail; ``--write`` also
writes it into ``docs/coming-from-dali.md``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "coming-from-dali.md"
MARK = re.compile(r"(<!-- notebooks -->\n).*?(<!-- /notebooks -->)", re.DOTALL)
PASSES = "passes"
# Patterns of the last lines of an error, and the reason that each pattern indicates; the first match applies.
REASONS = (
    (r"No module named '?([\w.]+)", "needs the package {}"),
    (r"torchvision::nms does not exist", "needs a torchvision that was built for the installed PyTorch"),
    (
        r"No such file|need at least one array to stack|does not exist|no files|not found|cannot open|Git LFS|is empty",
        "needs files of DALI_extra",
    ),
    # In DALI, `shape` of a tensor on a GPU is a method. In numpy arrays, which hold tensors on the CPU, it is not callable.
    (r"CUDA|[Cc]u[Pp]y|GPU|gpu|nvidia-smi|'tuple' object is not callable", "needs a GPU"),
)


def program(notebook: Path) -> str:
    """Return the code of a notebook, without IPython's magics, as one program."""
    cells = json.loads(notebook.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return "\n".join(_without_magics(source) for source in sources if not source.lstrip().startswith("%%"))


def _without_magics(source: str) -> str:
    lines = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in source.splitlines()]
    return "\n".join(lines) + "\n"


def outcome(docs: Path, notebook: Path, timeout: float) -> str:
    """Run a notebook that is in ``docs``; return ``PASSES``, or the reason why it fails."""
    code = program(notebook)
    try:
        ast.parse(code)
    except SyntaxError:
        return "has a cell in another language"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(docs, f"{folder}/docs", ignore=shutil.ignore_patterns("*.ipynb"))
        own = Path(folder) / "docs" / notebook.parent.relative_to(docs)
        (own / "_notebook.py").write_text(code)
        command = [sys.executable, "-m", "penstock.compat", "--device", "cpu", "_notebook.py"]
        environment = {
            "DALI_EXTRA_PATH": f"{folder}/DALI_extra",
            **os.environ,
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
        }
        try:
            done = subprocess.run(
                command, cwd=own, env=environment, capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return f"takes longer than {timeout:g} s"
    return PASSES if done.returncode == 0 else _reason(done.stderr)


def _reason(errors: str) -> str:
    last = " ".join(errors.strip().splitlines()[-6:])
    for pattern, reason in REASONS:
        found = re.search(pattern, last)
        if found:
            return reason.format(found.group(1) if found.groups() else "")
    return (errors.strip().splitlines() or ["ends without a message"])[-1][:160]


def table(outcomes: dict[str, str]) -> str:
    """Return the outcomes as text and a table in Markdown."""
    by_outcome = defaultdict(list)
    for name, found in outcomes.items():
        by_outcome[found].append(name.removesuffix(".ipynb"))
    passed = by_outcome.pop(PASSES, [])
    lines = [
        f"{len(passed)} of {len(outcomes)} pass unchanged: {', '.join(f'`{name}`' for name in sorted(passed))}.",
        "",
    ]
    lines += ["| of the others | | |", "| --- | --: | --- |"]
    for found, names in sorted(by_outcome.items(), key=lambda entry: -len(entry[1])):
        cells = found.replace("|", "\\|")
        lines.append(f"| {cells} | {len(names)} | {', '.join(sorted(names))} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table; return 1 if a notebook fails for a reason that is not in :data:`REASONS`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="notebooks whose path has this regular expression")
    parser.add_argument("--timeout", type=float, default=240, help="seconds for each")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    parser.add_argument("--write", action="store_true", help="the table into the documentation")
    options = parser.parse_args()
    folder = options.checkout.resolve() / "docs"
    notebooks = {
        str(path.relative_to(folder)).removeprefix("examples/"): path for path in sorted(folder.rglob("*.ipynb"))
    }
    chosen = {name: path for name, path in notebooks.items() if re.search(options.only, name)}
    outcomes = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        running = pool.map(lambda path: outcome(folder, path, options.timeout), chosen.values())
        for name, found in zip(chosen, running):
            outcomes[name] = found
            print(f"{name}: {found}", flush=True)
    written = table(outcomes)
    print(written)
    if options.write:
        PAGE.write_text(MARK.sub(lambda found: found[1] + "\n" + written + "\n" + found[2], PAGE.read_text()))
    known = (PASSES, "needs", "takes longer", "has a cell")
    return int(not all(found.startswith(known) for found in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
