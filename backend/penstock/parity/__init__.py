"""Which results equal those of which release of which library, to the bit: the results of `make parity`.

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
    """One function, or one image processor, compared with ours.

    Attributes:
        library: `pil`, `torchvision` and `opencv`: of `fn.resize`; `pillow_function`: of that operator; `opencv_function`: of
            operators with `reference="opencv"`; `transforms`: of `penstock.plugin.torchvision`; `transformers`: of `penstock.presets`.
        versions: the versions of the library and of what it computes with.
        what: the filter, or the configuration.
        cases: random ones that were compared.
        values: the number of values in all their results.
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
    """Return the measurements, by library."""
    return tuple(Comparison(**row) for row in json.loads(FILE.read_text()))


def table(library: str) -> str:
    """Return the measurements of one library, as a Markdown table."""
    rows = [row for row in measured() if row.library == library]
    lines = ["| | cases | values | different |", "| --- | --: | --: | --: |"]
    lines += [f"| {row.what} | {row.cases:,} | {row.values:,} | {row.different} |" for row in rows]
    return "\n".join(lines)
