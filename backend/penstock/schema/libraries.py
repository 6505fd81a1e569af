"""Libraries that operators need in addition to NumPy and numba, and how to install them."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library that an operator needs on the CPU.

    Args:
        name: its common name.
        module: the module to import.
        package: the name of the package for pip.
        extra: the extra of this package that installs the library.
        variables: environment variables that are set before the library is loaded, unless the user has set them: names and values.
    """

    name: str
    module: str
    package: str
    extra: str
    variables: tuple[tuple[str, str], ...] = ()

    def missing(self) -> str:
        """Return why the library cannot be loaded, and how to fix that; empty if it can be loaded."""
        for variable, value in self.variables:
            os.environ.setdefault(variable, value)
        try:
            importlib.import_module(self.module)
        except (ImportError, OSError) as error:
            # OSError is raised if the shared library of a Python package is missing.
            return f"{self.name} is needed, which cannot be loaded ({error}): {self._remedy()}"
        return ""

    def _remedy(self) -> str:
        # Imported here, as this imports importlib.metadata, which programs seldom need.
        from penstock.distribution import DISTRIBUTION, first_python_without, is_left_out

        if is_left_out(self.package):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            return f"{self.package} has no wheel for Python {version} yet; use one before {first_python_without(self.package)}"
        return f"pip install {DISTRIBUTION}[{self.extra}]"


PYAV = Library("PyAV", "av", "av", "video")
SOUNDFILE = Library("soundfile", "soundfile", "soundfile", "audio")
SCIPY = Library("SciPy", "scipy.fft", "scipy", "audio")
OPENCV = Library("OpenCV", "cv2", "opencv-python-headless", "image")
LMDB = Library("lmdb", "lmdb", "lmdb", "readers")
PROTOBUF = Library("protobuf", "google.protobuf", "protobuf", "readers")
LZ4 = Library("lz4", "lz4.block", "lz4", "readers")
# Since 1.31, ONNX Runtime sends events about its use to Microsoft from Linux, too, unless this is set before it is loaded.
ONNX_RUNTIME = Library("ONNX Runtime", "onnxruntime", "onnxruntime", "models", (("ORT_DISABLE_TELEMETRY", "1"),))
ASTROPY = Library("astropy", "astropy.io.fits", "astropy", "readers")
