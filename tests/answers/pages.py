"""Lines of text, rendered and photographed, read by the served pipeline's networks: ours beside PaddleOCR's own steps in OpenCV."""

from __future__ import annotations

import importlib.util
import io
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import onnxruntime
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LINES_PER_PAGE = 4
WORDS = [
    *(
        "the",
        "river",
        "carries",
        "water",
        "from",
        "reservoir",
        "turbine",
        "where",
        "steel",
        "blades",
        "turn",
        "and",
        "power",
    ),
    *(
        "Invoice",
        "Total",
        "Order",
        "Number",
        "Street",
        "March",
        "April",
        "received",
        "with",
        "thanks",
        "please",
        "return",
    ),
    *(
        "before",
        "Friday",
        "Station",
        "Platform",
        "coffee",
        "bread",
        "butter",
        "apples",
        "milk",
        "chapter",
        "figure",
        "table",
    ),
    *("pressure", "valve", "penstock", "engine", "signal", "green", "yellow", "light"),
]
_MARGIN, _LINE, _WIDTH, _FONT = 80, 90, 1100, 44


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        name: of the page.
        content: its file.
        lines: what is written on it.
    """

    name: str
    content: bytes
    lines: tuple[str, ...]


def lines_of_text(count: int, seed: int = 0) -> list[str]:
    """Return lines of words, numbers and punctuation."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        words = [str(word) for word in rng.choice(WORDS, int(rng.integers(4, 7)))]
        if number % 3 == 0:
            words.insert(int(rng.integers(1, 4)), f"{rng.integers(1, 9999):,}.{rng.integers(10, 99)}")
        line = " ".join(words)[:44].rstrip(" ,.")
        lines.append(line[0].upper() + line[1:] + (".", "!", "")[number % 3])
    return lines


def pages(count: int, photographed: bool) -> list[Page]:
    """Return pages of four lines each: as rendered, or tilted, blurred, unevenly lit and noisy as photographs are."""
    texts = lines_of_text(count * LINES_PER_PAGE)
    made = []
    for number in range(count):
        lines = tuple(texts[number * LINES_PER_PAGE : (number + 1) * LINES_PER_PAGE])
        height = 2 * _MARGIN + _LINE * len(lines)
        paper = Image.new("L", (_WIDTH, height), 235)
        draw = ImageDraw.Draw(paper)
        for row, line in enumerate(lines):
            draw.text((_MARGIN, _MARGIN + _LINE * row), line, fill=30, font=ImageFont.load_default(_FONT))
        rng = np.random.default_rng(number)
        pixels = np.asarray(paper)
        if photographed:
            paper = paper.rotate(float(rng.uniform(-3, 3)), Image.Resampling.BICUBIC, fillcolor=235)
            scale = float(rng.uniform(0.6, 1.3))
            paper = paper.resize((int(_WIDTH * scale), int(height * scale)), Image.Resampling.BICUBIC)
            blurred = paper.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.4, 1.0))))
            light = (
                np.linspace(rng.uniform(0.6, 1), 1.05, blurred.width)[None]
                * np.linspace(1.0, 0.9, blurred.height)[:, None]
            )
            pixels = (np.asarray(blurred) * light + rng.normal(0, 4, light.shape)).clip(0, 255).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).convert("RGB").save(stream, *(("JPEG",) if photographed else ("PNG",)))
        made.append(Page(f"{'photograph' if photographed else 'rendered'} {number}", stream.getvalue(), lines))
    return made


def edit_distance(a: Sequence[object], b: Sequence[object]) -> int:
    """Return how many characters or words must be inserted, removed or replaced to make one of the other."""
    row = list(range(len(b) + 1))
    for i, own in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (own != other))
    return row[-1]


# -- ours --------------------------------------------------------------------------------------------------------------


