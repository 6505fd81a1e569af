"""Writes what the installed torchvision and transformers give for the cases that the tests hold us to without them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from libraries import versions
from processors import BACKENDS, CONFIGURATIONS, SMALL, by_transformers, pictures
from resizing import cases, expected

_FOLDER = Path(__file__).parent / "recorded"
RECORDED, PROCESSED = _FOLDER / "torchvision.npz", _FOLDER / "transformers.npz"
CASES, MOST, SEED = 120, 48, 7
PICTURES, PICTURE_MOST = 4, 90


def main() -> None:
    """Writes the files anew."""
    warnings.simplefilter("ignore")
    results = {str(k): expected(case, case.image()) for k, case in enumerate(cases("torchvision", CASES, MOST, SEED))}
    np.savez_compressed(RECORDED, versions=np.array(versions("torchvision")), **results)
    processed = {
        f"{name} {backend} {number}": by_transformers(CONFIGURATIONS[name], backend, picture.image)
        for name in SMALL
        for backend in BACKENDS
        for number, picture in enumerate(pictures(PICTURES, PICTURE_MOST))
    }
    np.savez_compressed(PROCESSED, versions=np.array(versions("transformers")), **processed)
    print(f"{len(results)} results of {versions('torchvision')}, {len(processed)} of {versions('transformers')}")


if __name__ == "__main__":
    main()
