"""Reads the lines of text on a page: PP-OCRv6's detector and recognizer in one pipeline."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from penstock.examples.example import Example
from penstock.examples.packages import Package

_HERE = Path(__file__).parent
_DETECTOR, _RECOGNIZER = "rapidocr/models/PP-OCRv6_det_small.onnx", "rapidocr/models/PP-OCRv6_rec_small.onnx"


def _write(repository: Path, rapidocr: ZipFile) -> None:
    from penstock.examples.network import write_model
    from penstock.examples.ocr.networks import recognizer

    # The configuration is written by hand. It cannot be derived from a trial run, whose generated image contains no text.
    write_model(repository / "ocr", _HERE / "config.pbtxt", _HERE / "pipeline.py")
    version = repository / "ocr" / "1"
    network, characters = recognizer(rapidocr.read(_RECOGNIZER))
    (version / "detector.onnx").write_bytes(rapidocr.read(_DETECTOR))
    (version / "recognizer.onnx").write_bytes(network)
    (version / "characters.txt").write_text("\n".join(characters), encoding="utf-8")


EXAMPLE = Example(
    name="ocr",
    summary="A page in, its lines of text out: detector, crops, recognizer and decoding in one pipeline (PP-OCRv6 small).",
    models=("ocr",),
    packages=(
        Package(
            name="rapidocr",
            version="3.10.0",
            sha256="2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
            license="Apache-2.0",
            megabytes=27.3,
        ),
    ),
    write=_write,
)
