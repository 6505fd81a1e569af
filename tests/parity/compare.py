"""`make parity`: random cases against the real libraries, and a table of what was found.

The table is what `penstock.parity` tells, if --write is given.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

import numpy as np
from libraries import VERSIONED, versions
from processors import BACKENDS, CONFIGURATIONS, by_transformers, pictures
from resizing import INTERPOLATIONS, cases, different

from penstock.presets import preset


def main() -> int:
    """Compares; the number of cases that differ is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="for all libraries together")
    parser.add_argument("--most", type=int, default=4000, help="pixels of a side")
    parser.add_argument("--pictures", type=int, default=200, help="for each preset")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", choices=tuple(VERSIONED), action="append")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    libraries = [library for library in INTERPOLATIONS if library in (options.library or INTERPOLATIONS)]
    wrong = 0
    for library in libraries:
        wrong += _compared(library, -(-options.cases // len(libraries)), options.most, options.seed)
    if "transformers" in (options.library or VERSIONED):
        wrong += _processed(options.pictures, options.seed)
    return min(wrong, 100)


def _processed(count: int, seed: int) -> int:
    """Presets against the image processors that they stand for."""
    failed = 0
    print(f"\n{versions('transformers')}")
    for name, configuration in CONFIGURATIONS.items():
        for backend in BACKENDS:
            pipeline = preset(configuration, batch_size=1, backend=backend, prefetch_queue_depth=1)
            values = wrong = 0
            for picture in pictures(count, 900, seed):
                expected = by_transformers(configuration, backend, picture.image)
                got = np.array(pipeline.run(images=[picture.file])[0][0])
                values += expected.size
                wrong += not np.array_equal(got, expected)
            pipeline.close()
            print(f"  {name + ', ' + backend:32} {count:6} images {values:13,} values {wrong:4} images different")
            failed += wrong
    return failed


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
