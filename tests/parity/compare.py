"""`make parity`: random cases against the real libraries, and a table of what was found.

The table is what `penstock.parity` tells, if --write is given.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from libraries import VERSIONED, torchvision_functional, versions
from processors import BACKENDS, CONFIGURATIONS, by_transformers, pictures
from resizing import INTERPOLATIONS, Case, cases, different

from penstock.parity import FILE, Comparison, measured, table
from penstock.presets import preset

PAGE = Path(__file__).parents[2] / "docs" / "same-pixels.md"


def main() -> int:
    """Compares; the number of cases that differ is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="for all libraries that resize together")
    parser.add_argument("--most", type=int, default=4000, help="pixels of a side")
    parser.add_argument("--pictures", type=int, default=200, help="for each preset")
    parser.add_argument("--calls", type=int, default=1000, help="for each function of Pillow's")
    parser.add_argument("--samples", type=int, default=25, help="for each transform and kind of image")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", choices=tuple(VERSIONED), action="append")
    parser.add_argument("--write", action="store_true", help="keep the result, for what penstock.parity tells")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[Comparison] = []
    for library in options.library or VERSIONED:
        print(f"\n{versions(library)}")
        count = -(-options.cases // len(INTERPOLATIONS))
        if library in INTERPOLATIONS:
            rows = _resized(library, count, options.most, options.seed)
        elif library == "pillow_function":
            rows = _functions(options.calls, options.seed)
        elif library == "transforms":
            rows = _transformed(options.samples, options.seed)
        else:
            rows = _processed(options.pictures, options.seed)
        for row in rows:
            print(f"  {row.what:36} {row.cases:6} cases {row.values:14,} values {row.different:4} cases different")
            found.append(row)
    if options.write:
        _keep(found)
    return min(sum(row.different for row in found), 100)


def _resized(library: str, count: int, most: int, seed: int) -> Iterator[Comparison]:
    compared, values, failed = Counter[str](), Counter[str](), Counter[str]()
    for case in cases(library, count, most, seed):
        number, differing = different(case)
        what = _what(case)
        compared[what] += 1
        values[what] += number
        if differing:
            failed[what] += 1
            print(f"DIFFERENT: {differing} of {number} values: {case}")
    for what in sorted(compared):
        yield Comparison(library, versions(library), what, compared[what], values[what], failed[what])


def _what(case: Case) -> str:
    parts = [case.interpolation]
    if "antialias" in case.asked:
        parts.append("antialias" if case.asked["antialias"] else "no antialias")
    if case.floats:
        parts.append("float32")
    if case.reference != case.library:
        parts.append("of PIL's images")
    return ", ".join(parts)


def _processed(count: int, seed: int) -> Iterator[Comparison]:
    """Presets against the image processors that they stand for."""
    for name, configuration in CONFIGURATIONS.items():
        for backend in BACKENDS:
            pipeline = preset(configuration, batch_size=1, backend=backend)
            values = wrong = 0
            for picture in pictures(count, 900, seed):
                expected = by_transformers(configuration, backend, picture.image)
                got = np.array(pipeline.run(images=[picture.file])[0][0])
                values += expected.size
                wrong += not np.array_equal(got, expected)
            pipeline.close()
            kind = str(configuration.get("image_processor_type") or configuration["feature_extractor_type"])
            yield Comparison(
                "transformers", versions("transformers"), f"{kind} ({name}), {backend}", count, values, wrong
            )


def _functions(count: int, seed: int) -> Iterator[Comparison]:
    """Functions of images against Pillow's."""
    from pillow_functions import COMPARED, calls

    for name in COMPARED:
        values = wrong = 0
        for got, expected in calls(name, count, seed):
            values, wrong = values + expected.size, wrong + (not np.array_equal(got, expected))
        yield Comparison("pillow_function", versions("pillow_function"), name, count, values, wrong)


def _transformed(count: int, seed: int) -> Iterator[Comparison]:
    """Transforms against torchvision's, after the same seed."""
    torchvision_functional()
    sys.path.insert(0, str(Path(__file__).parents[1] / "plugin" / "torchvision"))
    from beside import GROUPS, MAKE, comparable, difference, outcome, size_of, theirs

    from penstock.plugin.torchvision.transforms import v2 as ours

    for kind, sample in MAKE.items():
        for group, makes in GROUPS.items():
            compared = values = wrong = 0
            for name, make in makes.items():
                for number in range(seed, seed + count) if comparable(name, kind) else ():
                    expected, got = (outcome(module, make, sample(number), number) for module in (theirs, ours))
                    told = difference(expected, got)
                    compared, values, wrong = compared + 1, values + size_of(expected), wrong + bool(told)
                    if told:
                        print(f"DIFFERENT: {name} of {kind}, seed {number}: {told}")
            yield Comparison("transforms", versions("transforms"), f"{group}, of {kind}", compared, values, wrong)


def _keep(found: list[Comparison]) -> None:
    """Replaces the rows of the libraries that were asked."""
    asked = {row.library for row in found}
    kept = json.loads(FILE.read_text()) if FILE.exists() else []
    rows = [row for row in kept if row["library"] not in asked] + [row._asdict() for row in found]
    rows.sort(key=lambda row: list(VERSIONED).index(row["library"]))
    FILE.write_text("[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n")
    measured.cache_clear()
    for library in asked:
        # A table is what stands between a comment that names the library and the next heading.
        head, _, rest = PAGE.read_text().partition(f"<!-- {library} -->\n")
        _, heading, tail = rest.partition("\n#")
        PAGE.write_text(f"{head}<!-- {library} -->\n{table(library)}\n{heading}{tail}")


if __name__ == "__main__":
    raise SystemExit(main())
