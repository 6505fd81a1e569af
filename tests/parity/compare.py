"""`make parity`: compares random cases with the real libraries, and prints a table of the results.

The table becomes the data of `penstock.parity` with --write.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from configurations import CONFIGURATIONS
from libraries import VERSIONED, torchvision_functional, versions
from processors import Picture, backends_of, by_transformers, differing, ours, photographs, pictures
from resizing import INTERPOLATIONS, Case, cases, different

from penstock.parity import FILE, Comparison, measured, table
from penstock.presets import preset, read_configuration

PAGE = Path(__file__).parents[2] / "docs" / "same-pixels.md"


def main() -> int:
    """Run all comparisons; return the exit status: the number of cases that differ, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="for all libraries that resize together")
    parser.add_argument("--most", type=int, default=4000, help="pixels of a side")
    parser.add_argument("--pictures", type=int, default=200, help="for each preset")
    parser.add_argument("--photographs", type=Path, help="a folder: as many more are made of what is in it")
    parser.add_argument("--only", action="append", help="configurations of this name, or with more names behind it")
    parser.add_argument("--calls", type=int, default=1000, help="for each function of Pillow's and OpenCV's")
    parser.add_argument("--samples", type=int, default=25, help="for each transform and kind of image")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", choices=tuple(VERSIONED), action="append")
    parser.add_argument("--write", action="store_true", help="keep the result, for what penstock.parity tells")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    return _compare(options)


def _compare(options: argparse.Namespace) -> int:
    found: list[Comparison] = []
    for library in options.library or VERSIONED:
        print(f"\n{versions(library)}")
        count = -(-options.cases // len(INTERPOLATIONS))
        if library in INTERPOLATIONS:
            rows = _resized(library, count, options.most, options.seed)
        elif library == "pillow_function":
            rows = _functions(options.calls, options.seed)
        elif library == "opencv_function":
            rows = _opencv_functions(options.calls, options.seed)
        elif library == "transforms":
            rows = _transformed(options.samples, options.seed)
        else:
            rows = _processed(options.pictures, options.seed, options.photographs, options.only or [""])
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


def _processed(count: int, seed: int, folder: Path | None, only: Sequence[str]) -> Iterator[Comparison]:
    """Compare the preset of each configuration with the processor of transformers that it replaces."""
    made = list(pictures(count, 900, seed, slender=True))
    given = list(photographs(folder, count, seed)) if folder else []
    for name, configuration in CONFIGURATIONS.items():
        for backend in backends_of(name) if name.startswith(tuple(only)) else ():
            yield _family(name, configuration, backend, [*given, *made])


def _family(name: str, configuration: Mapping[str, object], backend: str, given: Sequence[Picture]) -> Comparison:
    pipeline = preset(configuration, batch_size=2, backend=backend)
    family = read_configuration(configuration)
    values = wrong = 0
    for picture in given:
        expected = _or_refused(lambda picture=picture: by_transformers(configuration, backend, [picture.image]))
        got = _or_refused(lambda picture=picture: ours(pipeline, family, [picture.file]))
        values += sum(np.size(value) for value in expected.values())
        different = differing(expected, got)
        wrong += bool(different)
        if different:
            print(f"DIFFERENT: {different} of {name}, {backend}: {picture.image.size}")
    pipeline.close()
    kind = str(configuration.get("image_processor_type") or configuration["feature_extractor_type"])
    return Comparison(
        "transformers", versions("transformers"), f"{kind} ({name}), {backend}", len(given), values, wrong
    )


def _or_refused(compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the outputs, or an empty dictionary if the input is refused."""
    try:
        return compute()
    except (ValueError, RuntimeError, IndexError, ZeroDivisionError):
        return {}


def _functions(count: int, seed: int) -> Iterator[Comparison]:
    """Compare each version of a function of Pillow with Pillow's own."""
    from pillow_functions import COMPARED, calls

    for name in COMPARED:
        values = wrong = 0
        for got, expected in calls(name, count, seed):
            values, wrong = values + expected.size, wrong + (not np.array_equal(got, expected))
        yield Comparison("pillow_function", versions("pillow_function"), name, count, values, wrong)


def _opencv_functions(count: int, seed: int) -> Iterator[Comparison]:
    """Compare each operator that follows OpenCV with OpenCV's function."""
    from opencv_functions import COMPARED, compared

    for name in COMPARED:
        values = wrong = 0
        for got, expected in compared(name, count, seed):
            values, wrong = values + expected.size, wrong + (not np.array_equal(got, expected))
        yield Comparison("opencv_function", versions("opencv_function"), name, count, values, wrong)


def _transformed(count: int, seed: int) -> Iterator[Comparison]:
    """Compare transforms with those of torchvision; both draw random numbers after the same seed."""
    torchvision_functional()
    sys.path.insert(0, str(Path(__file__).parents[1] / "plugin" / "torchvision"))
    from beside import GROUPS, MAKE, comparable, difference, outcome, size_of, theirs

    from penstock.plugin.torchvision.transforms import v2

    for kind, sample in MAKE.items():
        for group, makes in GROUPS.items():
            compared = values = wrong = 0
            for name, make in makes.items():
                for number in range(seed, seed + count) if comparable(name, kind) else ():
                    expected, got = (outcome(module, make, sample(number), number) for module in (theirs, v2))
                    told = difference(expected, got)
                    compared, values, wrong = compared + 1, values + size_of(expected), wrong + bool(told)
                    if told:
                        print(f"DIFFERENT: {name} of {kind}, seed {number}: {told}")
            yield Comparison("transforms", versions("transforms"), f"{group}, of {kind}", compared, values, wrong)


def _keep(found: list[Comparison]) -> None:
    """Write the comparisons to the data of `penstock.parity` and to the documentation, in place of older ones of the same functions."""
    asked, compared = {row.library for row in found}, {(row.library, row.what): row for row in found}
    rows = json.loads(FILE.read_text()) if FILE.exists() else []
    for place, row in enumerate(rows):
        new = compared.pop((row["library"], row["what"]), None)
        rows[place] = new._asdict() if new else row
    rows += [row._asdict() for row in compared.values()]
    rows.sort(key=lambda row: list(VERSIONED).index(row["library"]))
    FILE.write_text("[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n")
    measured.cache_clear()
    for library in asked:
        # A table begins at a comment that names the library, and ends at the next heading.
        head, _, rest = PAGE.read_text().partition(f"<!-- {library} -->\n")
        _, heading, tail = rest.partition("\n#")
        PAGE.write_text(f"{head}<!-- {library} -->\n{table(library)}\n{heading}{tail}")


if __name__ == "__main__":
    raise SystemExit(main())
