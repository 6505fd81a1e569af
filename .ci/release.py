"""Check what `make release` has built, date the changelog, and tag the version; nothing is pushed or uploaded.

python .ci/release.py [--dry-run]
"""

from __future__ import annotations

import argparse
import email
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "penstock_triton"
_UNRELEASED = re.compile(r"^## Unreleased\n(?P<entries>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_NO_RELEASE_YET = " Nothing has been released yet."
# Files without which the package cannot be used.
IN_WHEEL = ("penstock/__init__.py", "penstock/py.typed", "penstock/fn/__init__.pyi", "penstock/operators/index.json")
IN_SDIST = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "backend/penstock/__init__.py",
    "backend/core",
)


class ReleaseError(Exception):
    """The release cannot be made."""


@dataclass(frozen=True)
class Release:
    """A version, and its files."""

    version: str
    wheels: list[Path]
    sdist: Path

    @property
    def tag(self) -> str:
        return f"v{self.version}"


def version_of(root: Path) -> str:
    """Return the version that pyproject.toml and the package agree on."""
    declared = re.search(r'^version = "(.*)"$', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    package = (root / "backend" / "penstock" / "__init__.py").read_text(encoding="utf-8")
    if declared is None or f'__version__ = "{declared[1]}"' not in package:
        raise ReleaseError("pyproject.toml and penstock.__version__ disagree about the version")
    return declared[1]


def find_release(folder: Path, version: str, architectures: list[str]) -> Release:
    """Find a wheel for each architecture, and the source distribution.

    Raises:
        ReleaseError: an archive is missing, or its metadata or contents are wrong.
    """
    wheels = []
    for architecture in architectures:
        found = list(folder.glob(f"{NAME}-{version}-py3-none-manylinux*_{architecture}.whl"))
        if len(found) != 1:
            raise ReleaseError(
                f"{folder} has {len(found)} wheels of {version} for {architecture}; `make wheels` builds one"
            )
        wheels += found
    sdist = folder / f"{NAME}-{version}.tar.gz"
    if not sdist.is_file():
        raise ReleaseError(f"{sdist} is missing")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            _check_contents(wheel, set(archive.namelist()), IN_WHEEL)
            metadata = archive.read(f"{NAME}-{version}.dist-info/METADATA").decode()
        _check_metadata(wheel, metadata, version)
    with tarfile.open(sdist) as sources:
        top = f"{NAME}-{version}/"
        _check_contents(sdist, {name.removeprefix(top) for name in sources.getnames()}, IN_SDIST)
        file = sources.extractfile(f"{top}PKG-INFO")
        assert file is not None
        _check_metadata(sdist, file.read().decode(), version)
    return Release(version, wheels, sdist)


def _check_contents(path: Path, names: set[str], needed: tuple[str, ...]) -> None:
    missing = [name for name in needed if name not in names]
    if missing:
        raise ReleaseError(f"{path.name} lacks {', '.join(missing)}")


def _check_metadata(path: Path, text: str, version: str) -> None:
    metadata = email.message_from_string(text)
    named = (metadata["Name"], metadata["Version"])
    if named != (NAME.replace("_", "-"), version):
        raise ReleaseError(f"{path.name} is {named[0]} {named[1]} by its metadata")


def dated_changelog(text: str, version: str, date: str) -> str:
    """Return the changelog with the entries under "Unreleased" moved under a version.

    Raises:
        ReleaseError: there are no changes, or the version has a section already.
    """
    unreleased = _UNRELEASED.search(text)
    if unreleased is None or not unreleased["entries"].strip():
        raise ReleaseError('CHANGELOG.md has nothing under "Unreleased"')
    if re.search(rf"^## {re.escape(version)} ", text, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has a section for {version} already")
    section = f"## Unreleased\n\n## {version} - {date}\n{unreleased['entries']}"
    return (text[: unreleased.start()] + section + text[unreleased.end() :]).replace(_NO_RELEASE_YET, "")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Make the release, or print why not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="check everything, and change nothing")
    parser.add_argument("--architectures", nargs="+", default=["x86_64", "aarch64"], metavar="NAME")
    options = parser.parse_args()
    try:
        version = version_of(ROOT)
        release = find_release(ROOT / "dist", version, options.architectures)
        files = [*map(str, release.wheels), str(release.sdist)]
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)
        changelog = ROOT / "CHANGELOG.md"
        date = datetime.now(UTC).date().isoformat()
        text = dated_changelog(changelog.read_text(encoding="utf-8"), version, date)
        if git("tag", "--list", release.tag):
            raise ReleaseError(f"the tag {release.tag} exists")
        if changed := git("status", "--porcelain"):
            raise ReleaseError(f"the working tree has changes:\n{changed}")
    except (ReleaseError, subprocess.CalledProcessError) as error:
        sys.exit(f"release: {error}")
    if options.dry_run:
        print(f"release: would date the changelog {date}, commit it, and tag {release.tag}")
        return
    changelog.write_text(text, encoding="utf-8")
    git("commit", "--quiet", "--message", f"release: {version}", "CHANGELOG.md")
    git("tag", "--annotate", release.tag, "--message", f"Penstock {version}")
    print(f"release: tagged {release.tag}; push it, and upload {' '.join(file.rpartition('/')[2] for file in files)}")


if __name__ == "__main__":
    main()
