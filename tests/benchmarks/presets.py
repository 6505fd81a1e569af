"""Presets beside the classes of transformers that they stand for, in one process and in turns.

    make bench-presets [ARGS="--json FILE --only qwen"]

From files to tensors: photographs of 1280 x 853 pixels as JPEG, a call with several of them, one thread; and Whisper's features
of 30 seconds of sound, by torch. A figure is processor time for an image; the least of the rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table
from turns import RESULTS, Run, cpu_ms, headline, in_turns, keep

from penstock.kernels.codecs.jpeg_baseline import compiling_at_once
from penstock.parity import measured
from penstock.presets import preset

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from libraries import torchvision_functional
from processors import CONFIGURATIONS, FAMILIES, SMALL, backends_of

COUNT = 4
PAGE = Path(__file__).parents[2] / "docs" / "same-pixels.md"
MARK = "<!-- presets -->\n"
WHISPER = "whisper"
_SHAPE = (853, 1280, 3)


def photographs(folder: Path | None) -> list[bytes]:
    """Files 1280 wide from a folder, or made up: smooth, with some noise, as large as photographs are."""
    found = []
    for path in sorted(folder.rglob("*.jpg")) if folder else ():
        with Image.open(path) as image:
            if image.width == _SHAPE[1]:
                found.append(path.read_bytes())
    rng = np.random.default_rng(0)
    while len(found) < COUNT:
        places = np.indices(_SHAPE[:2]).sum(axis=0)[..., None] / (40 + len(found))
        pixels = 127 + 90 * np.sin(places + np.arange(3)) + rng.normal(0, 9, _SHAPE)
        file = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found[:COUNT]


def candidates(name: str, files: list[bytes]) -> dict[str, Run]:
    """Ours, and the class by its libraries."""
    configuration = CONFIGURATIONS[name]
    pipeline = preset(configuration, batch_size=COUNT)
    arrays = [np.frombuffer(file, np.uint8) for file in files]
    runs: dict[str, Run] = {"Penstock": lambda: pipeline.run(images=arrays)}
    for backend in backends_of(name):
        runs[backend] = _class_of(configuration, backend, files)
    return runs


def _class_of(configuration: Mapping[str, object], backend: str, files: list[bytes]) -> Run:
    import transformers

    name = str(configuration["image_processor_type"]).removesuffix("Fast") + ("Pil" if backend == "pil" else "")
    held = {key: value for key, value in configuration.items() if not key.endswith("_type")}
    processor = getattr(transformers, name).from_dict(held)

    def run() -> Any:
        images = [Image.open(io.BytesIO(file)).convert("RGB") for file in files]
        return [processor(image, return_tensors="pt") for image in images]

    return run


def speech() -> dict[str, Run]:
    """Whisper's features of 30 seconds, as often as there are images."""
    import transformers

    sound = np.random.default_rng(0).normal(0, 0.1, 480_000).astype(np.float32)
    pipeline = preset({"feature_extractor_type": "WhisperFeatureExtractor"}, batch_size=COUNT, encoded=False)
    extractor = transformers.WhisperFeatureExtractor()
    return {
        "Penstock": lambda: pipeline.run(audio=[sound] * COUNT),
        "torchvision": lambda: [extractor(sound, sampling_rate=16000, return_tensors="pt") for _ in range(COUNT)],
    }


def main() -> None:
    """Prints the table, the presets that are furthest behind first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="configurations whose name contains this")
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--write", action="store_true", help="keep the table in the page, of what was run with --json before"
    )
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torchvision_functional()
    import transformers

    transformers.logging.set_verbosity_error()
    files = photographs(options.photographs)
    # As a server does, before it is ready.
    with compiling_at_once():
        rows = _measured(options, files)
    keep("presets", rows, options.json)
    _show(rows)
    if options.write:
        head, _, rest = PAGE.read_text().partition(MARK)
        _, heading, tail = rest.partition("\n#")
        PAGE.write_text(f"{head}{MARK}{page_table()}\n{heading}{tail}")


def page_table() -> str:
    """The table of the page: what was compared (`make parity`), and what the runs took that are kept in `results`."""
    runs = {machine: _kept(machine) for machine in ("cpu", "gpu")}
    told = "; ".join(f"{run['date']}, {run['gpu'] or run['processor']}" for run in runs.values() if run)
    columns = (
        "preset",
        "class",
        "cases",
        "different",
        "ms",
        "torchvision",
        "PIL",
        "ratio",
        "to PIL",
        "H200, ms",
        "ratio",
    )
    lines = [told, "", f"| {' | '.join(columns)} |", "| --- | --- |" + " --: |" * (len(columns) - 2)]
    times, on_gpu = (
        {row["preset"]: row["ms"] for row in run["rows"]} if run else {} for run in (runs["cpu"], runs["gpu"])
    )
    for name, ms in times.items():
        compared = [row for row in measured() if row.library == "transformers" and f"({name})" in row.what]
        kind = compared[0].what.partition(" ")[0] if compared else "WhisperFeatureExtractor"
        cases = f"{sum(row.cases for row in compared):,}" if compared else ""
        different = str(sum(row.different for row in compared)) if compared else "within 4e-5"
        ours, fast, slow, gpu = ms["Penstock"], ms["torchvision"], ms.get("pil"), on_gpu.get(name)
        cells = [name, kind, cases, different, f"{ours:.2f}", f"{fast:.2f}", f"{slow:.2f}" if slow else ""]
        cells += [f"{fast / ours:.2f}", f"{slow / ours:.2f}" if slow else ""]
        cells += [f"{gpu['Penstock']:.3f}", f"{gpu['torchvision'] / gpu['Penstock']:.1f}"] if gpu else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _kept(machine: str) -> dict[str, Any] | None:
    file = RESULTS / f"presets-{machine}.json"
    return json.loads(file.read_text()) if file.exists() else None


def _measured(options: argparse.Namespace, files: list[bytes]) -> list[dict[str, Any]]:
    rows = []
    for name in (*CONFIGURATIONS, WHISPER):
        if name in (*SMALL, *FAMILIES) or options.only not in name:
            continue
        runs = speech() if name == WHISPER else candidates(name, files)
        times = in_turns(runs, cpu_ms, options.rounds, options.seconds, min)
        rows.append({"preset": name, "ms": {who: took / COUNT for who, took in times.items()}})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table("preset", "Penstock, ms", "torchvision", "PIL", "ratio", "ratio to PIL")
    for row in sorted(rows, key=lambda row: float(row["ms"]["torchvision"] / row["ms"]["Penstock"])):
        ours, fast, slow = (row["ms"].get(who) for who in ("Penstock", "torchvision", "pil"))
        cells = [f"{each:.2f}" if each else "" for each in (ours, fast, slow)]
        table.add_row(row["preset"], *cells, f"{fast / ours:.2f}", f"{slow / ours:.2f}" if slow else "")
    console = Console(width=100)
    console.print(headline())
    console.print(table)


if __name__ == "__main__":
    main()
