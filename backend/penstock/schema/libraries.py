"""Libraries that operators need in addition to numpy and numba, and how to install them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library that an operator needs on the CPU.

    Args:
        name: its common name.
        module: to import.
        install: for pip.
    """

    name: str
    module: str
    install: str

    def missing(self) -> str:
        """Why it cannot be loaded, and how to fix that; empty if it can."""
        try:
            importlib.import_module(self.module)
        except (ImportError, OSError) as error:
            # OSError: a Python package whose shared library is missing.
            return f"{self.name} is needed, which cannot be loaded ({error}): pip install {self.install}"
        return ""


PYAV = Library("PyAV", "av", "penstock-triton[video]")
SOUNDFILE = Library("soundfile", "soundfile", "penstock-triton[audio]")
SCIPY = Library("SciPy", "scipy.fft", "penstock-triton[audio]")
OPENCV = Library("OpenCV", "cv2", "penstock-triton[image]")
LMDB = Library("lmdb", "lmdb", "penstock-triton[readers]")
PROTOBUF = Library("protobuf", "google.protobuf", "penstock-triton[readers]")
LZ4 = Library("lz4", "lz4.block", "penstock-triton[readers]")
ASTROPY = Library("astropy", "astropy.io.fits", "penstock-triton[readers]")
