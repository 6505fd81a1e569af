"""Compares the texts that the served pipeline and PaddleOCR's steps in OpenCV read on rendered and photographed pages.

Both use the same networks.
"""

from __future__ import annotations

import importlib.util
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import onnxruntime
from paddle_ocr import PageReader
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
    """A page with known text.

    Attributes:
        name: the page's name.
        content: the page as an encoded image.
        lines: the lines of text on the page.
    """

    name: str
    content: bytes
    lines: tuple[str, ...]


def lines_of_text(count: int, seed: int = 0) -> list[str]:
    """Return ``count`` lines of random words, numbers and punctuation."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        words = [str(word) for word in rng.choice(WORDS, int(rng.integers(4, 7)))]
        if number % 3 == 0:
            words.insert(int(rng.integers(1, 4)), f"{rng.integers(1, 9999):,}.{rng.integers(10, 99)}")
        line = " ".join(words)[:44].rstrip(" ,.")
        lines.append(line[0].upper() + line[1:] + (".", "!", "")[number % 3])
    return lines


def pages(count: int, photographed: bool, lines_per_page: int = LINES_PER_PAGE) -> list[Page]:
    """Return ``count`` different pages: as rendered or, if ``photographed``, tilted, blurred, unevenly lit and noisy."""
    texts = lines_of_text(count * lines_per_page)
    made = []
    for number in range(count):
        lines = tuple(texts[number * lines_per_page : (number + 1) * lines_per_page])
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
    """Return how many characters or words must be inserted, removed or replaced to turn one text into the other."""
    row = list(range(len(b) + 1))
    for i, own in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (own != other))
    return row[-1]


# -- Penstock --------------------------------------------------------------------------------------------------------------


def load_pipeline(folder: Path) -> ModuleType:
    """Return the module `pipeline.py` of the model `ocr`, whose folder is ``folder``."""
    spec = importlib.util.spec_from_file_location("ocr_pipeline", folder / "1" / "pipeline.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ours:
    """Reads one page at a time with Penstock's pipeline; takes the same arguments as :class:`Reference`."""

    def __init__(self, folder: Path, num_threads: int = 1) -> None:
        settings = {"batch_size": 1, "num_threads": num_threads, "device_id": None, "prefetch_queue_depth": 1}
        self._pipeline = load_pipeline(folder).ocr(**settings)
        self._pipeline.build()

    def read(self, content: bytes) -> list[str]:
        """Return the text of each line of a page."""
        text, _scores, _, _ = self._pipeline.run(encoded_image=[np.frombuffer(content, np.uint8)])
        return [bytes(np.array(own)).decode() for own in text]

    def close(self) -> None:
        self._pipeline.close()


# -- the reference -----------------------------------------------------------------------------------------------------


class Reference:
    """Reads pages by PaddleOCR's published description of its steps, with the same networks in ONNX Runtime.

    Args:
        folder: the folder of the model `ocr`, which contains the networks.
        num_threads: the number of threads of each network.
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
        self.seconds_in_networks = 0.0
        self.read = PageReader(
            lambda image: self._run(self._detector, None, image)[0, 0],
            lambda lines: self._run(self._recognizer, ["characters"], lines),
            characters(folder),
        ).read

    def _run(self, network: onnxruntime.InferenceSession, outputs: list[str] | None, values: np.ndarray) -> np.ndarray:
        began = time.process_time()
        found: np.ndarray = network.run(outputs, {network.get_inputs()[0].name: values})[0]
        self.seconds_in_networks += time.process_time() - began
        return found


def characters(folder: Path) -> list[str]:
    """Return the characters that the recognizer of the model `ocr` knows."""
    return (folder / "1" / "characters.txt").read_text(encoding="utf-8").split("\n")


# -- the comparison --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The texts that Penstock's pipeline and the reference read, compared.

    Attributes:
        lines: the number of lines on all pages.
        changed: the number of lines that our pipeline reads differently from the reference.
        errors, reference_errors: the number of characters that our pipeline and the reference got wrong.
        characters: the number of characters on all pages.
        ours_ms, reference_ms: the median processor time for a page, in milliseconds.
        networks: the fraction of the reference's processor time that is spent in the networks.
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
    """Read each page with our pipeline and with the reference, and compare the texts."""
    ours, reference = Ours(folder), Reference(folder)
    times: tuple[list[float], list[float]] = [], []
    changed = errors = reference_errors = 0
    readers: list[Callable[[bytes], list[str]]] = [ours.read, reference.read]
    for page in given[:1]:
        for read in readers:
            read(page.content)
    reference.seconds_in_networks = 0.0
    for page in given:
        found = []
        for read, own in zip(readers, times):
            began = time.process_time()
            found.append(read(page.content))
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
    """Return a table in Markdown, with a row for each named comparison."""
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
