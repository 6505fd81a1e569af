"""Drawing outlines of boxes, and texts, on images on the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.data_types import DALIDataType
from penstock.kernels.cuda.launch import Extra, KernelLaunch, launch_all, places_of, upload
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, Records, blank_records, cuda_type
from penstock.operators.postprocessing._drawing import GLYPH_HEIGHT, GLYPH_WIDTH, MAX_COORDINATE
from penstock.tensors import TensorListGPU


class _Picture(NamedTuple):
    """The descriptor of one image and the shapes to draw on it.

    Attributes:
        boxes, labels: addresses of the boxes and their labels, only for outlines; ``labels`` 0: boxes have no labels.
        bytes: the size of the image.
        first_shape: the index of the image's first text among all texts, only for texts.
        shapes: number of shapes.
    """

    source: Pointer
    target: Pointer
    boxes: Pointer
    labels: Pointer
    bytes: Int64
    first_shape: Int64
    shapes: Int64
    height: Int32
    width: Int32
    channels: Int32


class _Text(NamedTuple):
    """The descriptor of one text.

    Attributes:
        left, top, right, bottom: the edges of the text in the image, in pixels.
        first_glyph: index of the text's first glyph among the glyphs of all texts.
        ink, paper: where the colours of the text and of its background begin in the list of values; paper -1: no background.
    """

    left: Int64
    top: Int64
    right: Int64
    bottom: Int64
    first_glyph: Int64
    ink: Int32
    paper: Int32


# Number of bytes that each thread copies at once, and how many times it does so.
_BYTES, _ROUNDS = 16, 4
# Number of blocks that draw a shape, each a part of it.
_PARTS = 4
SOURCE = KernelSource(
    __file__,
    _Picture,
    _Text,
    BYTES=_BYTES,
    ROUNDS=_ROUNDS,
    PARTS=_PARTS,
    GLYPH_WIDTH=GLYPH_WIDTH,
    GLYPH_HEIGHT=GLYPH_HEIGHT,
    MAX_COORDINATE=np.float64(MAX_COORDINATE),
)
_NONE = np.iinfo(np.uint64).max


@dataclass
class Pictures:
    """Images on the GPU, uint8.

    Attributes:
        indices: the images' positions in their batch, int64.
        sources, targets: the addresses of the images and of the results, uint64.
        shapes: int64 of shape (images, 3): height, width, channels.
        counts: number of shapes to draw on each, int64.
    """

    indices: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    shapes: np.ndarray
    counts: np.ndarray

    def descriptors(self) -> Records:
        """Return the images' descriptors for kernels."""
        made = blank_records(_Picture, len(self.sources))
        made["source"], made["target"] = self.sources, self.targets
        made["bytes"], made["shapes"] = self.shapes.prod(axis=1), self.counts
        made["height"], made["width"], made["channels"] = self.shapes.T
        return made

    def draw(self, kernel: str, descriptors: Records, *extra: Extra) -> None:
        """Copy the images, and launch a kernel that draws the shapes on the copies."""
        copied = -(-self.shapes.prod(axis=1) // (THREADS * _BYTES * _ROUNDS))
        launch_all(
            [
                KernelLaunch(SOURCE.kernel("copy_pictures"), descriptors, copied),
                KernelLaunch(SOURCE.kernel(kernel), descriptors, self.counts * _PARTS, extra),
            ]
        )


def pictures_of(
    images: TensorListGPU, targets: TensorListGPU, indices: Sequence[int], counts: np.ndarray
) -> Iterator[tuple[int, Pictures]]:
    """Yield groups of the images at these indices: a number of channels, and the images with this number (usually, all).

    Args:
        images, targets: the batches of images and of results, uint8, HWC.
        indices: indices of the images to yield.
        counts: number of shapes to draw on each of these images.
    """
    rows = np.array(indices, np.int64)
    shapes = images.shape_array()[rows]
    sources, places = places_of(images)[0][rows], places_of(targets)[0][rows]
    for channels in sorted(set(shapes[:, 2].tolist())):
        own = shapes[:, 2] == channels
        yield channels, Pictures(rows[own], sources[own], places[own], shapes[own], counts[own])


def draw_outlines(
    pictures: Pictures,
    boxes: np.ndarray,
    dtype: DALIDataType,
    labels: np.ndarray | None,
    colours: np.ndarray,
    thickness: int,
) -> np.ndarray:
    """Copy images and draw the outlines of the boxes of each. Waits for the GPU.

    Args:
        boxes: the address of each image's boxes.
        dtype: the boxes' type.
        labels: the address of each image's labels, int32; None: there are no labels.
        colours: uint8 of shape (colours, channels); labels select colours cyclically.
        thickness: the lines' thickness, in pixels.

    Returns:
        Each image's first box with a coordinate that is NaN, int64; -1 if there is none.
    """
    descriptors = pictures.descriptors()
    descriptors["boxes"] = boxes
    if labels is not None:
        descriptors["labels"] = labels
    faults = upload([np.full(len(boxes), _NONE, np.uint64)])[0]
    extra = colours, np.int32(len(colours)), np.int32(thickness), faults
    pictures.draw(f"draw_outlines<{cuda_type(dtype)}>", descriptors, *extra)
    found: np.ndarray = faults.array().get()
    return found.view(np.int64)


@dataclass
class Texts:
    """The texts of all images, one after the other.

    Attributes:
        glyphs: the rows of each text's glyphs, uint16 of shape (glyphs, height).
        firsts: the index of the first glyph of each text, followed by the end of the last text, int64.
        corners: x and y of the upper left corner of each text, int64 of shape (texts, 2).
        inks, papers: the index in ``colours`` of each text's colour and of its background's, int64; -1: no background.
        colours: uint8 of shape (colours, channels).
        scale: the factor by which glyphs are enlarged.
    """

    glyphs: np.ndarray
    firsts: np.ndarray
    corners: np.ndarray
    inks: np.ndarray
    papers: np.ndarray
    colours: np.ndarray
    scale: int

    def records(self) -> Records:
        """Return the descriptors of the texts for the kernel."""
        made = blank_records(_Text, len(self.corners))
        made["left"], made["top"] = self.corners.T
        made["right"] = self.corners[:, 0] + np.diff(self.firsts) * GLYPH_WIDTH * self.scale
        made["bottom"] = self.corners[:, 1] + GLYPH_HEIGHT * self.scale
        made["first_glyph"] = self.firsts[:-1]
        channels = self.colours.shape[1]
        made["ink"], made["paper"] = self.inks * channels, np.where(self.papers < 0, -1, self.papers * channels)
        return made


def draw_texts(pictures: Pictures, texts: Texts) -> None:
    """Copy images and draw the texts of each."""
    descriptors = pictures.descriptors()
    descriptors["first_shape"] = pictures.counts.cumsum() - pictures.counts
    pictures.draw("draw_texts", descriptors, texts.colours, texts.records(), texts.glyphs, np.int32(texts.scale))
