"""Packages on PyPI, as archives to read: they are neither installed nor executed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from penstock.errors import PenstockError

_TIMEOUT_SECONDS = 300.0


class ExampleError(PenstockError):
    """Raised if an example does not exist, or cannot be added."""


@dataclass(frozen=True)
class Package:
    """A wheel that is verified by its hash.

    Attributes:
        name, version: the package's name and version on PyPI.
        sha256: the SHA-256 of the wheel.
        license: the license of the files that the example uses.
        megabytes: the size of the wheel, in MB.
    """

    name: str
    version: str
    sha256: str
    license: str
    megabytes: float

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.megabytes:g} MB, {self.license})"

    def download(self, folder: Path) -> ZipFile:
        """Download the wheel and open it; use pip, which knows the user's index and proxy.

        Args:
            folder: the folder to download to.

        Raises:
            ExampleError: the wheel cannot be downloaded, or has the wrong hash.
        """
        requirements = folder / f"{self.name}.txt"
        requirements.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n")
        target = folder / self.name
        # Wheels only: for a source distribution, pip would execute the package's code.
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--retries",
            "1",
        ]
        command += [
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "-r",
            str(requirements),
            "-d",
            str(target),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ExampleError(
                f"{self} could not be downloaded within {_TIMEOUT_SECONDS:g} seconds: is the package index reachable?"
            ) from error
        if done.returncode:
            reasons = [
                line for line in done.stderr.splitlines() if line.startswith("ERROR")
            ] or done.stderr.splitlines()
            raise ExampleError("\n  ".join([f"{self} could not be downloaded:", *reasons[-8:]]))
        (path,) = target.iterdir()
        return ZipFile(path)
