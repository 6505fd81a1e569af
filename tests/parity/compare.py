"""`make parity`: random cases against the real libraries, and a table of what was found.

The table is what `penstock.parity` tells, if --write is given.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

from libraries import VERSIONED, versions
from resizing import cases, different


def main() -> int:
    """Compares; the number of cases that differ is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="for all libraries together")
    parser.add_argument("--most", type=int, default=4000, help="pixels of a side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", choices=tuple(VERSIONED), action="append")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    libraries = options.library or list(VERSIONED)
    wrong = 0
    for library in libraries:
        wrong += _compared(library, -(-options.cases // len(libraries)), options.most, options.seed)
    return min(wrong, 100)


def _compared(library: str, count: int, most: int, seed: int) -> int:
    compared, values, failed = Counter[str](), Counter[str](), Counter[str]()
    for case in cases(library, count, most, seed):
        name = case.interpolation
        if "antialias" in case.asked:
            name += ", antialias" if case.asked["antialias"] else ", no antialias"
        if case.floats:
            name += ", float"
        if case.reference != library:
            name += " (of PIL images)"
        number, differing = different(case)
        compared[name] += 1
        values[name] += number
        if differing:
            failed[name] += 1
            print(f"DIFFERENT: {differing} of {number} values: {case}")
    print(f"\n{versions(library)}")
    for name in sorted(compared):
        print(f"  {name:32} {compared[name]:6} cases {values[name]:14,} values {failed[name]:4} cases different")
    return failed.total()


if __name__ == "__main__":
    raise SystemExit(main())
