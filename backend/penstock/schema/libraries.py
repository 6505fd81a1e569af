"""Libraries that operators need beside numpy and numba, and how to install them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library that an operator cannot do without on the CPU.

    Args:
        name: as its users call it.
        module: as it is imported.
        install: what pip installs.
    """

    name: str
    module: str
    install: str

    def missing(self) -> str:
        """Why it cannot be loaded, and what to do about it; empty where it can."""
        try:
            importlib.import_module(self.module)
        except (ImportError, OSError) as error:
            # OSError: a Python package that finds no shared library.
            return f"{self.name} is needed, which cannot be loaded ({error}): pip install {self.install}"
        return ""


PYAV = Library("PyAV", "av", "penstock[video]")
SOUNDFILE = Library("soundfile", "soundfile", "penstock[audio]")
SCIPY = Library("SciPy", "scipy.fft", "penstock[audio]")
OPENCV = Library("OpenCV", "cv2", "penstock[image]")
LMDB = Library("lmdb", "lmdb", "penstock[readers]")
PROTOBUF = Library("protobuf", "google.protobuf", "penstock[readers]")
LZ4 = Library("lz4", "lz4.block", "penstock[readers]")
ASTROPY = Library("astropy", "astropy.io.fits", "penstock[readers]")
