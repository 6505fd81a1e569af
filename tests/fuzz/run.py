"""Fuzz the decoders: run mutated files through pipelines as they are served, in supervised processes.

    PYTHONPATH=backend python tests/fuzz/run.py --cases 1000000 --processes 16 --seconds 600 --json fuzz.json

A case is identified by its number and the campaign's seed: ``--only 4711`` writes that case's files and runs it alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Libraries get one thread per process, because there are as many processes as cores.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("SVT_LOG", "0")
os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
sys.path.insert(0, str(Path(__file__).parent))

from fuzzing.campaign import Bounds, Campaign, Summary  # noqa: E402
from fuzzing.outcomes import BAD, GOOD  # noqa: E402
from fuzzing.settings import Settings  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402

_MOST_TOLD = 30


def main() -> int:
    """Run a campaign from the command line; return 1 if a case had a bad outcome."""
    args = _arguments()
    settings = Settings(
        isolate_decoders=args.isolate,
        max_pixels=args.max_pixels or None,
        max_bytes=args.max_bytes or None,
    )
    campaign = Campaign(
        args.seed, tuple(args.formats), settings, Bounds(args.file_seconds, args.file_mebibytes << 20), args.fences
    )
    if args.only is not None:
        return _write_case(campaign, args.only)
    console = Console(stderr=True)
    columns = (
        TextColumn("fuzzing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    # The progress bar must not start a thread, because this process forks others.
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        task = progress.add_task("preparing", total=args.cases)

        def tell(summary: Summary) -> None:
            progress.update(task, completed=summary.done, description=f"{summary.bad} bad", refresh=console.is_terminal)

        summary = campaign.run(args.cases, args.processes, args.seconds, tell)
    console.print(_table(summary))
    for failure, kept in list(summary.failures.items())[:_MOST_TOLD]:
        numbers = ", ".join(str(case["case"]) for case in kept)
        console.print(
            f"{failure}\n    {kept[0]['message']}\n    cases {numbers} of '{kept[0]['target']}'", markup=False
        )
    if args.json:
        args.json.write_text(summary.as_json())
    return 1 if summary.bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000, help="how many files (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="that run at a time")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no more after so long; 0: run all")
    parser.add_argument("--formats", nargs="*", default=[], help="formats to fuzz (default: all)")
    parser.add_argument("--isolate", default="auto", help="the pipelines' isolate_decoders: auto, all or none")
    parser.add_argument("--max-pixels", type=int, default=Settings.max_pixels, help="of the pipelines; 0: no limit")
    parser.add_argument("--max-bytes", type=int, default=Settings.max_bytes, help="of the pipelines; 0: no limit")
    parser.add_argument(
        "--file-seconds", type=float, default=Bounds.seconds, help="of processor time that one file may take"
    )
    parser.add_argument("--file-mebibytes", type=int, default=Bounds.memory >> 20, help="that one file may take")
    parser.add_argument("--fences", action="store_true", help="put memory between pages that nobody may touch")
    parser.add_argument("--json", type=Path, help="where to write the summary")
    parser.add_argument("--only", type=int, help="write the files of the case of that number")
    return parser.parse_args()


def _write_case(campaign: Campaign, number: int) -> int:
    case = campaign.cases.case(number)
    files = case.content if isinstance(case.content, dict) else {f"case.{case.format}": case.content}
    for name, data in files.items():
        path = Path(f"case{number}-{name}")
        path.write_bytes(data)
        print(path, len(data), "bytes, for", campaign.cases.target(number // 64))
    return 0


def _table(summary: Summary) -> Table:
    kinds = [kind for kind in (*GOOD, *BAD) if any(found == kind for _, found in summary.counts)]
    table = Table(
        "format", "cases", *kinds, title=f"{summary.done} cases in {summary.seconds:.0f} s, seed {summary.seed}"
    )
    for format in sorted({format for format, _ in summary.counts}):
        counts = [summary.counts[format, kind] for kind in kinds]
        table.add_row(format, str(sum(counts)), *(str(count or "") for count in counts))
    return table


if __name__ == "__main__":
    sys.exit(main())
