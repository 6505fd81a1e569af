"""How the time and memory of pipelines grow with batch size, image size, threads and number of operators; draws a chart.

    python tests/benchmarks/growth.py --picture growth.svg [--json FILE]

Needs DALI in the same environment (`make bench` makes one), for its lines in the chart. Time is wall time per image, the median of
several interleaved rounds. Memory is measured in a separate process for each value, as the growth since before the pipeline was made.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from side_by_side import MODULES, Work, prepared
from turns import headline, in_turns, keep, wall_ms

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MEGAPIXELS = (0.1, 0.3, 1.0, 3.0, 8.0, 24.0)
THREADS = (1, 2, 4, 8)
LENGTHS = (1, 2, 5, 10, 20, 50)
COLOURS = {"DALI": "#76b900", "Penstock": "#1f6feb"}
Point = tuple[list[np.ndarray], Work, int]


def image(megapixels: float) -> np.ndarray:
    """Return the pixels of an image with the aspect ratio 4:3."""
    height = round((megapixels * 1e6 * 3 / 4) ** 0.5)
    return np.random.default_rng(0).integers(0, 255, (height, round(height * 4 / 3), 3), np.uint8)


def preprocess(m: Any, x: Any) -> Any:
    return m.fn.crop_mirror_normalize(m.fn.resize(x, size=(224, 224)), mean=[120.0], std=[60.0])


def flips(count: int) -> Work:
    def work(m: Any, x: Any) -> Any:
        for _ in range(count):
            x = m.fn.flip(x)
        return x

    return work


SERIES: dict[str, tuple[tuple[float, ...], Callable[[Any], Point]]] = {
    "batch size": (BATCHES, lambda n: ([image(0.3)] * n, preprocess, 2)),
    "megapixels": (MEGAPIXELS, lambda size: ([image(size)] * 4, preprocess, 2)),
    "threads": (THREADS, lambda n: ([image(1.0)] * 16, preprocess, n)),
    "operators": (LENGTHS, lambda n: ([image(0.01)] * 4, flips(n), 2)),
}
CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
import growth
name, series, value = sys.argv[1], sys.argv[2], float(sys.argv[3])
batch, work, threads = growth.SERIES[series][1](value if series == "megapixels" else int(value))
# What is loaded when it is first needed is there before.
growth.prepared(growth.MODULES[name], work, [[growth.image(0.01)]], 1, False, "HWC")()
before = growth.resident_mebibytes()
run = growth.prepared(growth.MODULES[name], work, [batch], threads, False, "HWC")
for _ in range(5):
    outputs = run()
print(growth.resident_mebibytes() - before)
"""


def resident_mebibytes() -> float:
    """Return the resident memory of this process, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def held_mebibytes(name: str, series: str, value: float) -> float:
    """Return the memory that a pipeline holds in a separate process, in MiB, not counting libraries and the input."""
    command = [sys.executable, "-c", CHILD, name, series, str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    return float(done.stdout.split()[-1])


def measured(series: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Return one row for each value of a series."""
    values, point_of = SERIES[series]
    rows = []
    for value in values:
        batch, work, threads = point_of(value)
        runs = {name: prepared(module, work, [batch], threads, False, "HWC") for name, module in MODULES.items()}
        times = in_turns(runs, wall_ms, rounds, seconds)
        ms = {name: time / len(batch) for name, time in times.items()}
        memory = {name: held_mebibytes(name, series, value) for name in MODULES}
        rows.append({"series": series, "value": value, "ms": ms, "MiB": memory})
    return rows


def picture(rows: list[dict[str, Any]], title: str) -> str:
    """Draw the rows as an SVG: time above, memory below, one column for each series; both axes are logarithmic."""
    width, height, margin = 280, 180, 46
    parts = []
    for column, series in enumerate(SERIES):
        own = [row for row in rows if row["series"] == series]
        for line, (quantity, unit) in enumerate((("ms", "ms for each image"), ("MiB", "MiB held"))):
            left, top = margin + column * (width + margin), margin + line * (height + margin)
            parts.append(_panel(own, quantity, f"{unit}, by {series}", left, top, width, height))
    total_width, total_height = margin + len(SERIES) * (width + margin), 2 * (height + margin) + margin
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width} {total_height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/><text x="{margin}" y="18">{title}</text>'
        f"{''.join(parts)}</svg>\n"
    )


def _panel(rows: list[dict[str, Any]], quantity: str, title: str, left: int, top: int, width: int, height: int) -> str:
    xs = np.log([row["value"] for row in rows])
    floor = 0.001 if quantity == "ms" else 0.1
    ys = {name: np.log([max(row[quantity][name], floor) for row in rows]) for name in COLOURS}
    low, high = min(y.min() for y in ys.values()), max(y.max() for y in ys.values())
    span_x, span_y = max(xs[-1] - xs[0], 1e-9), max(high - low, 1e-9)

    def place(x: float, y: float) -> str:
        return f"{left + (x - xs[0]) / span_x * width:.1f},{top + height - (y - low) / span_y * height:.1f}"

    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>',
        f'<text x="{left}" y="{top - 6}">{title}</text>',
        f'<text x="{left - 4}" y="{top + 10}" text-anchor="end">{np.exp(high):.3g}</text>',
        f'<text x="{left - 4}" y="{top + height}" text-anchor="end">{np.exp(low):.3g}</text>',
    ]
    parts += [
        f'<text x="{left + (x - xs[0]) / span_x * width:.1f}" y="{top + height + 13}" text-anchor="middle">{row["value"]:g}</text>'
        for x, row in zip(xs, rows)
    ]
    for number, (name, colour) in enumerate(COLOURS.items()):
        points = " ".join(place(x, y) for x, y in zip(xs, ys[name]))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 6}" y="{top + 16 + 13 * number}" fill="{colour}">{name}</text>')
    return "".join(parts)


def main() -> None:
    """Measure all series, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="where to write the picture, an SVG")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=110)
    title = headline()
    console.print(title, highlight=False)
    rows = [row for series in SERIES for row in measured(series, options.rounds, options.seconds)]
    table = Table("by", "value", "DALI, ms", "Penstock, ms", "ratio", "DALI, MiB", "Penstock, MiB")
    for row in rows:
        ms, mebibytes = row["ms"], row["MiB"]
        table.add_row(
            row["series"],
            f"{row['value']:g}",
            f"{ms['DALI']:.3f}",
            f"{ms['Penstock']:.3f}",
            f"{ms['DALI'] / ms['Penstock']:.2f}",
            f"{mebibytes['DALI']:.0f}",
            f"{mebibytes['Penstock']:.0f}",
        )
    console.print(table)
    if options.picture:
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        options.picture.write_text(picture(rows, title), encoding="utf-8")
    keep("growth", rows, options.json)


if __name__ == "__main__":
    main()
