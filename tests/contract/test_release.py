"""`make release` refuses incomplete releases, and dates the changelog."""

from __future__ import annotations

import importlib.util
import io
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = "# Changelog\n\nAll. Nothing has been released yet.\n\n## Unreleased\n\n### Added\n\n- A thing.\n"
METADATA = "Metadata-Version: 2.4\nName: penstock-triton\nVersion: {}\n\n"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release"] = module  # `dataclass` looks for its module there
    spec.loader.exec_module(module)
    return module


release = load_script()


def build(folder: Path, version: str = "1.2.3", stated: str = "1.2.3", leave_out: str = "") -> None:
    name = f"penstock_triton-{version}"
    with zipfile.ZipFile(folder / f"{name}-py3-none-manylinux_2_28_x86_64.whl", "w") as wheel:
        for path in release.IN_WHEEL:
            if path != leave_out:
                wheel.writestr(path, "")
        wheel.writestr(f"{name}.dist-info/METADATA", METADATA.format(stated))
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as sources:
        for path, text in {**dict.fromkeys(release.IN_SDIST, ""), "PKG-INFO": METADATA.format(stated)}.items():
            if path != leave_out:
                entry = tarfile.TarInfo(f"{name}/{path}")
                entry.size = len(text)
                sources.addfile(entry, io.BytesIO(text.encode()))


def test_a_complete_release_is_found(tmp_path: Path) -> None:
    build(tmp_path)
    found = release.find_release(tmp_path, "1.2.3", ["x86_64"])
    assert found.tag == "v1.2.3"
    assert [path.suffix for path in (*found.wheels, found.sdist)] == [".whl", ".gz"]


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        ({"version": "1.2.2"}, "has 0 wheels of 1.2.3 for x86_64"),
        ({"stated": "1.2.2"}, "is penstock-triton 1.2.2 by its metadata"),
        ({"leave_out": "penstock/py.typed"}, "lacks penstock/py.typed"),
        ({"leave_out": "backend/core"}, "lacks backend/core"),
    ],
)
def test_an_incomplete_release_is_refused(built: dict[str, str], reason: str, tmp_path: Path) -> None:
    build(tmp_path, **built)
    with pytest.raises(release.ReleaseError, match=reason):
        release.find_release(tmp_path, "1.2.3", ["x86_64"])


def test_a_wheel_is_needed_for_each_architecture(tmp_path: Path) -> None:
    build(tmp_path)
    with pytest.raises(release.ReleaseError, match="has 0 wheels"):
        release.find_release(tmp_path, "1.2.3", ["x86_64", "aarch64"])


def test_the_source_distribution_has_what_exists() -> None:
    assert [path for path in release.IN_SDIST if not (ROOT / path).exists()] == []


def test_entries_move_under_the_version() -> None:
    assert release.dated_changelog(CHANGELOG, "0.1.0", "2026-12-01") == (
        "# Changelog\n\nAll.\n\n## Unreleased\n\n## 0.1.0 - 2026-12-01\n\n### Added\n\n- A thing.\n"
    )


@pytest.mark.parametrize(
    ("changelog", "reason"),
    [
        ("# Changelog\n", "nothing under"),
        ("# Changelog\n\n## Unreleased\n\n## 0.0.1 - 2026-01-01\n", "nothing under"),
        (CHANGELOG + "\n## 0.1.0 - 2026-01-01\n", "already"),
    ],
)
def test_a_changelog_without_entries_or_with_the_version_is_refused(changelog: str, reason: str) -> None:
    with pytest.raises(release.ReleaseError, match=reason):
        release.dated_changelog(changelog, "0.1.0", "2026-12-01")


def test_this_project_agrees_about_its_version() -> None:
    version = release.version_of(ROOT)
    assert f"## {version} - " in release.dated_changelog((ROOT / "CHANGELOG.md").read_text(), version, "2026-12-01")
