"""The results of `make parity`: how many results are equal bit for bit to those of other libraries.

>>> [row.different for row in measured() if row.library == "pil"]
[0, 0, 0, 0, 0, 0]
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["FILE", "Comparison", "measured", "table"]

FILE = Path(__file__).parent / "measured.json"


class Comparison(NamedTuple):
    """The comparison of one of our functions or image processors with that of another library.

    Attributes:
        library: `pil`, `torchvision` or `opencv`, compared with `fn.resize`; `pillow_function`, with that operator;
            `opencv_function`, with operators with `reference="opencv"`; `transforms`, with `penstock.plugin.torchvision`;
            `transformers`, with `penstock.presets`.
        versions: the versions of the library and of the libraries that it computes with.
        what: the filter or the configuration that was compared.
        cases: the number of random cases that were compared.
        values: the number of values in the results of all cases.
        different: the number of cases in which any value differed.
    """

    library: str
    versions: str
    what: str
    cases: int
    values: int
    different: int


@cache
def measured() -> tuple[Comparison, ...]:
    """Return the comparisons, ordered by library."""
    return tuple(Comparison(**row) for row in json.loads(FILE.read_text()))


def table(library: str) -> str:
    """Return the comparisons with one library as a Markdown table."""
    rows = [row for row in measured() if row.library == library]
    lines = ["| | cases | values | different |", "| --- | --: | --: | --: |"]
    lines += [f"| {row.what} | {row.cases:,} | {row.values:,} | {row.different} |" for row in rows]
    return "\n".join(lines)
