"""Write `results/tables.md` from the other files in `results`.

python tests/benchmarks/tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    sections = [
        "# Tables",
        "Ratios are DALI's time to Penstock's in the same run: above 1, Penstock is faster. Each table names its run's date, "
        "commit and hardware; the run's file has versions.",
        "## Pipelines",
        *(_pipelines(device) for device in ("cpu", "gpu")),
        "## Data that reach a GPU",
        _uploads(),
        "## Every public operator on the CPU",
        _operators(),
        "## Operators on a GPU",
        _operators_on_gpu(),
        "## Resizing with Pillow's arithmetic",
        _resizing(),
        "## Presets with two threads",
        _threads(),
        "## Small images",
        _small_images(),
        "## Loops",
        _loops(),
        "## Readers",
        _readers(),
        "## Files",
        "Beside the fastest of DALI, OpenCV, Pillow, simplejpeg, torchvision, soundfile and PyAV; numbers of the others are their times to "
        "Penstock's.",
        _files(),
        "## GPU memory",
        _memory(),
        "## A training loop on a GPU",
        _training(),
    ]
    (RESULTS / "tables.md").write_text("\n\n".join(sections) + "\n")


def _run(name: str) -> dict[str, Any]:
    run: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return run


def _origin(run: dict[str, Any]) -> str:
    hardware = run["gpu"] or f"{run['processor']}, {run['cores']} cores"
    return f"{run['date']}, commit {run['commit']}, {hardware}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['ms']['DALI'] / row['ms']['Penstock']:.2f}"


def _pipelines(device: str) -> str:
    run = _run(f"pipelines-{device}")
    measure = "processor time" if device == "cpu" else "time"
    rows = [
        [row["work"], *(f"{row['ms'][who]:.3f}" for who in ("DALI", "Penstock")), _ratio(row)] for row in run["rows"]
    ]
    head = [f"{device.upper()}, {measure}", "DALI, ms a sample", "Penstock", "ratio"]
    return f"{_origin(run)}:\n\n{_table(head, rows)}"


def _uploads() -> str:
    run = _run("uploads-gpu")
    rows = []
    for row in run["rows"]:
        ms = dict(row["ms"])
        ours = ms.pop("Penstock")
        best = min(ms, key=lambda name: float(ms[name]))
        way = best.removeprefix("DALI").removeprefix(", ") or "its default"
        rows.append(
            [
                row["work"],
                f"{ms[best]:.3f}",
                way,
                f"{ours:.3f}",
                f"{ms[best] / ours:.2f}",
                row.get("commit", run["commit"]),
            ]
        )
    head = ["data", "DALI, ms a sample", "DALI's best way", "Penstock", "ratio", "commit"]
    return f"{_origin(run)}, {run['cores']} cores:\n\n{_table(head, rows)}"


def _small_images() -> str:
    run = _run("small-images-cpu")
    rows = [
        [row["work"], *(f"{row['ms'][who]:.3f}" for who in ("DALI", "Penstock")), _ratio(row)] for row in run["rows"]
    ]
    return f"{_origin(run)}:\n\n{_table(['', 'DALI, ms a batch of 64, or a graph', 'Penstock', 'ratio'], rows)}"


def _operators() -> str:
    run = _run("operators-cpu")
    unmeasured = _table(["not measured", "why"], [[f"`{name}`", why] for name, why in run["unmeasured"].items()])
    return (
        f"{_origin(run)}, shared with other programs; processor time of one thread for a sample, in microseconds, and the best "
        "peer's to it. Each batch has new samples of new sizes. `make bench-operators` repeats it.\n\n"
        f"{_table(OPERATOR_COLUMNS, [operator_cells(row) for row in run['rows']])}\n\n{unmeasured}"
    )


OPERATOR_COLUMNS = ["operator", "", "Penstock, us", "best peer", "us", "ratio", "others", "what bounds it"]
_GOAL = 1.2


def operator_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row of the operators' table; the reason is included if Penstock is not well ahead of the best peer."""
    ms, best = row["ms"], row["best"]
    others = [f"{name} {took / ms['Penstock']:.2f}" for name, took in ms.items() if name not in ("Penstock", best)]
    cells = [f"`{row['operator']}`", row["input"], _microseconds(ms["Penstock"])]
    if not best:
        return [*cells, "none", "", "", "", ""]
    reason = row["reason"] if row["ratio"] < _GOAL else ""
    return [*cells, best, _microseconds(ms[best]), f"{row['ratio']:.2f}", ", ".join(others), reason]


