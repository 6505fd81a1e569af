"""Compares features of sounds, computed in single precision by transformers and by presets, with their exact definition.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/definitions.py [--write] [--only NAME]

If PyTorch computes the sums or Fourier transforms of a class of transformers, the last digits of results depend on the machine's
processor, so that presets cannot return the same bits. The definition is the result of the class's code in double precision; a
preset's result must not differ more from it than the class's result. The class is also compared with itself, run with the
instructions of older processors (`ATEN_CPU_CAPABILITY`, `MKL_CBWR`).
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_MARK = "<!-- definitions -->\n"
_OLDER = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}
Results = Mapping[str, Mapping[str, Any]]
"""The outputs of each case, by the outputs' names."""


class Distances(NamedTuple):
    """The largest absolute differences between features, over all cases.

    Attributes:
        of_class: the difference between the class's features and the definition.
        of_preset: the difference between the preset's features and the definition.
        between: the difference between the features of the preset and of the class.
    """

    of_class: float
    of_preset: float
    between: float

    @property
    def is_as_exact(self) -> bool:
        """Whether the preset differs from the definition by no more than the class of transformers."""
        return self.of_preset <= self.of_class


def results(processor: Any, tensors: str) -> dict[str, dict[str, Any]]:
    """Return a processor's results by case, without the cases that it refuses."""
    from classes import results_of_cases

    return dict(results_of_cases(processor, "sounds", tensors))


def distances(each: Any) -> Distances:
    """Return the distances for a class, given as a :class:`classes.Class`."""
    from classes import made, preset_of
    from double import in_double

    theirs = made(each)
    of_class, of_preset = results(theirs, "pt"), results(preset_of(each, theirs), "np")
    with in_double():
        defined = results(made(each), "pt")
    return Distances(apart(of_class, defined), apart(of_preset, defined), apart(of_preset, of_class))


def apart(one: Results, other: Results) -> float:
    """Return the largest absolute difference between the features of the cases that both results contain."""
    return max(
        (_difference(one[what][name], value) for what, name, value in _features(other) if what in one), default=0.0
    )


def _features(given: Results) -> Iterator[tuple[str, str, np.ndarray]]:
    for what, outputs in given.items():
        for name, value in outputs.items():
            if np.asarray(value).dtype.kind == "f":
                yield what, name, np.asarray(value)


def _difference(one: Any, other: np.ndarray) -> float:
    return float(np.nanmax(np.abs(np.asarray(one, np.float64) - other.astype(np.float64)), initial=0))


def _of_older_processors(names: Sequence[str]) -> dict[str, Results]:
    """Return the results of transformers' classes, computed with the instructions of older processors.

    Another process computes them, as PyTorch and MKL select the instructions when they are loaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results"
        command = [
            sys.executable,
            __file__,
            "--keep",
            str(file),
            *(part for name in names for part in ("--only", name)),
        ]
        subprocess.run(command, check=True, env={**os.environ, **_OLDER})
        given: dict[str, Results] = pickle.loads(file.read_bytes())
        return given


def main() -> None:
    """Print a table; with --write, write it to the docs."""
    from classes import PAGE, classes, compared, made

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in the docs")
    parser.add_argument("--only", action="append", help="classes of this name; by default those that are not equalled")
    parser.add_argument("--keep", type=Path, help="only write into this file what the classes give")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sounds = {
        each.name: each for each in classes() if each.kind == "sounds" and each.name in (options.only or [each.name])
    }
    if options.keep:
        options.keep.write_bytes(pickle.dumps({name: results(made(each), "pt") for name, each in sounds.items()}))
        return
    inexact = [name for name, each in sounds.items() if compared(each).verdict in ("as exact", "close")]
    older = _of_older_processors(inexact)
    lines = ["| class | of the class | of the preset | between them | of the class on an older processor |"]
    lines += ["| --- | --: | --: | --: | --: |"]
    for name in inexact:
        found, itself = distances(sounds[name]), apart(results(made(sounds[name]), "pt"), older[name])
        numbers = (*found, itself)
        lines.append(f"| `{name}` | {' | '.join(f'{number:.1e}' for number in numbers)} |")
        print(lines[-1], "" if found.is_as_exact else "NOT AS EXACT", flush=True)
    if options.write:
        head, _, rest = PAGE.read_text().partition(_MARK)
        _, blank, tail = rest.partition("\n\n")
        PAGE.write_text(f"{head}{_MARK}{chr(10).join(lines)}{blank}{tail}")


if __name__ == "__main__":
    main()
