"""Texts of a bitmap font."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import kernel

WIDTH = 9


@kernel
def draw_texts(
    font: np.ndarray,
    glyphs: np.ndarray,
    firsts: np.ndarray,
    positions: np.ndarray,
    colours: np.ndarray,
    backgrounds: np.ndarray,
    scale: int,
    image: np.ndarray,
) -> None:
    """Draw texts; later ones cover earlier ones.

    Args:
        font: the rows of each glyph, uint16 of shape (glyphs, height): bit 8 is the leftmost of nine pixels.
        glyphs: the glyphs of all texts, one after the other, int64.
        firsts: start of each text in them, followed by the end of the last, int64 of shape (texts + 1,).
        positions: int64 of shape (texts, 2): where the upper left corner is; or (texts, 4): a box, above which the text is if there is
            room, or inside at its upper edge.
        colours: uint8 of shape (texts, channels).
        backgrounds: colours of the rectangles behind the texts, uint8 of shape (texts, channels), or (0, channels) for none.
        scale: width and height in pixels of a glyph's pixel.
        image: uint8 of shape (height, width, channels).
    """
    height, width, channels = image.shape
    tall = font.shape[1] * scale
    for number in range(len(positions)):
        left, top = positions[number, 0], positions[number, 1]
        if positions.shape[1] == 4 and top >= tall:
            top -= tall
        right = left + (firsts[number + 1] - firsts[number]) * WIDTH * scale
        for y in range(max(top, 0), min(top + tall, height)):
            row = (y - top) // scale
            for x in range(max(left, 0), min(right, width)):
                column = (x - left) // scale
                bits = font[glyphs[firsts[number] + column // WIDTH], row]
                if bits >> (WIDTH - 1 - column % WIDTH) & 1:
                    for channel in range(channels):
                        image[y, x, channel] = colours[number, channel]
                elif len(backgrounds):
                    for channel in range(channels):
                        image[y, x, channel] = backgrounds[number, channel]