def _microseconds(ms: float) -> str:
    return f"{ms * 1e3:.4g}"


def _operators_on_gpu() -> str:
    run = _run("operators-gpu")
    rows = [[row["operator"], row["input"], _ratio(row)] for row in run["rows"]]
    return f"{_origin(run)}:\n\n{_table(['operator', 'input', 'ratio'], rows)}"


def _resizing() -> str:
    run = _run("resizing-cpu")
    rows = []
    for row in run["rows"]:
        own, pil, pillow = row["ms"].values()
        rows.append([row["work"], *(f"{took:.2f}" for took in (own, pil, pillow, pil / own, pillow / pil))])
    head = ["work", *(f"{who}, ms" for who in run["rows"][0]["ms"]), "to our own", "Pillow to it"]
    return f"{_origin(run)}; processor time for an image:\n\n{_table(head, rows)}"


def _threads() -> str:
    run = _run("threads-cpu")
    rows = [
        [row["work"], *(f"{took:.2f}" for took in times), f"{times[0] / times[1]:.2f}"]
        for row in run["rows"]
        for times in [list(row["ms"].values())]
    ]
    return f"{_origin(run)}; time for an image:\n\n{_table(['preset', 'one, ms', 'two', 'times as fast'], rows)}"


def _loops() -> str:
    run = _run("loops-cpu")
    rows = [[row["work"], _ratio(row)] for row in run["rows"]]
    return f"{_origin(run)}:\n\n{_table(['work', 'ratio'], rows)}"


def _readers() -> str:
    run = _run("readers-cpu")
    others = ("WebDataset", "LitData")
    rows = [
        [row["work"], *(f"{times['DALI'] / times['Penstock']:.2f}" for times in (row["cpu_ms"], row["ms"]))]
        + [f"{row['cpu_ms'][name] / row['cpu_ms']['Penstock']:.1f}" if name in row["cpu_ms"] else "" for name in others]
        for row in run["rows"]
    ]
    heads = ["reader", "processor time", "time", *(f"{name}'s loader, processor time" for name in others)]
    return f"{_origin(run)}:\n\n{_table(heads, rows)}"


def _files() -> str:
    run = _run("files-cpu")
    rows = []
    for row in run["rows"]:
        ms = row["ms"]
        best, *others = sorted((who for who in ms if who != "Penstock"), key=lambda who: float(ms[who]))
        ratios = {who: ms[who] / ms["Penstock"] for who in ms}
        rows.append(
            [
                row["work"],
                f"{ms['Penstock']:.3f}",
                best,
                f"{ms[best]:.3f}",
                f"{ratios[best]:.2f}",
                ", ".join(f"{who} {ratios[who]:.2f}" for who in others),
                row["reason"] if ratios[best] < _GOAL else "",
            ]
        )
    head = ["files", "Penstock, ms a file", "best peer", "ms", "ratio", "others", "what bounds it"]
    load = run["load average at the end"]
    return f"{_origin(run)}, load average {load:.0f}; processor time on one thread:\n\n{_table(head, rows)}"


def _memory() -> str:
    run = _run("gpu-memory")
    rows = [
        [f"A, batch {row['batch']}", *(f"{row['MiB'][who]:.0f}" for who in ("DALI", "Penstock"))] for row in run["rows"]
    ]
    return f"{_origin(run)}; the CUDA context included:\n\n{_table(['pipeline', 'DALI, MiB', 'Penstock'], rows)}"


def _training() -> str:
    run = _run("training-gpu")
    rows = [[row["work"], *(f"{time:.3f}" for time in row["ms"].values()), _ratio(row)] for row in run["rows"]]
    names = [f"{name}, ms" for name in run["rows"][0]["ms"]]
    return f"{_origin(run)}; time for each image:\n\n{_table(['loop', *names, 'DALI / Penstock'], rows)}"


if __name__ == "__main__":
    main()
