"""Drawing texts in a bitmap font on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.memory import copy_bytes
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import bytes_at
from penstock.operators.postprocessing._drawing import GLYPH_WIDTH


@inner
def _fill_pixels(line: np.ndarray, begin: int, end: int, colour: np.ndarray) -> None:
    """Fill the pixels from ``begin`` to ``end`` of a line of the image; positions outside the image are skipped."""
    first, last = max(begin, 0), min(end, line.shape[0])
    if line.shape[1] == 3:
        # A loop over three channels takes several times as long as three assignments.
        red, green, blue = colour[0], colour[1], colour[2]
        for x in range(first, last):
            line[x, 0], line[x, 1], line[x, 2] = red, green, blue
        return
    for x in range(first, last):
        for channel in range(line.shape[1]):
            line[x, channel] = colour[channel]


@kernel
def draw_texts(
    font: np.ndarray,
    glyphs: np.ndarray,
    firsts: np.ndarray,
    corners: np.ndarray,
    colours: np.ndarray,
    backgrounds: np.ndarray,
    scale: int,
    image: np.ndarray,
) -> None:
    """Draw texts; later texts cover earlier ones.

    Args:
        font: the rows of each glyph, uint16 of shape (glyphs, height): bit 8 is the leftmost of nine pixels.
        glyphs: the glyphs of all texts, one after the other, int64.
        firsts: start of each text in ``glyphs``, followed by the end of the last text, int64 of shape (texts + 1,).
        corners: x and y of the upper left corner of each text, int64 of shape (texts, 2).
        colours: uint8 of shape (texts, channels).
        backgrounds: colours of the rectangles behind the texts, uint8 of shape (texts, channels), or (0, channels) for none.
        scale: the factor by which glyphs are enlarged.
        image: uint8 of shape (height, width, channels).
    """
    height, width, _ = image.shape
    has_background = len(backgrounds) > 0
    tall, wide = font.shape[1] * scale, GLYPH_WIDTH * scale
    for number in range(len(corners)):
        left, top, colour = corners[number, 0], corners[number, 1], colours[number]
        for y in range(max(top, 0), min(top + tall, height)):
            line, row = image[y], (y - top) // scale
            if has_background:
                _fill_pixels(line, left, left + (firsts[number + 1] - firsts[number]) * wide, backgrounds[number])
            for place in range(firsts[number], firsts[number + 1]):
                start = left + (place - firsts[number]) * wide
                if start >= width or start + wide <= 0:
                    continue
                bits = np.int64(font[glyphs[place], row])
                # Draw the pixels of the glyph's row from right to left.
                end = start + wide
                while bits:
                    if bits & 1:
                        _fill_pixels(line, end - scale, end, colour)
                    bits >>= 1
                    end -= scale


@kernel
def draw_texts_of_batch(
    images: np.ndarray,
    font: np.ndarray,
    glyphs: np.ndarray,
    firsts: np.ndarray,
    corners: np.ndarray,
    colours: np.ndarray,
    backgrounds: np.ndarray,
    scale: int,
    begin: int,
    end: int,
) -> None:
    """Copy images and draw the texts of each.

    Args:
        images: int64 of shape (images, 7): addresses to copy from and to, height, width, channels, and the image's first text and
            the one after its last.
        font, scale: see :func:`draw_texts`.
        glyphs, firsts, corners, colours, backgrounds: of all texts.
        begin, end: the images to draw on.
    """
    for number in range(begin, end):
        source, target, height, width, channels, first, last = images[number]
        copy_bytes(target, source, height * width * channels)
        image = bytes_at(target, height * width * channels).reshape((height, width, channels))
        behind = backgrounds[first:last] if len(backgrounds) else backgrounds
        draw_texts(
            font, glyphs, firsts[first : last + 1], corners[first:last], colours[first:last], behind, scale, image
        )
