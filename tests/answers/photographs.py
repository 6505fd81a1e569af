"""Counts how many of a classifier's answers to photographs depend on the library that resizes the photographs.

The network is MobileNetV2, as `penstock examples add imagenet` writes it. The preprocessing is torchvision's: the shorter side is
resized to 256 pixels, with antialiasing, and the middle is cropped. The inputs are photographs, and the four quarters of each
photograph.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
import torch
from PIL import Image

from penstock import fn, pipeline_def

ROOT = Path(__file__).resolve().parents[2]
PHOTOGRAPHS = ROOT / "client_examples" / "photographs"
DALI_PYTHON = ROOT / ".venv-conformance" / "bin" / "python"
SHORTER, SIDE = 256, 224
MEAN, STD = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
_DALI = """
import sys
import numpy as np
from nvidia.dali import fn, pipeline_def
pictures = list(np.load(sys.argv[1]).values())
resize = dict(resize_shorter=256, antialias=sys.argv[3] == "antialias")
@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipe():
    return fn.resize(fn.external_source(lambda info: pictures[info.idx_in_epoch % len(pictures)], batch=False, layout="HWC"), **resize)
pipeline = pipe()
pipeline.build()
np.savez(sys.argv[2], *[np.array(pipeline.run()[0][0]) for _ in pictures])
"""

Resize = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """The network's answers to images that one library resized.

    Attributes:
        best: the most likely class of each image, int64 of shape (images,).
        right: how many of the labelled photographs were classified correctly.
        pixels: the fraction of pixel values that differ from those of the reference library.
        top5: the five most likely classes of each image, the most likely first.
    """

    best: np.ndarray
    right: int
    pixels: float
    top5: np.ndarray


def pictures(folders: Sequence[Path], quarters: bool = True) -> dict[str, np.ndarray]:
    """Return the photographs in folders and, with ``quarters``, the four quarters of each, as RGB arrays by name."""
    found: dict[str, np.ndarray] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.jpg")):
            array = np.asarray(Image.open(path).convert("RGB"))
            found[path.stem] = array
            rows, columns = array.shape[0] // 2, array.shape[1] // 2
            if quarters and min(rows, columns) >= SIDE // 2:
                for row in range(2):
                    for column in range(2):
                        part = array[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]
                        found[f"{path.stem} {row}{column}"] = np.ascontiguousarray(part)
    return found


def _size(picture: np.ndarray) -> tuple[int, int]:
    """Return the height and width after resizing the smaller side to 256, rounded as by torchvision."""
    height, width = picture.shape[:2]
    short = min(height, width)
    return (int(SHORTER * height / short), int(SHORTER * width / short))


def _torch(antialias: bool) -> Resize:
    def resize(picture: np.ndarray) -> np.ndarray:
        # torchvision calls this function for tensors.
        values = torch.from_numpy(picture.copy()).permute(2, 0, 1)[None]
        done = torch.nn.functional.interpolate(
            values, _size(picture), mode="bilinear", align_corners=False, antialias=antialias
        )
        return done[0].permute(1, 2, 0).numpy()

    return resize


def _opencv(interpolation: int) -> Resize:
    return lambda picture: cv2.resize(picture, _size(picture)[::-1], interpolation=interpolation)


def _pillow(picture: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(picture).resize(_size(picture)[::-1], Image.Resampling.BILINEAR))


LIBRARIES: Mapping[str, Resize] = {
    "torchvision, tensors": _torch(True),
    "torchvision, PIL images (Pillow)": _pillow,
    "torchvision, tensors, `antialias=False`": _torch(False),
    "OpenCV, `INTER_LINEAR`": _opencv(cv2.INTER_LINEAR),
    "OpenCV, `INTER_AREA`": _opencv(cv2.INTER_AREA),
    "OpenCV, `INTER_CUBIC`": _opencv(cv2.INTER_CUBIC),
}


def ours(given: Sequence[np.ndarray], reference: str | None) -> list[np.ndarray]:
    """Return the images, resized by Penstock's pipeline."""

    @pipeline_def(batch_size=16, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> object:
        images = fn.external_source(name="images", layout="HWC")
        if reference is None:
            return fn.resize(images, resize_shorter=SHORTER)
        return fn.resize(images, resize_shorter=SHORTER, reference=reference, interpolation="bilinear")

    with pipe() as pipeline:
        batches = [pipeline.run(images=list(given[i : i + 16]))[0] for i in range(0, len(given), 16)]
        return [np.array(sample) for batch in batches for sample in batch]


def dali(given: Sequence[np.ndarray], folder: Path, antialias: bool) -> list[np.ndarray] | None:
    """Return the images, resized by DALI on the CPU in a separate environment; None if there is no such environment."""
    if not DALI_PYTHON.exists():
        return None
    np.savez(folder / "pictures.npz", *given)
    script = [str(DALI_PYTHON), "-c", _DALI, str(folder / "pictures.npz"), str(folder / "resized.npz")]
    subprocess.run([*script, "antialias" if antialias else "plain"], check=True)
    with np.load(folder / "resized.npz") as resized:
        return list(resized.values())


def crop(resized: np.ndarray) -> np.ndarray:
    """Return the middle of an image, at the position to which torchvision rounds."""
    top, left = (round((extent - SIDE) / 2) for extent in resized.shape[:2])
    return resized[top : top + SIDE, left : left + SIDE]


class Classifier:
    """MobileNetV2 in ONNX Runtime.

    Args:
        folder: the folder of the model `mobilenet_v2_classifier`.
    """

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._network = onnxruntime.InferenceSession(
            str(folder / "1" / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.labels = (folder / "probabilities.txt").read_text().splitlines()

    def top5(self, crops: Sequence[np.ndarray]) -> np.ndarray:
        """Return the five most likely classes of each crop, uint8 of shape (224, 224, 3), the most likely first."""
        found = []
        for pixels in crops:
            values = ((pixels.astype(np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)[None]
            (probabilities,) = self._network.run(["probabilities"], {"image": np.ascontiguousarray(values)})
            found.append(np.argsort(-probabilities[0], kind="stable")[:5])
        return np.array(found)


def compare(classifier: Classifier, given: Mapping[str, np.ndarray], folder: Path) -> dict[str, Outcome]:
    """Return the network's answers after resizing by each library, by the library's name; the reference is first."""
    arrays = list(given.values())
    resized: dict[str, list[np.ndarray] | None] = {
        name: [resize(array) for array in arrays] for name, resize in LIBRARIES.items()
    }
    resized['Penstock, `reference="torchvision"`'] = ours(arrays, "torchvision")
    resized['Penstock, `reference="pil"`'] = ours(arrays, "pil")
    resized["Penstock as DALI"] = ours(arrays, None)
    resized["DALI"] = dali(arrays, folder, True)
    resized["DALI, `antialias=False`"] = dali(arrays, folder, False)
    labelled = {name: path.stem.replace("-", " ").lower() for path in PHOTOGRAPHS.glob("*.jpg") for name in [path.stem]}
    reference: list[np.ndarray] | None = None
    outcomes = {}
    for name, own in resized.items():
        if own is None:
            continue
        crops = [crop(array) for array in own]
        reference = crops if reference is None else reference
        top5 = classifier.top5(crops)
        pixels = sum(int((a != b).sum()) for a, b in zip(crops, reference)) / sum(a.size for a in crops)
        right = sum(
            classifier.labels[top5[number][0]].lower() == labelled[title]
            for number, title in enumerate(given)
            if title in labelled
        )
        outcomes[name] = Outcome(top5[:, 0], right, pixels, top5)
    return outcomes


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Return a table in Markdown, with a row for each library."""
    first = next(iter(outcomes.values()))
    lines = [
        "| resized by | pixels that differ | changed answers | changed among the five best | labelled photographs right |"
    ]
    lines.append("| --- | --- | --- | --- | --- |")
    count = len(first.best)
    for name, own in outcomes.items():
        changed, five = int((own.best != first.best).sum()), int((own.top5 != first.top5).any(axis=1).sum())
        lines.append(f"| {name} | {own.pixels:.1%} | {changed} of {count} | {five} | {own.right} |")
    return "\n".join(lines)