def load_pipeline(folder: Path) -> ModuleType:
    """Return the module of the model `ocr`, in its folder."""
    spec = importlib.util.spec_from_file_location("ocr_pipeline", folder / "1" / "pipeline.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ours:
    """The pipeline, one page at a time; see :class:`Reference`."""

    def __init__(self, folder: Path, num_threads: int = 1) -> None:
        settings = {"batch_size": 1, "num_threads": num_threads, "device_id": None, "prefetch_queue_depth": 1}
        self._pipeline = load_pipeline(folder).ocr(**settings)
        self._pipeline.build()

    def read(self, content: bytes) -> list[str]:
        """Return the lines of a page."""
        text, _scores, _, _ = self._pipeline.run(encoded_image=[np.frombuffer(content, np.uint8)])
        return [bytes(np.array(own)).decode() for own in text]

    def close(self) -> None:
        self._pipeline.close()


# -- the reference -----------------------------------------------------------------------------------------------------


class Reference:
    """PaddleOCR's steps by its published description, in OpenCV and numpy: what a client does that calls both networks.

    Args:
        folder: of the model `ocr`, for its networks.
        num_threads: of the networks.
    """

    def __init__(self, folder: Path, num_threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.log_severity_level = 3
        cv2.setNumThreads(num_threads)
        self._detector, self._recognizer = (
            onnxruntime.InferenceSession(
                str(folder / "1" / f"{name}.onnx"), options, providers=["CPUExecutionProvider"]
            )
            for name in ("detector", "recognizer")
        )
        self._characters = (folder / "1" / "characters.txt").read_text(encoding="utf-8").split("\n")
        self.seconds_in_networks = 0.0

    def read(self, content: bytes) -> list[str]:
        """Return the lines of a page, in reading order."""
        page = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
        return [self._recognize(line) for line in self._lines(page)]

    def _run(
        self, network: onnxruntime.InferenceSession, outputs: list[str] | None, values: np.ndarray
    ) -> list[np.ndarray]:
        began = time.process_time()
        found: list[np.ndarray] = network.run(outputs, {network.get_inputs()[0].name: values})
        self.seconds_in_networks += time.process_time() - began
        return found

    def _lines(self, page: np.ndarray) -> list[np.ndarray]:
        height, width = page.shape[:2]
        ratio = min(1.0, 960 / max(height, width))
        seen = tuple(max(round(int(extent * ratio) / 32) * 32, 32) for extent in (height, width))
        values = cv2.resize(page, seen[::-1]).astype(np.float32) / 255
        values = (values - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
        (likely,) = self._run(self._detector, None, np.ascontiguousarray(values.transpose(2, 0, 1)[None]))
        likely = likely[0, 0]
        contours, _ = cv2.findContours((likely > 0.3).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        boxes = []
        for contour in contours:
            centre, (wide, high), angle = cv2.minAreaRect(contour)
            if min(wide, high) < 3:
                continue
            mask = cv2.fillPoly(
                np.zeros(likely.shape, np.uint8), [cv2.boxPoints((centre, (wide, high), angle)).astype(np.int32)], 1
            )
            if cv2.mean(likely, mask)[0] < 0.6:
                continue
            border = wide * high * 1.6 / (2 * (wide + high))
            corners = cv2.boxPoints((centre, (wide + 2 * border, high + 2 * border), angle))
            by_x = corners[np.argsort(corners[:, 0], kind="stable")]
            left, right = by_x[:2][np.argsort(by_x[:2, 1])], by_x[2:][np.argsort(by_x[2:, 1])]
            corners = np.array([left[0], right[0], right[1], left[1]], np.float32)
            boxes.append(corners * np.array([width / seen[1], height / seen[0]], np.float32))
        boxes.sort(key=lambda own: own[:, 1].mean())
        return [self._cut(page, own) for own in boxes]

    @staticmethod
    def _cut(page: np.ndarray, corners: np.ndarray) -> np.ndarray:
        width = int(max(np.linalg.norm(corners[0] - corners[1]), np.linalg.norm(corners[2] - corners[3])))
        height = int(max(np.linalg.norm(corners[0] - corners[3]), np.linalg.norm(corners[1] - corners[2])))
        target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
        matrix = cv2.getPerspectiveTransform(corners, target)
        line = cv2.warpPerspective(
            page, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        )
        return np.rot90(line) if height >= 1.5 * width else line

    def _recognize(self, line: np.ndarray) -> str:
        height, width = line.shape[:2]
        values = cv2.resize(line, (math.ceil(48 * width / height), 48)).astype(np.float32).transpose(2, 0, 1)
        values = (values / 255 - 0.5) / 0.5
        padded = np.zeros((1, 3, 48, max(320, values.shape[2])), np.float32)
        padded[0, :, :, : values.shape[2]] = values
        (best,) = self._run(self._recognizer, ["characters"], padded)
        kept = (np.diff(best[0], prepend=-1) != 0) & (best[0] != 0)
        return "".join(self._characters[number] for number in best[0][kept])


# -- both --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The texts that both pipelines read.

    Attributes:
        lines: how many there are.
        changed: which our pipeline reads otherwise than the reference.
        errors, reference_errors: characters that are wrong, of ours and of the reference.
        characters: of all lines.
        ours_ms, reference_ms: medians of a page's processor time.
        networks: the fraction of the reference's time that is the networks'.
    """

    lines: int
    changed: int
    errors: int
    reference_errors: int
    characters: int
    ours_ms: float
    reference_ms: float
    networks: float


def compare(given: Sequence[Page], folder: Path) -> Comparison:
    """Read pages with our pipeline and with the reference, in turn."""
    ours, reference = Ours(folder), Reference(folder)
    times: tuple[list[float], list[float]] = [], []
    changed = errors = reference_errors = 0
    for page in given[:1]:
        ours.read(page.content), reference.read(page.content)
    reference.seconds_in_networks = 0.0
    for page in given:
        found = []
        for reader, own in zip((ours, reference), times):
            began = time.process_time()
            found.append(reader.read(page.content))
            own.append(time.process_time() - began)
        mine, theirs = found
        changed += max(len(mine), len(theirs)) - sum(a == b for a, b in zip(mine, theirs))
        written = "\n".join(page.lines)
        errors += edit_distance("\n".join(mine), written)
        reference_errors += edit_distance("\n".join(theirs), written)
    ours.close()
    return Comparison(
        sum(len(page.lines) for page in given),
        changed,
        errors,
        reference_errors,
        sum(len("\n".join(page.lines)) for page in given),
        1e3 * float(np.median(times[0])),
        1e3 * float(np.median(times[1])),
        reference.seconds_in_networks / sum(times[1]),
    )


def table(comparisons: Mapping[str, Comparison]) -> str:
    """Return the comparisons as a table in Markdown."""
    lines = [
        "| lines | changed answers | wrong characters, ours | the reference's | ms a page, ours | the reference's | in its networks |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for name, own in comparisons.items():
        lines.append(
            f"| {own.lines} {name} | {own.changed} | {own.errors} of {own.characters} | {own.reference_errors} | {own.ours_ms:.0f} "
            f"| {own.reference_ms:.0f} | {own.networks:.0%} |"
        )
    return "\n".join(lines)
