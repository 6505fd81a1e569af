"""Records DALI's results for each case; needs DALI: ``python tests/golden/record.py [FAMILY ...]``."""

from __future__ import annotations

import sys
import warnings

import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.math
import nvidia.dali.types
import store
from comparison import error_kinds, message, run
from families import families


def main(wanted: list[str]) -> None:
    """Record the families of these names, or all families if ``wanted`` is empty."""
    warnings.simplefilter("ignore")
    for family in families():
        if wanted and family.name not in wanted:
            continue
        outcomes = {}
        for case in family:
            try:
                outcomes[case.name] = run(nvidia.dali, case)
            except Exception as error:
                if case.phrase not in message(error):
                    sys.exit(f"{family.name}: {case.name} has another message: {message(error)}")
                outcomes[case.name] = {"error": error_kinds(error), "text": message(error)[-200:]}
        path = store.save(family.name, outcomes, nvidia.dali.__version__)
        errors = sum(isinstance(outcome, dict) for outcome in outcomes.values())
        print(f"{family.name}: {len(outcomes)} cases, {errors} of them errors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
