"""Writes what the installed torchvision gives for the cases that the tests hold us to without it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from libraries import versions
from resizing import cases, expected

RECORDED = Path(__file__).parent / "recorded" / "torchvision.npz"
CASES, MOST, SEED = 120, 48, 7


def main() -> None:
    """Writes the file anew."""
    warnings.simplefilter("ignore")
    results = {str(k): expected(case, case.image()) for k, case in enumerate(cases("torchvision", CASES, MOST, SEED))}
    np.savez_compressed(RECORDED, versions=np.array(versions("torchvision")), **results)
    print(f"{RECORDED}: {len(results)} results of {versions('torchvision')}")


if __name__ == "__main__":
    main()
