"""Runs golden tests with the wheel for aarch64, emulated by QEMU in user mode: `make test-aarch64`.

Python, the C library and their dependencies are Debian's packages, unpacked rather than installed; NumPy and the decoders are wheels from
PyPI. numba is left out, so that the wheel must contain every kernel that a golden case needs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "aarch64"
QEMU = "qemu-aarch64-static"
PYTHON = "3.11"
DEBIAN = [
    *(f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib"),
    *(
        "libc6",
        "libstdc++6",
        "libgcc-s1",
        "libgomp1",
        "zlib1g",
        "libexpat1",
        "libffi8",
        "libssl3",
        "libbz2-1.0",
        "liblzma5",
    ),
    *(
        "libsqlite3-0",
        "libuuid1",
        "libtinfo6",
        "libncursesw6",
        "libreadline8",
        "libdb5.3",
        "libtirpc3",
        "libnsl2",
        "libcrypt1",
    ),
]
# Python packages that the golden tests need.
WHEELS = [
    "numpy",
    "opencv-python-headless",
    "pillow",
    "simplejpeg",
    "nvidia-nvimgcodec-cu12",
    "scipy",
    "soundfile",
    "cffi",
]
WHEELS += [
    "pycparser",
    "typing_extensions",
    "cloudpickle",
    "pytest",
    "pytest-timeout",
    "iniconfig",
    "pluggy",
    "packaging",
    "pygments",
]
WHEELS += ["fsspec", "lmdb", "av", "protobuf", "pycocotools", "lz4"]
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in (17, 24, 26, 27, 28, 31, 34, 35)] + ["manylinux2014_aarch64"]
SETTINGS = "[pytest]\nmarkers =\n    timeout: of pytest-timeout\n"


def unpacked_python() -> Path:
    """Return a folder with Debian's Python for aarch64 and its dependencies; make the folder if necessary."""
    folder = BUILD / "root"
    if (folder / "complete").is_file():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    packages, state = BUILD / "packages", BUILD / "apt"
    for made in (folder, packages, state / "lists" / "partial", state / "cache" / "archives" / "partial"):
        made.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    # The package lists are in a separate folder, so that this machine's lists stay unchanged.
    apt = [
        "apt-get",
        "-qq",
        "-o",
        "APT::Architecture=arm64",
        "-o",
        "APT::Architectures=arm64",
        "-o",
        "APT::Sandbox::User=root",
    ]
    apt += [
        "-o",
        f"Dir::State::lists={state}/lists",
        "-o",
        f"Dir::State::status={state}/status",
        "-o",
        f"Dir::Cache={state}/cache",
    ]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *DEBIAN], check=True, cwd=packages)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    (folder / "complete").touch()
    return folder


def installed_packages() -> Path:
    """Return a folder in which the wheel in `dist` and its dependencies are installed; make the folder if necessary."""
    folder = BUILD / "packages-of-python"
    (wheel,) = (ROOT / "dist").glob("penstock_triton-*_aarch64.whl")
    shutil.rmtree(folder, ignore_errors=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        str(folder),
    ]
    pip += ["--python-version", PYTHON, "--only-binary=:all:", "-c", str(ROOT / "constraints.txt")]
    platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
    subprocess.run([*pip, *platforms, *WHEELS, str(wheel)], check=True)
    return folder


def main() -> int:
    """Run the golden tests; return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="only some tests, as pytest selects them")
    options = parser.parse_args()
    if not shutil.which(QEMU):
        parser.error(f"{QEMU} is not installed: apt install qemu-user-static")
    root, packages, tests = unpacked_python(), installed_packages(), BUILD / "tests"
    # The tests are copied out of the repository, from which they would import the sources instead of the wheel.
    shutil.rmtree(tests, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "golden", tests / "golden")
    (BUILD / "pytest.ini").write_text(SETTINGS)
    for helpers in ("conftest.py", "kernels/cuda"):
        source = ROOT / "tests" / helpers
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tests / helpers)
    command = [
        QEMU,
        "-L",
        str(root),
        str(root / f"usr/bin/python{PYTHON}"),
        "-m",
        "pytest",
        "-q",
        "-c",
        str(BUILD / "pytest.ini"),
    ]
    command += ["--rootdir", str(tests), "-k", options.k, str(tests / "golden" / "test_goldens.py")]
    environment = {
        "PYTHONPATH": str(packages),
        "PATH": "/usr/bin:/bin",
        "HOME": str(BUILD),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(command, env=environment, check=False, cwd=tests).returncode


if __name__ == "__main__":
    sys.exit(main())
