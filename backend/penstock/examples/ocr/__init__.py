"""A page in, its lines of text out: PP-OCRv6's detector and recognizer."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from penstock.examples.example import Example
from penstock.examples.packages import Package

_HERE = Path(__file__).parent
_DETECTOR, _RECOGNIZER = "rapidocr/models/PP-OCRv6_det_small.onnx", "rapidocr/models/PP-OCRv6_rec_small.onnx"
_MAX_PAGES, _MAX_LINES = 8, 256


def _write(repository: Path, rapidocr: ZipFile) -> None:
    from penstock.examples.network import write_model, write_network
    from penstock.examples.ocr.networks import detector, recognizer
    from penstock.serving.export import export_model

    reads_lines, characters = recognizer(rapidocr.read(_RECOGNIZER))
    write_network(repository / "ocr_detector", detector(rapidocr.read(_DETECTOR)), _MAX_PAGES)
    write_network(repository / "ocr_recognizer", reads_lines, _MAX_LINES)
    (repository / "ocr_recognizer" / "characters.txt").write_text("\n".join(characters), encoding="utf-8")
    export_model(_HERE / "detector_preprocess.py", repository / "ocr_detector_preprocess")
    # Its configuration is not derived: a trial has no boxes.
    source = _HERE / "recognizer_preprocess.py"
    write_model(repository / "ocr_recognizer_preprocess", source.with_suffix(".pbtxt"), source)
    for step in ("detect", "recognize"):
        write_model(repository / f"ocr_{step}", _HERE / f"{step}.pbtxt")


EXAMPLE = Example(
    name="ocr",
    summary="A page in, the pixels with text out; a page and boxes in, the characters of each line out (PP-OCRv6 small).",
    models=(
        "ocr_detect",
        "ocr_recognize",
        "ocr_detector_preprocess",
        "ocr_detector",
        "ocr_recognizer_preprocess",
        "ocr_recognizer",
    ),
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
