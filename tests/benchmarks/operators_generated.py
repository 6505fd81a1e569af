"""Every public CPU operator compared with DALI's, on calls generated from its schema, interleaved.

    python tests/benchmarks/operators_generated.py [--filter resize] [--json FILE]

Needs DALI in the same environment (`make bench` makes one). Inputs are small photographs (160x240), half a second of sound and
the like, so that what an operator costs besides its work shows. A figure is processor time of all threads for each sample: the
least of the rounds, as other programs on the machine only add to it.
"""

from __future__ import annotations

import argparse
import enum
import operator
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from side_by_side import Work, both
from turns import cpu_ms, headline, in_turns, keep

from penstock import fn  # noqa: F401  (loads the operators)
from penstock.schema import Schema, all_schemas, operator_class
from penstock.schema.examples import Call, shown_calls, why_unswept


def compared() -> Iterator[Schema]:
    """The public operators on CPU whose calls can be made up; aliases are the same operators."""
    for schema in all_schemas():
        own = operator_class(schema.name).schema is schema
        if own and not schema.hidden and "cpu" in schema.devices and not why_unswept(schema):
            yield schema


def work_of(schema: Schema, call: Call) -> Work:
    """The call in a pipeline of either module."""

    def work(module: Any, *inputs: Any) -> Any:
        given = {name: _of_module(module, value) for name, value in call.arguments.items()}
        if schema.random:
            given.setdefault("seed", 7)
        outputs = operator.attrgetter(schema.fn_path)(module.fn)(*inputs, **given)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

    return work


def _of_module(module: Any, value: object) -> Any:
    """An argument with the module's enumerations in place of Penstock's."""
    if isinstance(value, enum.IntEnum):
        return getattr(module.types, type(value).__name__)(int(value))
    if isinstance(value, list):
        return [_of_module(module, item) for item in value]
    return value


def measured(schema: Schema, call: Call, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds for each sample, by candidate."""
    batches = [[np.ascontiguousarray(samples.make(i)) for i in range(options.batch)] for samples in call.inputs]
    layouts = [samples.layout or None for samples in call.inputs]
    candidates = both(work_of(schema, call), batches, options.threads, False, layouts, options.batch)
    times = in_turns(candidates, cpu_ms, options.rounds, options.seconds, min)
    return {name: time / options.batch for name, time in times.items()}


def main() -> None:
    """Measures all operators and prints the table, those furthest behind first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each round")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--filter", default="", help="only operators whose name holds this")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=110, highlight=False)
    console.print(headline())
    kept = []
    for schema in compared():
        if options.filter not in schema.fn_path:
            continue
        for number, call in enumerate(shown_calls(schema)):
            name = schema.fn_path + (f": {call.name}" if number else "")
            try:
                ms = measured(schema, call, options)
            except Exception as error:
                console.print(f"{name}: {' '.join(str(error).split())[-150:]}", style="red", markup=False)
                continue
            kept.append({"operator": name, "ms": ms, "ratio": round(ms["DALI"] / ms["Penstock"], 3)})
    table = Table("operator", "DALI, ms", "Penstock, ms", "DALI / Penstock", title="CPU time for each sample")
    for row in sorted(kept, key=lambda row: row["ratio"]):
        table.add_row(
            row["operator"], *(f"{row['ms'][name]:.4f}" for name in ("DALI", "Penstock")), f"{row['ratio']:.2f}"
        )
    console.print(table)
    ratios = [row["ratio"] for row in kept]
    ahead, half = sum(ratio >= 1 for ratio in ratios), sum(ratio < 0.5 for ratio in ratios)
    console.print(f"{ahead} of {len(ratios)} at DALI's speed or above, {half} below half of it")
    keep("operators, generated", kept, options.json)


if __name__ == "__main__":
    main()
