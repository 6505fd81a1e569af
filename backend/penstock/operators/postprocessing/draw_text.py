"""`draw_text`: labels on images."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from penstock.data_types import FLOAT, INT32, UINT8, dtype_name
from penstock.operators.postprocessing._axis import names_of
from penstock.operators.postprocessing._drawing import GLYPH_HEIGHT, check_channels, check_colours, colours_of, edges_of
from penstock.operators.postprocessing._rows import check_type, firsts_of
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, ExampleSamples, fixed_arrays, photos
from penstock.schema.operator import Shape
from penstock.schema.sharing import share
from penstock.tensors.places import places_of_samples

# The font 9x18 of X11, which is in the public domain; tests/operators/postprocessing/record_font.py wrote the file.
_FONT = Path(__file__).with_name("font_9x18.npz")
_NO_CHARACTER = 0xFFFD
_FIRST_BEYOND_ASCII = 0x80


def _boxes(layout: str = "") -> ExampleSamples:
    def make(index: int) -> np.ndarray:
        count = (2, 1, 3)[index % 3]
        corners = np.random.default_rng([index, 9]).uniform(0, 8, (count, 2))
        return np.hstack([corners, corners + np.array([8, 6])]).astype(np.float32)

    return ExampleSamples(make, bad=np.zeros((2, 3), np.float32))


def _texts(layout: str = "") -> ExampleSamples:
    def make(index: int) -> np.ndarray:
        return names_of([("a", "Ü"), ("ab",), ("i", "", "l")][index % 3])

    return ExampleSamples(make)


def _scores(layout: str = "") -> ExampleSamples:
    return ExampleSamples(lambda index: np.linspace(0.2, 0.9, (2, 1, 3)[index % 3], dtype=np.float32))


def _shown_texts(layout: str = "") -> ExampleSamples:
    return ExampleSamples(lambda index: names_of(["sky", "déjà vu"]))


@register_operator
class DrawText(Operator):
    """Draws texts on images, such as the names of what was detected; later texts cover earlier ones.

    If positions are boxes, a text is drawn above its box, or inside at the upper edge if there is no room above; if they are
    points, below and to the right of its point. Coordinates are rounded as by :func:`draw_boxes`. A text that does not fit
    into the image is cut off. If the texts are labels, the label selects the colour, cyclically; otherwise the first colour
    is used.

    The font is X11's 9x18, a bitmap of 9 by 18 pixels for each of 4,766 characters: Latin, Greek, Cyrillic, Hebrew, Georgian and
    others, but not Chinese, Japanese or Korean ones, which are drawn as a replacement character. A sample fails if a text is not
    UTF-8, a label has no name, a coordinate is NaN, or a score is not finite.

    >>> shown = fn.draw_text(fn.draw_boxes(images, boxes, labels), boxes, labels, scores, names=["cat", "dog"])
    >>> shown = fn.draw_text(pages, corners[:, 0], texts, colors=[255, 0, 0])
    """

    schema = Schema(
        name="DrawText",
        inputs=(
            Input("images", ("HWC",), doc="Images of uint8."),
            Input(
                "positions",
                doc="Boxes (left, top, right, bottom) of shape (texts, 4), or points (x, y) of shape (texts, 2); numbers, in pixels.",
                example=_boxes,
            ),
            Input(
                "texts",
                doc="Strings: UINT8 of shape (texts, length), each row padded with zeros, or a single one of shape (length,). With "
                "`names`, labels: INT32 of shape (texts,).",
                example=_texts,
            ),
            Input("scores", doc="FLOAT of shape (texts,), shown after the texts as percentages.", example=_scores),
        ),
        min_inputs=3,
        arguments=(
            Argument(
                "background",
                "int32[]",
                None,
                "A colour, or several, of the rectangles behind texts; by default there are none.",
                example=[255, 0, 0, 0, 160, 255],
            ),
            Argument(
                "colors",
                "int32[]",
                [255, 255, 255],
                "A colour, or several in one list: a value from 0 to 255 for each channel.",
                example=[255, 255, 0, 0, 0, 0],
            ),
            Argument(
                "names",
                "string[]",
                None,
                "The text of each label.",
                exempt="the example's texts are strings",
            ),
            Argument("scale", "int32", 1, "The factor by which characters of 9 by 18 pixels are enlarged.", example=2),
        ),
        examples=(Example(), Example({"background": [0, 0, 255]})),
        shown=(
            Example(
                {"background": [200, 0, 0]},
                (
                    photos,
                    fixed_arrays([[20, 40, 120, 140], [100, 70, 220, 110]]),
                    _shown_texts,
                    fixed_arrays([0.98, 0.5]),
                ),
            ),
        ),
        equivalents=(
            Equivalent("cv2.putText", "Draws another font, which has only Latin letters before OpenCV 5."),
            Equivalent("torchvision.utils.draw_bounding_boxes", "Draws boxes and labels, with a font of the system."),
        ),
    )

    def setup(self) -> None:
        check_colours("colors", self.args["colors"])
        if self.args["background"] is not None:
            check_colours("background", self.args["background"])
        if self.args["scale"] < 1:
            raise ValueError(f"`scale` must be 1 or more. Got: {self.args['scale']}")
        names = self.args["names"]
        self._names = None if names is None else [glyphs_of(name) for name in names]

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        images, _, texts, *scores = workspace.inputs
        if len(images) and images.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8, got {dtype_name(images.dtype)}")
        if len(texts) and self._names is None and texts.dtype != UINT8:
            raise RuntimeError(f"Texts must be UINT8, got {dtype_name(texts.dtype)}: to draw labels, pass `names`")
        if self._names is not None:
            check_type(workspace, 2, "texts", INT32)
        if scores:
            check_type(workspace, 3, "scores", FLOAT)
        return [OutputSpec(UINT8, self.input_layout(workspace), 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        image, positions, texts, *scores = sample.shapes
        if len(positions) != 2 or positions[1] not in (2, 4):
            raise ValueError(f"Positions must have the shape (texts, 2) or (texts, 4). Got: {list(positions)}")
        if self._names is not None and len(texts) != 1:
            raise ValueError(f"Labels must have the shape (texts,). Got: {list(texts)}")
        if self._names is None and len(texts) not in (1, 2):
            raise ValueError(f"Strings must have the shape (texts, length) or (length,). Got: {list(texts)}")
        count = 1 if self._names is None and len(texts) == 1 else texts[0]
        if count != positions[0]:
            raise ValueError(f"There are {positions[0]} positions for {count} texts")
        if scores and scores[0] != positions[:1]:
            raise ValueError(f"Scores must have the shape (texts,). Got: {list(scores[0])} for {positions[0]} texts")
        for name in ("colors", "background"):
            if self.args[name] is not None:
                check_channels(name, self.args[name], image[2])
        return image

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        if not self._draw_together(workspace):
            super().compute_samples(workspace, shapes)

    def _draw_together(self, workspace: Workspace) -> bool:
        """Draw the texts of all samples in one call; return whether they suit it."""
        from penstock.operators.postprocessing._draw_text_cpu import draw_texts_of_batch

        pictures, positions, texts, *scores = workspace.inputs
        if workspace.failures or not workspace.batch_size:
            return False
        channels = {shape[2] for shape in pictures.shapes}
        sources, targets = places_of_samples(pictures), places_of_samples(workspace.outputs[0])
        if len(channels) > 1 or sources is None or targets is None:
            return False
        if any(len(set(widths)) > 1 for widths in zip(*(shape[1:] for shape in positions.shapes))):
            return False
        rows = texts.samples if self._names is not None else _of_equal_length(texts.samples)
        joined = (
            np.concatenate(positions.samples),
            np.concatenate(rows),
            *(np.concatenate(own.samples) for own in scores),
        )
        try:
            drawn = self._texts(*joined)
        except ValueError:
            # Drawn one by one, the sample at fault fails.
            return False
        ends = np.fromiter((shape[0] for shape in positions.shapes), np.int64, len(positions)).cumsum()
        table = np.empty((len(targets), 7), np.int64)
        table[:, 0], table[:, 1], table[:, 2:5] = sources, targets, pictures.shapes
        table[0, 5], table[1:, 5], table[:, 6] = 0, ends[:-1], ends
        colours, backgrounds = self._colours(channels.pop(), drawn.labels)
        scale = self.args["scale"]
        share(
            workspace,
            lambda begin, end: draw_texts_of_batch(
                table, _font()[1], drawn.glyphs, drawn.firsts, drawn.corners, colours, backgrounds, scale, begin, end
            ),
            pictures.sample_volumes(),
        )
        return True

    def compute(self, sample: Sample) -> None:
        from penstock.operators.postprocessing._draw_text_cpu import draw_texts

        image, *texts = sample.inputs
        drawn, target = self._texts(*texts), sample.outputs[0]
        np.copyto(target, image)
        colours = self._colours(image.shape[2], drawn.labels)
        draw_texts(_font()[1], drawn.glyphs, drawn.firsts, drawn.corners, *colours, self.args["scale"], target)

    def _colours(self, channels: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the colours of texts and of their backgrounds, of which there may be none."""
        background = self.args["background"]
        none = np.empty((0, channels), np.uint8)
        return (
            colours_of(self.args["colors"], channels, labels),
            none if background is None else colours_of(background, channels, labels),
        )

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.operators.postprocessing._drawing_cuda import Texts, draw_texts, pictures_of

        images, *texts = workspace.inputs
        on_host = [batch.as_cpu().samples for batch in texts]
        made = {}
        for index in workspace.live_indices:
            try:
                made[index] = self._texts(*(batch[index] for batch in on_host))
            except ValueError as error:
                workspace.fail(index, error)
        counts = np.array([len(texts.labels) for texts in made.values()], np.int64)
        for channels, group in pictures_of(images, workspace.outputs[0], list(made), counts):
            own = [made[index] for index in group.indices.tolist()]
            labels = np.concatenate([texts.labels for texts in own])
            colours, inks = _indexed(self.args["colors"], channels, labels)
            papers = np.full(len(labels), -1)
            if self.args["background"] is not None:
                backgrounds, papers = _indexed(self.args["background"], channels, labels)
                colours, papers = np.concatenate([colours, backgrounds]), papers + len(colours)
            drawn = Texts(
                _font()[1][np.concatenate([texts.glyphs for texts in own])],
                firsts_of(np.concatenate([np.diff(texts.firsts) for texts in own])),
                np.concatenate([texts.corners for texts in own]),
                inks,
                papers,
                colours,
                self.args["scale"],
            )
            draw_texts(group, drawn)

    def _texts(self, positions: np.ndarray, texts: np.ndarray, *scores: np.ndarray) -> _Texts:
        """Return texts in the form that kernels take.

        Raises:
            ValueError: a text is not UTF-8, a label has no name, a score is not finite, or a coordinate is NaN.
        """
        glyphs, lengths = self._glyphs(texts, *scores)
        edges, tall = edges_of(positions, "Position"), GLYPH_HEIGHT * self.args["scale"]
        corners = edges[:, :2].copy()
        if edges.shape[1] == 4:
            # Draw the text above the box, if there is room.
            corners[:, 1] -= np.where(corners[:, 1] >= tall, tall, 0)
        labels = np.zeros(len(lengths), np.int64) if self._names is None else texts
        return _Texts(glyphs, firsts_of(lengths), corners, labels)

    def _glyphs(self, texts: np.ndarray, *scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the glyphs of all texts, one after the other, and the number of each text's glyphs."""
        if self._names is None and not scores:
            rows = np.atleast_2d(texts)
            if rows.size and rows.max() < _FIRST_BEYOND_ASCII:
                places = np.arange(rows.shape[1])
                lengths = np.where(rows, places + 1, 0).max(axis=1)
                return _font()[0][rows[places < lengths[:, None]]], lengths
        lines = self._lines(texts)
        if scores:
            lines = [np.concatenate([line, end]) for line, end in zip(lines, map(_percentage, scores[0].tolist()))]
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        return np.concatenate([np.empty(0, np.int64), *lines]), lengths

    def _lines(self, texts: np.ndarray) -> list[np.ndarray]:
        """Return the glyphs of each text."""
        if self._names is None:
            return [glyphs_of(_decoded(row, number)) for number, row in enumerate(np.atleast_2d(texts))]
        for number, label in enumerate(texts.tolist()):
            if not 0 <= label < len(self._names):
                raise ValueError(f"Label {number} is {label}, but `names` has only {len(self._names)} names")
        return [self._names[label] for label in texts.tolist()]


class _Texts(NamedTuple):
    """Texts to draw.

    Attributes:
        glyphs: the glyphs of all texts, one after the other, int64.
        firsts: start of each text in them, followed by the end of the last, int64.
        corners: x and y of the upper left corner of each, int64 of shape (texts, 2).
        labels: the label of each, which selects its colours.
    """

    glyphs: np.ndarray
    firsts: np.ndarray
    corners: np.ndarray
    labels: np.ndarray


def _of_equal_length(texts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return strings as rows of equal length, padded with zeros."""
    tables = [np.atleast_2d(own) for own in texts]
    lengths = [table.shape[1] for table in tables]
    longest = max(lengths)
    if min(lengths) == longest:
        return tables
    return [np.pad(table, ((0, 0), (0, longest - length))) for table, length in zip(tables, lengths)]


@cache
def _font() -> tuple[np.ndarray, np.ndarray]:
    """Return the glyph of each character up to U+FFFF, int64, and the rows of each glyph, uint16 of shape (glyphs, 18)."""
    with np.load(_FONT, allow_pickle=False) as font:
        codes, rows = font["codes"], font["rows"]
    glyphs = np.full(0x10000, np.searchsorted(codes, _NO_CHARACTER))
    glyphs[codes] = np.arange(len(codes))
    return glyphs, rows


def glyphs_of(text: str) -> np.ndarray:
    """Return the glyphs of a text, int64; letters and their accents are composed where Unicode has a character for both."""
    codes = np.frombuffer(unicodedata.normalize("NFC", text).encode("utf-32-le"), "<u4")
    return _font()[0][np.where(codes < 0x10000, codes, _NO_CHARACTER)]


def _indexed(colours: Sequence[int], channels: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the colours, uint8 of shape (colours, channels), and the index of each label's colour."""
    table = np.array(colours, np.uint8).reshape(-1, channels)
    return table, labels.astype(np.int64) % len(table)


def _decoded(row: np.ndarray, number: int) -> str:
    try:
        return row.tobytes().rstrip(b"\0").decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"Text {number} is not UTF-8: {error.reason} at byte {error.start}") from error


def _percentage(score: float) -> np.ndarray:
    if not np.isfinite(score):
        raise ValueError(f"A score is {score}, which cannot be shown as a percentage")
    return glyphs_of(f" {score:.0%}")
