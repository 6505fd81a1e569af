"""Rules for the sizes to which models' image processors resize images, one function for each rule.

The rules were found by probing the image processors of `transformers` 5.23 and, for `letterbox`, Ultralytics 8.4; they round in the
same way. In the docstrings, names in backquotes such as `least` are fields of :class:`SizeArguments`, or names of rules.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

_MAX_RATIO = 200
# Idefics3 limits both sides of an image to this many pixels.
_IDEFICS_MOST = 4096


class Fit(NamedTuple):
    """The size to which an image is resized, and the size of the canvas on which it lies; that is 0 if there are no tiles."""

    height: int
    width: int
    canvas_height: int
    canvas_width: int


class SizeArguments(NamedTuple):
    """The arguments of a rule; each rule's docstring says which of them it reads, and how.

    Attributes:
        factor: the number of which the resulting extents are multiples.
        least, most: bounds of a side, or of a number of pixels, patches or tiles.
        canvases: the sizes (height, width) of the canvases from which to choose.
        tile: the size (height, width) of a tile.
        frames: the number of frames of a video.
    """

    factor: int = 1
    least: int = 0
    most: int = 0
    canvases: tuple[tuple[int, int], ...] = ()
    tile: tuple[int, int] = (1, 1)
    frames: int = 1


class Rule(NamedTuple):
    """A rule that computes sizes.

    Attributes:
        fit: the function that returns the size for a height and a width.
        needs: the name of the argument that must be set.
    """

    fit: Callable[[int, int, SizeArguments], Fit]
    needs: str = "most"


def fitted(rule: str, height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size to which a rule resizes an image.

    Raises:
        ValueError: the image is empty, or the rule does not accept images of this size.
    """
    if min(height, width) < 1:
        raise ValueError(f"An image of {width} x {height} pixels is empty")
    fit = RULES[rule].fit(height, width, arguments)
    if min(fit[:2]) < 1:
        raise ValueError(
            f"An image of {width} x {height} pixels would be resized to nothing: {fit.width} x {fit.height} pixels"
        )
    return fit


def _whole(height: int, width: int) -> Fit:
    return Fit(height, width, height, width)


# -- whole patches -----------------------------------------------------------------------------------------------------


def _area(height: int, width: int, arguments: SizeArguments, frames: int = 1, counted: int = 1) -> Fit:
    """Return multiples of `factor` with nearly the same aspect ratio, so that all frames together have from `least` to
    `most` pixels.

    The bounds are checked for ``counted`` frames; the factor by which the image is scaled is computed for ``frames`` frames.
    """
    if max(height, width) / min(height, width) > _MAX_RATIO:
        raise ValueError(
            f"An image of {width} x {height} pixels has an aspect ratio of {max(height, width) / min(height, width):g}: "
            f"the maximum is {_MAX_RATIO}"
        )
    factor = arguments.factor
    rows, columns = (round(side / factor) * factor for side in (height, width))
    if counted * rows * columns > arguments.most:
        shrink = math.sqrt(frames * height * width / arguments.most)
        rows, columns = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif counted * rows * columns < arguments.least:
        grow = math.sqrt(arguments.least / (frames * height * width))
        rows, columns = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return _whole(rows, columns)


def _qwen2_vl(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, so that the image has from `least` to `most` pixels."""
    return _area(height, width, arguments)


def _qwen2_vl_video(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, so that a frame has at least `least` pixels, and all frames together at most `most`."""
    return _area(height, width, arguments._replace(most=arguments.most // arguments.frames))


def _glm4v(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, so that two frames have from `least` to `most` pixels; an image counts as two frames."""
    return _qwen3_vl_video(height, width, arguments._replace(frames=2))


def _qwen3_vl_video(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, so that all frames have from `least` to `most` pixels; there must be at least two frames."""
    if arguments.frames < 2:
        raise ValueError("A video must have at least 2 frames, got 1")
    return _at_least_one(height, width, arguments, round(arguments.frames / 2) * 2)


def _hunyuan_v4_video(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the largest multiples of `factor` with nearly the image's aspect ratio, so that a frame has at most `least` pixels,
    and all frames together at most `most`.
    """
    if max(height, width) / min(height, width) > _MAX_RATIO:
        raise ValueError(f"An image of {width} x {height} pixels exceeds the maximum aspect ratio, {_MAX_RATIO}")
    factor = arguments.factor
    area = factor * factor
    for rows in range(max(1, height // factor), 0, -1):
        fewest = 1 if rows == 1 else max(1, width * rows // height)
        most = min(
            max(1, width // factor),
            max(1, -(-width * (rows + 1) // height) - 1),
            arguments.most // area // (arguments.frames * rows) - 1 if arguments.most >= area else 0,
            arguments.least // (area * rows),
        )
        if most >= fewest:
            return _whole(rows * factor, most * factor)
    return _whole(factor, factor)


def _cosmos3(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, at least `factor`, so that all frames together have from `least` to `most` pixels."""
    return _at_least_one(height, width, arguments, arguments.frames)


def _at_least_one(height: int, width: int, arguments: SizeArguments, counted: int) -> Fit:
    """Return the size from :func:`_area`, after enlarging the image so that no side is shorter than `factor`."""
    frames = arguments.frames
    if min(height, width) < arguments.factor:
        scale = max(arguments.factor / height, arguments.factor / width)
        height, width = int(height * scale), int(width * scale)
    return _area(height, width, arguments, frames, counted)


def _paddleocr_vl(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, so that the image has from `least` to `most` pixels; sides shorter than `factor` are enlarged first."""
    factor = arguments.factor
    if height < factor:
        height, width = factor, round(width * factor / height)
    if width < factor:
        height, width = round(height * factor / width), factor
    return _area(height, width, arguments)


@functools.lru_cache(maxsize=1024)
def _siglip2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, the side of a patch, so that there are at most `most` patches."""
    patch = arguments.factor

    def at(scale: float) -> tuple[int, int]:
        rows, columns = (max(patch, math.ceil(side * scale / patch) * patch) for side in (height, width))
        return rows, columns

    lower, upper, within = 1e-6, 100.0, 1e-5
    while upper - lower >= within:
        middle = (lower + upper) / 2
        rows, columns = at(middle)
        if (rows / patch) * (columns / patch) <= arguments.most:
            lower = middle
        else:
            upper = middle
    return _whole(*at(lower))


def _pixtral(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Shrink the image until no side is longer than `most`, and round up to multiples of `factor`."""
    ratio = max(height / arguments.most, width / arguments.most)
    if ratio > 1:
        height, width = math.floor(height / ratio), math.floor(width / ratio)
    patch = arguments.factor
    return _whole(((height - 1) // patch + 1) * patch, ((width - 1) // patch + 1) * patch)


def _kimi(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Shrink to at most `most` patches, and at most `least` on a side; `tile`: the size of a patch. The canvas is rounded up to
    multiples of `factor`.
    """
    patch, factor = arguments.tile[0], arguments.factor
    longest = arguments.least * patch
    patches = max(1, height // patch) * max(1, width // patch)
    scale = min(1.0, math.sqrt(arguments.most / patches), longest / height, longest / width)
    rows, columns = (min(max(1, int(side * scale)), longest) for side in (height, width))
    return Fit(rows, columns, *(-(-side // factor) * factor for side in (rows, columns)))


def _to_canvas(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the same size, on a canvas rounded up to multiples of `factor`."""
    return Fit(height, width, *_up(height, width, arguments)[:2])


def _neomme(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return a size of `least` to `most` pixels, with no side longer than the first canvas's height; limits that are not set do not
    apply. The canvas is rounded up to multiples of `factor`.
    """
    least, most = arguments.least, arguments.most
    side = arguments.canvases[0][0] if arguments.canvases else math.inf
    area = height * width
    scale = (least / area) ** 0.5 if area < least else 1.0
    scale = min(scale, side / max(height, width))
    if most:
        scale = min(scale, (most / area) ** 0.5)
    if scale == 1.0:
        return _to_canvas(height, width, arguments)

    def is_beyond(rows: int, columns: int) -> bool:
        return max(rows, columns) > side or bool(most and rows * columns > most)

    rows, columns = (max(1, round(extent * scale)) for extent in (height, width))
    if is_beyond(rows, columns):
        rows, columns = (max(1, math.floor(extent * scale)) for extent in (height, width))
        if most and rows * columns > most:
            rows, columns = (max(1, most // columns), columns) if rows >= columns else (rows, max(1, most // rows))
    elif area < least and rows * columns < least:
        up = [max(1, math.ceil(extent * scale)) for extent in (height, width)]
        if not is_beyond(*up):
            rows, columns = up
    return _to_canvas(rows, columns, arguments)


def _glm5(height: int, width: int, arguments: SizeArguments, counted: int = 1) -> Fit:
    """Return a size on a canvas of multiples of `factor` that has `least` to `most` pixels; enlarge the image only if it has fewer
    than `least`.

    The canvas's pixels are counted in ``counted`` frames, the image's in all frames.
    """
    factor, pixels = arguments.factor, arguments.frames * height * width
    rows, columns = (-(-side // factor) * factor for side in (height, width))
    if counted * rows * columns < arguments.least:
        grow = math.sqrt(arguments.least / pixels)
        rows, columns = (-(-max(1, math.ceil(side * grow)) // factor) * factor for side in (height, width))
    if counted * rows * columns > arguments.most:
        rows, columns = _most_rows(height, width, arguments._replace(most=arguments.most // counted))
    scale = min(rows / height, columns / width)
    if pixels >= arguments.least:
        scale = min(1.0, scale)
    high, wide = (max(1, min(most, math.floor(side * scale))) for side, most in ((height, rows), (width, columns)))
    return Fit(high, wide, rows, columns)


def _glm5_video(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `glm5` for all frames of a video, which are grouped; `tile[0]`: the number of frames in a group."""
    unit = arguments.tile[0]
    return _glm5(height, width, arguments, max(unit, round(arguments.frames / unit) * unit))


def _most_rows(height: int, width: int, arguments: SizeArguments) -> tuple[int, int]:
    """Shrink the image as little as possible so that it has at most `most` pixels after rounding up to multiples of `factor`; return
    that size.
    """
    factor = arguments.factor
    if arguments.most < factor**2:
        raise ValueError(f"The limit of {arguments.most} pixels is smaller than a patch of {factor} x {factor} pixels")
    best, low, high = (factor, factor), 1, height
    while low <= high:
        middle = (low + high) // 2
        across = max(1, math.floor(width * middle / height))
        rows, columns = (-(-side // factor) * factor for side in (middle, across))
        if rows * columns <= arguments.most:
            best, low = (rows, columns), middle + 1
        else:
            high = middle - 1
    return best


_GLM_IMAGE_RATIO = 4


def _glm_image(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Scale the image until its shorter side is at least that of a square of `least` pixels, but its longer side at most that of a
    square of `most` pixels; then return half the size, rounded to multiples of `factor`.
    """
    factor, ratio = arguments.factor, max(height, width) / min(height, width)
    if min(height, width) < factor or ratio > _GLM_IMAGE_RATIO:
        raise ValueError(
            f"An image of {width} x {height} pixels: sides must be at least {factor}, and their ratio at most {_GLM_IMAGE_RATIO}"
        )
    shortest, longest = (round(math.sqrt(pixels)) for pixels in (arguments.least, arguments.most))
    scale = shortest / min(height, width) if min(height, width) < shortest else 1.0
    if max(height, width) * scale > longest:
        scale = longest / max(height, width)
    rows, columns = (_multiple(side // 2 * scale, factor) for side in (height, width))
    if max(rows, columns) > longest:
        shrink = max(rows, columns) / longest
        rows, columns = (max(factor, math.floor(side / shrink / factor) * factor) for side in (rows, columns))
    return _whole(rows, columns)


def _nemotron(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, the side of a patch, so that there are `least` to `most` patches, and on each side a multiple of
    `tile[0]`.
    """
    factor, least, most = arguments.factor, arguments.least, arguments.most
    rows, columns = (round(side / factor + 0.5) for side in (height, width))
    shrink = min(math.sqrt(most / (rows * columns)), 1.0)
    rows, columns = (math.floor(shrink * side) for side in (rows, columns))
    if most > least and rows * columns < least:
        if not rows * columns:
            raise ValueError(f"An image of {width} x {height} pixels is too thin for {most} patches")
        grow = math.sqrt(least / (rows * columns))
        rows, columns = (math.ceil(grow * side) for side in (rows, columns))
    rows = _merged(rows, columns, arguments)
    return _whole(rows * factor, _merged(columns, rows, arguments) * factor)


def _merged(side: int, other: int, arguments: SizeArguments) -> int:
    """Return ``side``, in patches, rounded up to a multiple of `tile[0]`, or down if there would be more than `most` patches."""
    unit = arguments.tile[0]
    beyond = side % unit
    if not beyond:
        return side
    larger = side + unit - beyond
    return larger if larger * other <= arguments.most else max(unit, side - beyond)


def _nemotron_video(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, the side of a patch, so that there are about `most` patches, and on each side a multiple of
    `tile[0]`; a square if `least` is 1.
    """
    factor, most, unit = arguments.factor, arguments.most, arguments.tile[0]
    if arguments.least:
        side = max(unit, int(math.sqrt(most)) // unit * unit)
        return _whole(side * factor, side * factor)
    ratio = width / height
    rows, columns = (max(round(math.sqrt(area)), 1) for area in (most / ratio, most * ratio))
    up, across = (-(-side // unit) * unit for side in (rows, columns))
    if up * across > most:
        up, across = (max(unit, side // unit * unit) for side in (rows, columns))
    return _whole(up * factor, across * factor)


def _gemma4(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the largest multiples of `factor` with nearly the same aspect ratio that have at most `most` patches; `tile[0]`: the side
    of a patch.
    """
    patch, factor = arguments.tile[0], arguments.factor
    pixels = arguments.most * patch**2
    scale = math.sqrt(pixels / (height * width))
    rows, columns = (math.floor(scale * side / factor) * factor for side in (height, width))
    longest = arguments.most // (factor // patch) ** 2 * factor
    if not rows and not columns:
        return _whole(0, 0)
    if not rows:
        rows, columns = factor, min(math.floor(width / height) * factor, longest)
    elif not columns:
        rows, columns = min(math.floor(height / width) * factor, longest), factor
    return _whole(rows, columns)


# -- sides -------------------------------------------------------------------------------------------------------------


def _detr(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the shorter side `least` long, or shorter if the longer side would exceed `most`."""
    side, exact = _shorter(height, width, arguments)
    if min(height, width) == side:
        return _whole(height, width)
    if width < height:
        return _whole(int(exact * height / width), side)
    return _whole(side, int(exact * width / height))


def _detectron2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Same as :func:`_detr`, but round both sides, halves up."""
    scale, shorter = arguments.least / min(height, width), float(arguments.least)
    sides = (shorter, scale * width) if height < width else (scale * height, shorter)
    if max(sides) > arguments.most:
        shrink = arguments.most / max(sides)
        sides = sides[0] * shrink, sides[1] * shrink
    return _whole(int(sides[0] + 0.5), int(sides[1] + 0.5))


def _shorter(height: int, width: int, arguments: SizeArguments) -> tuple[int, float]:
    """Return the length of the shorter side after :func:`_detr`: rounded, and exact, for computing the longer side."""
    shorter, longer = float(min(height, width)), float(max(height, width))
    if longer / shorter * arguments.least > arguments.most:
        exact = arguments.most * shorter / longer
        return round(exact), exact
    return arguments.least, float(arguments.least)


def _maskformer(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `detr`, rounded up to multiples of `factor`."""
    fit, factor = _detr(height, width, arguments), arguments.factor
    return _whole(*(math.ceil(side / factor) * factor for side in fit[:2]))


def _yolos(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `detr`, rounded down to multiples of `factor`."""
    side, exact = _shorter(height, width, arguments)
    if width < height:
        fit = _whole(int(exact * height / width), side)
    else:
        fit = _whole(height, width) if height == side else _whole(side, int(exact * width / height))
    return _whole(*(side - side % arguments.factor for side in fit[:2]))


def _vilt(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the shorter side `least` long, or shorter if the longer side would exceed `most`; round to pixels, then down to multiples
    of `factor`.
    """
    rows, columns = float(arguments.least), width * (arguments.least / height)
    if height >= width:
        rows, columns = height * (arguments.least / width), float(arguments.least)
    if max(rows, columns) > arguments.most:
        scale = arguments.most / max(rows, columns)
        rows, columns = rows * scale, columns * scale
    factor = arguments.factor
    return _whole(*(int(side + 0.5) // factor * factor for side in (rows, columns)))


def _dpt(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the first canvas's size, rounded to multiples of `factor`.

    If `least` is set, keep the aspect ratio: of the factors that scale the height or the width to the canvas's, apply the one that
    is closer to 1 to both sides.
    """
    rows, columns = arguments.canvases[0]
    down, across = rows / height, columns / width
    if arguments.least:
        down = across = across if abs(1 - across) < abs(1 - down) else down
    return _whole(*(_nearest(side, arguments.factor) for side in (down * height, across * width)))


def _zoedepth(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `dpt`, in multiples of `factor / tile[0]`, which need not be an integer; truncate to whole pixels."""
    multiple = arguments.factor / arguments.tile[0]
    rows, columns = arguments.canvases[0]
    down, across = rows / height, columns / width
    if arguments.least:
        down = across = across if abs(1 - across) < abs(1 - down) else down
    return _whole(*(int(round(side / multiple) * multiple) for side in (down * height, across * width)))


def _mirrored(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size with the margins that ZoeDepth fills by mirroring the image; the canvas is the margins' height and width."""
    beyond = [int(math.sqrt(side / 2) * 3) for side in (height, width)]
    if beyond[0] >= height or beyond[1] >= width:
        raise ValueError(
            f"An image of {width} x {height} pixels is too small to be mirrored by {beyond[1]} x {beyond[0]}"
        )
    return Fit(height + 2 * beyond[0], width + 2 * beyond[1], *beyond)


def _longest_rounded(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side `most` long, and round both sides."""
    scale = arguments.most / max(height, width)
    return _whole(round(height * scale), round(width * scale))


def _nearest(side: float, factor: int) -> int:
    return round(side / factor) * factor


def _down(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Round down to multiples of `factor`."""
    return _whole(*(side // arguments.factor * arguments.factor for side in (height, width)))


def _longest(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side `most` long, and round the other side; the canvas is a square."""
    scale = arguments.most * 1.0 / max(height, width)
    rows, columns = int(height * scale + 0.5), int(width * scale + 0.5)
    return Fit(rows, columns, arguments.most, arguments.most)


def _within(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit into the first canvas; truncate sides."""
    most_high, most_wide = arguments.canvases[0]
    scale = min(most_high / height, most_wide / width)
    return _whole(int(height * scale), int(width * scale))


def _within_or_less(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Same as :func:`_within`, but never enlarge."""
    most_high, most_wide = arguments.canvases[0]
    if height <= most_high and width <= most_wide:
        return _whole(height, width)
    return _within(height, width, arguments)


def _perceiver(height: int, width: int, arguments: SizeArguments) -> Fit:
    """For each side, return the image's shorter side times the first canvas's side, divided by the second canvas's side."""
    (high, wide), (whole_high, whole_wide) = arguments.canvases
    side = min(height, width)
    return _whole(int(high / whole_high * side), int(wide / whole_wide * side))


def _up(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Round up to multiples of `factor`."""
    return _whole(*(-(-side // arguments.factor) * arguments.factor for side in (height, width)))


def _shortest_up(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the shorter side `least` long, truncate the longer one, and round up to multiples of `factor`."""
    longer = int(arguments.least * max(height, width) / min(height, width))
    rows, columns = (longer, arguments.least) if width <= height else (arguments.least, longer)
    return _up(rows, columns, arguments)


def _next(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the next larger multiples of `factor`, even if sides are multiples already. With `least`, refuse images that are too small
    to be mirrored to that size.
    """
    rows, columns = ((side // arguments.factor + 1) * arguments.factor for side in (height, width))
    if arguments.least and (rows > 2 * height or columns > 2 * width):
        raise ValueError(f"An image of {width} x {height} pixels is too small to be mirrored to {columns} x {rows}")
    return _whole(rows, columns)


def _shortest_rounded(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the shorter side `least` long, and round the longer one; then round up to multiples of `factor`."""
    scale = arguments.least / min(height, width)
    return _up(round(height * scale), round(width * scale), arguments)


def _longest_cut(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side `most` long, and truncate the other side."""
    most = arguments.most
    if height >= width:
        return _whole(most, int(most * (width * 1.0 / height)))
    return _whole(int(most * (height * 1.0 / width)), most)


# The sides of images for PP-OCR's detectors must be multiples of this.
_PPOCR_STEP = 32


def _ppocr(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Scale the image so that its longer side is at most `most` long; if `least` is 1, so that its shorter side is at least `most`; if 2,
    so that its longer side is exactly `most`. Then limit both sides to the first canvas's height, and round to multiples of 32.
    """
    shorter, longer = min(height, width), max(height, width)
    ratio = 1.0
    if arguments.least == 1:
        ratio = arguments.most / shorter if shorter < arguments.most else 1.0
    elif arguments.least == 2 or longer > arguments.most:
        ratio = arguments.most / longer
    rows, columns = int(height * ratio), int(width * ratio)
    (limit, _) = arguments.canvases[0]
    if max(rows, columns) > limit:
        ratio = limit / max(rows, columns)
        rows, columns = int(rows * ratio), int(columns * ratio)
    step = _PPOCR_STEP
    return _whole(*(max(int(round(side / step) * step), step) for side in (rows, columns)))


def line_width(height: int, width: int, size: tuple[int, int], most: int) -> int:
    """Return the width to which PP-OCR resizes a line of text, at most ``most``; ``size``: the height and width of the model's input."""
    high, wide = size
    target = int(high * max(width / height, wide / high))
    return most if target > most else min(target, math.ceil(high * (width / height)))


def _within_rounded(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit into the first canvas; round both sides."""
    rows, columns = arguments.canvases[0]
    ratio = max(height / rows, width / columns)
    return _whole(round(height / ratio), round(width / ratio))


def _around_rounded(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Cover the first canvas; round both sides."""
    rows, columns = arguments.canvases[0]
    ratio = min(height / rows, width / columns)
    return _whole(round(height / ratio), round(width / ratio))


def _text_line(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the first canvas's height, and the width by :func:`line_width`, at most `most`."""
    size = arguments.canvases[0]
    return _whole(size[0], line_width(height, width, size, arguments.most))


def _thumbnail(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Shrink until the longer side fits in the first canvas; if both sides are equal, limit each separately."""
    rows, columns = (min(side, most) for side, most in zip((height, width), arguments.canvases[0]))
    if (rows, columns) != (height, width):
        if height > width:
            columns = int(width * rows / height)
        elif width > height:
            rows = int(height * columns / width)
    return _whole(rows, columns)


# -- tiles -------------------------------------------------------------------------------------------------------------


def _llava_next(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit the image in the canvas on which it keeps the most pixels; if there are several such `canvases`, in the smallest."""
    best, most_kept, least_wasted = arguments.canvases[0], 0, math.inf
    for rows, columns in arguments.canvases:
        scale = min(columns / width, rows / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        wasted = rows * columns - kept
        if kept > most_kept or (kept == most_kept and wasted < least_wasted):
            best, most_kept, least_wasted = (rows, columns), kept, wasted
    return _on_canvas(height, width, *best)


def _on_canvas(height: int, width: int, rows: int, columns: int) -> Fit:
    """Return the largest size with the image's aspect ratio that fits on the canvas, rounded up."""
    if columns / width < rows / height:
        return Fit(min(math.ceil(height * (columns / width)), rows), columns, rows, columns)
    return Fit(rows, min(math.ceil(width * (rows / height)), columns), rows, columns)


@functools.lru_cache(maxsize=64)
def _grids(least: int, most: int) -> list[tuple[int, int]]:
    """Return the columns and rows of all grids of `least` to `most` tiles, the fewest tiles first."""
    sides = range(1, most + 1)
    grids = [(columns, rows) for columns in sides for rows in sides if least <= columns * rows <= most]
    return sorted(grids, key=math.prod)


@functools.lru_cache(maxsize=1024)
def _internvl(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of the grid of `least` to `most` tiles with the nearest aspect ratio; see :func:`_nearest_grid`."""
    return _nearest_grid(height, width, arguments)


def _nearest_grid(height: int, width: int, arguments: SizeArguments, most_tiles_on_a_side: float = math.inf) -> Fit:
    """Return the size of the grid of tiles whose aspect ratio is nearest to the image's. If two grids are equally near, choose the larger
    one only if the image has more than half of its pixels.
    """
    ratio, tile_area = width / height, math.prod(arguments.tile)
    best, nearest = (1, 1), math.inf
    for grid in _grids(arguments.least, arguments.most):
        if max(grid) > most_tiles_on_a_side:
            continue
        distance = abs(ratio - grid[0] / grid[1])
        larger = distance == nearest and width * height > 0.5 * tile_area * grid[0] * grid[1]
        if distance < nearest or larger:
            best, nearest = grid, min(distance, nearest)
    return _whole(arguments.tile[0] * best[1], arguments.tile[1] * best[0])


def _cohere2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of the grid of up to `most` tiles that enlarges the image the least, or if all grids shrink it, shrinks it the
    least; if there are several, the one with the fewest tiles.
    """
    high = arguments.tile[0]
    grids = _grids(1, arguments.most)
    scales = [min(columns * high / width, rows * high / height) for columns, rows in grids]
    larger = [scale for scale in scales if scale >= 1]
    columns, rows = grids[scales.index(min(larger) if larger else max(scales))]
    return _whole(arguments.tile[0] * rows, arguments.tile[1] * columns)


@functools.lru_cache(maxsize=1024)
def _slices(height: int, width: int, arguments: SizeArguments) -> tuple[int, int] | None:
    """Return the number of rows and columns of slices into which MiniCPM-V cuts an image, or None if it is not cut.

    There are about as many slices as squares of side `most` have the image's area, but at most `least`, in the grid with the
    nearest aspect ratio.
    """
    pixels = height * width / (arguments.most * arguments.most)
    wanted = min(math.ceil(pixels), arguments.least)
    if wanted <= 1:
        return None
    counts = [count for count in (wanted - 1, wanted, wanted + 1) if 1 < count <= arguments.least]
    grids = [(rows, count // rows) for count in counts for rows in range(1, count + 1) if count % rows == 0]
    ratio = math.log(width / height)
    return min(grids, key=lambda grid: (abs(ratio - math.log(grid[1] / grid[0])), -grid[0]))


def _near(height: float, width: float, arguments: SizeArguments, enlarged: bool) -> tuple[int, int]:
    """Return multiples of `factor` with nearly the same aspect ratio. An image that is larger than a square of side `most` is shrunk to
    about that area; with ``enlarged``, smaller images are enlarged to it.
    """
    if height * width > arguments.most * arguments.most or enlarged:
        ratio = width / height
        height = int(arguments.most / math.sqrt(ratio))
        width = int(height * ratio)
    return _multiple(height, arguments.factor), _multiple(width, arguments.factor)


def _multiple(side: float, factor: int) -> int:
    return max(round(side / factor) * factor, factor)


def _minicpm(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor` whose area is about that of a square of side `most`, or less if the image is cut into slices; `least`:
    the maximum number of slices.
    """
    return _whole(*_near(height, width, arguments, _slices(height, width, arguments) is None))


def _minicpm_slices(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of all slices together, for the rule `minicpm`; the canvas is the size of a slice. If the image is not cut, both
    are `tile`.
    """
    grid = _slices(height, width, arguments)
    if grid is None:
        return Fit(*arguments.tile, *arguments.tile)
    rows, columns = grid
    high, wide = _near(_multiple(height, rows) / rows, _multiple(width, columns) / columns, arguments, True)
    return Fit(high * rows, wide * columns, high, wide)


def _lfm2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, at least `factor`, so that the image has from `least` to `most` pixels."""
    factor = arguments.factor
    rows, columns = (_multiple(side, factor) for side in (height, width))
    if rows * columns > arguments.most:
        shrink = math.sqrt(height * width / arguments.most)
        rows, columns = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif rows * columns < arguments.least:
        grow = math.sqrt(arguments.least / (height * width))
        rows, columns = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return _whole(rows, columns)


def _lfm2_tiles(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of a grid of square tiles of side `tile[0]`, if the image, rounded to multiples of `factor`, has more than `most`
    pixels; `canvases[0]`: the minimum and maximum number of tiles. For smaller images, return a square of side `tile[1]`.
    """
    (least, most), (side, patch) = arguments.canvases[0], arguments.tile
    rows, columns = (max(patch, round(extent / arguments.factor) * arguments.factor) for extent in (height, width))
    if rows * columns <= arguments.most:
        return Fit(patch, patch, patch, patch)
    fit = _internvl(height, width, SizeArguments(least=least, most=most, tile=(side, side)))
    return Fit(fit.height, fit.width, side, side)


# The maximum number of tiles on a side for Granite Docling.
_GRANITE_SIDE = 16


@functools.lru_cache(maxsize=1024)
def _granite(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `internvl`, with grids of at most 16 tiles on a side."""
    return _nearest_grid(height, width, arguments, most_tiles_on_a_side=_GRANITE_SIDE)


def _muse(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return multiples of `factor`, the side of a patch, with at most `most` patches: the exact size with each side rounded up or down,
    so that the aspect ratio is nearest to the image's.
    """
    factor, most = arguments.factor, arguments.most
    down, across = height / factor, width / factor
    ratio = across / down
    if down * across > most:
        down = (most / ratio) ** 0.5
        across = down * ratio
    sides = itertools.product([math.floor(down), math.ceil(down)], [math.floor(across), math.ceil(across)])
    grids = [grid for grid in set(sides) if min(grid) >= 1 and math.prod(grid) <= most]
    grids = grids or [(max(1, round(down)), max(1, round(across)))]
    rows, columns = min(grids, key=lambda grid: abs(grid[0] / grid[1] - height / width))
    return _whole(rows * factor, columns * factor)


def _tiles_of_large(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `internvl` if a side is longer than a tile; otherwise no tiles."""
    if max(height, width) <= arguments.tile[0]:
        return Fit(1, 1, 0, 0)
    return _internvl(height, width, arguments)


def _aria(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side `most` long, and the other side at least `least`; the canvas is a square."""
    scale, most = arguments.most / max(height, width), arguments.most
    rows, columns = (max(int(side * scale), arguments.least) for side in (height, width))
    return Fit(rows, most, most, most) if width >= height else Fit(most, columns, most, most)


@functools.lru_cache(maxsize=64)
def _by_ratio(most: int) -> dict[float, list[tuple[int, int]]]:
    """Return the columns and rows of all grids of up to `most` tiles, by their ratio; grids with the most tiles come first."""
    told: dict[float, list[tuple[int, int]]] = {}
    for count in range(most, 0, -1):
        for columns in range(1, count + 1):
            if count % columns == 0:
                told.setdefault(columns / (count // columns), []).append((columns, count // columns))
    return told


@functools.lru_cache(maxsize=1024)
def _perception_lm(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of the grid of at most `most` tiles in which the image becomes the largest, if grids exist in which it need not be
    shrunk; otherwise, that of a grid with the nearest aspect ratio.
    """
    side, ratio = arguments.tile[0], width / height
    best, largest = (0, 0), -1.0
    for columns, rows in (grid for grids in _by_ratio(arguments.most).values() for grid in grids):
        if columns * side < width or rows * side < height:
            continue
        scale = min(columns * side / width, rows * side / height)
        if ratio > 1:
            across = scale * width
            shorter = float(math.floor(across / ratio))
        else:
            down = scale * height
            across = float(math.floor(down * ratio))
            shorter = across if ratio < 1 else down
        if shorter >= largest:
            best, largest = (columns, rows), shorter
    if largest < 0:
        best = _nearest_ratio(ratio, _by_ratio(arguments.most))
    return _whole(best[1] * side, best[0] * side)


def _nearest_ratio(ratio: float, grids: Mapping[float, Sequence[tuple[int, int]]]) -> tuple[int, int]:
    """Return the grid with the nearest ratio: at most ``ratio`` if that is 1 or more, otherwise above it. If there are several, return
    the one with the longest side.
    """
    if ratio >= 1:
        nearest = min((own for own in grids if own <= ratio), key=lambda own: abs(own - ratio))
        return max(grids[nearest], key=lambda grid: grid[0])
    nearest = min((own for own in grids if own > ratio), key=lambda own: abs(1 / own - 1 / ratio))
    return max(grids[nearest], key=lambda grid: grid[1])


def _molmo2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of the grid of up to `most` crops that enlarges the image the least, or if all grids shrink it, shrinks it the
    least. Crops are `tile[0]` pixels apart, and the grid has a margin of `tile[1]` pixels.
    """
    import numpy as np

    window, margin = arguments.tile
    sides = range(1, arguments.most + 1)
    grids = sorted(
        [(rows, columns) for rows in sides for columns in sides if rows * columns <= arguments.most],
        key=lambda grid: (math.prod(grid), grid[0]),
    )
    extents = np.array([height - margin, width - margin], np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = (np.array(grids, np.float32) * np.float32(window) / extents).min(axis=1)
    larger = scales >= 1
    best = np.where(larger, scales, np.inf).argmin() if larger.any() else scales.argmax()
    rows, columns = (side * window + margin for side in grids[int(best)])
    return _whole(rows, columns)


# Phi-4 refuses sides of less than this many pixels.
_PHI4_LEAST = 10


def _phi4(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit the image in the grid of tiles that covers it or, if that has more than `most` tiles, in the grid by the rule `internvl`."""
    side = arguments.tile[0]
    rows, columns = (math.ceil(extent / float(side)) for extent in (height, width))
    if rows * columns > arguments.most:
        grid = _internvl(height, width, arguments._replace(least=1))
        rows, columns = grid.height // side, grid.width // side
    high, wide = rows * side, columns * side
    down, across = high / height, wide / width
    fit = (int(height * across), wide) if across < down else (high, int(width * down))
    if min(fit) < _PHI4_LEAST:
        raise ValueError(
            f"An image of {width} x {height} pixels is too thin: it would become {fit[1]} x {fit[0]} pixels"
        )
    return Fit(*fit, high, wide)


# Step 3.7 makes images square if one side has fewer pixels than the first number and the aspect ratio exceeds the second.
_STEP3_THIN, _STEP3_RATIO = 32, 4
# If the image need not be shrunk to be seen as a whole, it is cut into windows only if its aspect ratio exceeds this; the side of a window
# is then its shorter side.
_STEP3_LONG = 1.5
# A window is added for the remainder of a side if that is more than this fraction of a window.
_STEP3_LEFT = 0.2


def _step3(height: int, width: int, arguments: SizeArguments) -> tuple[int, int, int]:
    """Return the height and width of the image before it is cut into windows, and the side of a window, or 0 if it is not cut; see
    :func:`_step3_windows`.
    """
    most, (side, window) = arguments.most, arguments.tile
    if max(height, width) > most:
        scale = most / max(height, width)
        height, width = int(height * scale), int(width * scale)
    shorter, longer = min(height, width), max(height, width)
    if longer <= side:
        own = shorter if longer / shorter > _STEP3_LONG else 0
    else:
        own = min(shorter, window) if longer / shorter > _STEP3_RATIO else window
    return height, width, own


def _step3_square(height: int, width: int) -> tuple[int, int]:
    """Return the size of an image, as a square if it is very thin."""
    shorter, longer = min(height, width), max(height, width)
    thin = shorter < _STEP3_THIN and longer / shorter > _STEP3_RATIO
    return (longer, longer) if thin else (height, width)


def _step3_whole(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Shrink the image until no side is longer than `most`; the canvas is the image's original size, as a square if it is very thin."""
    canvas = _step3_square(height, width)
    rows, columns, _ = _step3(*canvas, arguments)
    return Fit(rows, columns, *canvas)


def _step3_windows(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of all windows together, after shrinking the image until no side is longer than `most`; the canvas is one window.

    `tile`: the side of the whole image as the model sees it, and the longest side of a window. If the image is not cut, return one pixel,
    which is less than a window.
    """
    rows, columns, window = _step3(*_step3_square(height, width), arguments)
    if not window:
        return Fit(1, 1, 2, 2)
    high, wide = (
        window * (side // window + (side % window > _STEP3_LEFT * window)) if side >= window else side
        for side in (rows, columns)
    )
    return Fit(high, wide, window, window)


# The fraction of an image's pixels that tiles should preserve.
_COVERED = 0.9


@functools.lru_cache(maxsize=1024)
def _ovis2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size of the grid with the fewest tiles, at most `most`, that preserves nearly all of the image's pixels; if there is none,
    of the grid that preserves the most.
    """

    def covered(across: int, down: int) -> float:
        # The model's processor swaps rows and columns when it computes the sizes of the parts.
        tall, wide = height // across, width // down
        parts = [
            (
                (width if column == down - 1 else (column + 1) * wide) - column * wide,
                (height if row == across - 1 else (row + 1) * tall) - row * tall,
            )
            for row in range(across)
            for column in range(down)
        ]
        return sum(_within_side(max(part), min(part), arguments.tile[0]) for part in parts) / (width * height)

    told = [(grid, covered(*grid)) for grid in _grids(1, arguments.most)]
    enough = [each for each in told if each[1] > _COVERED]
    if enough:
        (columns, rows), _ = min(enough, key=lambda each: (math.prod(each[0]), -each[1]))
    else:
        (columns, rows), _ = min(told, key=lambda each: (-each[1], math.prod(each[0])))
    return _whole(arguments.tile[0] * rows, arguments.tile[1] * columns)


def _within_side(longer: float, shorter: float, side: int) -> float:
    """Return the area of a part that is shrunk until its longer side is at most ``side``."""
    return shorter / longer * side * side if longer > side else longer * shorter


def _idefics2(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side at most `most` long, then both sides at least `least`."""
    ratio = width / height
    if width >= height and width > arguments.most:
        height, width = int(arguments.most / ratio), arguments.most
    elif height > width and height > arguments.most:
        height, width = arguments.most, int(arguments.most * ratio)
    return _whole(max(height, arguments.least), max(width, arguments.least))


def _idefics3(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side `most` long and the other side even; then limit both sides to 4096."""
    ratio = width / height
    if width >= height:
        width, height = arguments.most, int(arguments.most / ratio)
        height += height % 2
    else:
        height, width = arguments.most, int(arguments.most * ratio)
        width += width % 2
    height, width = max(height, 1), max(width, 1)
    ratio = width / height
    if width >= height and width > _IDEFICS_MOST:
        width, height = _IDEFICS_MOST, int(_IDEFICS_MOST / ratio)
    elif height > width and height > _IDEFICS_MOST:
        height, width = _IDEFICS_MOST, int(_IDEFICS_MOST * ratio)
    return _whole(max(height, 1), max(width, 1))


def _idefics3_tiles(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Round the longer side up to a multiple of `factor`, the side of a tile; scale the other side in proportion, and round it up, too."""
    tile, ratio = arguments.factor, width / height
    if width >= height:
        width = math.ceil(width / tile) * tile
        height = math.ceil(int(width / ratio) / tile) * tile
    else:
        height = math.ceil(height / tile) * tile
        width = math.ceil(int(height * ratio) / tile) * tile
    return _whole(height, width)


def _idefics3_capped(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Return the size by the rule `idefics3`, with `most` reduced by `factor` until the image has at most `least` tiles."""
    tile, most = arguments.factor, arguments.most
    while most > tile:
        fit = _idefics3(height, width, arguments._replace(most=most))
        tiles = _idefics3_tiles(fit.height, fit.width, arguments)
        if (tiles.height // tile) * (tiles.width // tile) <= arguments.least:
            break
        most -= tile
    return _idefics3(height, width, arguments._replace(most=most))


@functools.lru_cache(maxsize=64)
def _llama4_canvases(most: int, tile: int) -> list[tuple[int, int]]:
    """Return the sizes of all canvases of up to ``most`` tiles, grouped by aspect ratio, in the order in which the ratios first occur."""
    by_ratio: dict[float, list[tuple[int, int]]] = {}
    for count in range(most, 0, -1):
        for rows in range(1, count + 1):
            if count % rows == 0:
                by_ratio.setdefault(rows / (count // rows), []).append((rows * tile, count // rows * tile))
    return [canvas for canvases in by_ratio.values() for canvas in canvases]


def _llama4(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit the image in the canvas of at most `most` tiles that enlarges it the least, or if all shrink it, shrinks it the least. If `least`
    is 1, choose the canvas that enlarges it the most.
    """
    import numpy as np

    canvases = _llama4_canvases(arguments.most, arguments.tile[0])
    rows, columns = (np.array(side, np.float32) for side in zip(*canvases))
    scales = np.minimum(rows / np.float32(height), columns / np.float32(width))
    larger = scales[scales >= 1]
    chosen = scales.max() if not len(larger) else larger.max() if arguments.least else larger.min()
    fitting = [canvas for canvas, scale in zip(canvases, scales) if scale == chosen]
    best = min(fitting, key=math.prod)
    high, wide = best
    if not arguments.least:
        high, wide = (min(max(side, arguments.tile[0]), most) for side, most in zip((height, width), best))
    if wide / width < high / height:
        fit = min(math.floor(height * (wide / width)), high), wide
    else:
        fit = high, min(math.floor(width * (high / height)), wide)
    return Fit(max(fit[0], 1), max(fit[1], 1), *best)


def _mllama(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit the image in the canvas of at most `most` tiles that enlarges it the least, or if all shrink it, shrinks it the least; no side is
    enlarged beyond a tile.
    """
    tile = arguments.tile[0]
    canvases = [(rows * tile, columns * tile) for rows, columns in arrangements(arguments.most)]
    scales = [min(rows / height, columns / width) for rows, columns in canvases]
    larger = [scale for scale in scales if scale >= 1]
    chosen = min(larger) if larger else max(scales)
    best = min((canvas for canvas, scale in zip(canvases, scales) if scale == chosen), key=math.prod)
    high, wide = (min(max(side, tile), most) for side, most in zip((height, width), best))
    if wide / width < high / height:
        return Fit(min(math.floor(height * (wide / width)) or 1, high), wide, *best)
    return Fit(high, min(math.floor(width * (high / height)) or 1, wide), *best)


def arrangements(most: int) -> list[tuple[int, int]]:
    """Return all pairs of numbers whose product is at most ``most``: the sides of canvases in tiles, in order of the first side."""
    sides = range(1, most + 1)
    return [(one, other) for one in sides for other in sides if one * other <= most]


def _janus(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Make the longer side `most` long, then each side at least `least`; the canvas is a square."""
    scale = arguments.most / max(height, width)
    rows, columns = (max(round(side * scale), arguments.least) for side in (height, width))
    return Fit(rows, columns, *(max(rows, columns),) * 2)


def _letterbox(height: int, width: int, arguments: SizeArguments) -> Fit:
    """Fit the image in the first canvas, and round its sides; if `most` is set, enlarge it at most by that factor.

    If `factor` is more than 1, the canvas is reduced by as many multiples of `factor` as the image leaves free.
    """
    rows, columns = arguments.canvases[0]
    scale = min(rows / height, columns / width)
    if arguments.most:
        scale = min(scale, float(arguments.most))
    high, wide = (max(round(side * scale), 1) for side in (height, width))
    if arguments.factor > 1:
        rows, columns = high + (rows - high) % arguments.factor, wide + (columns - wide) % arguments.factor
    return Fit(high, wide, rows, columns)


RULES: dict[str, Rule] = {
    "aria": Rule(_aria),
    "around-rounded": Rule(_around_rounded, "canvases"),
    "cohere2": Rule(_cohere2),
    "cosmos3": Rule(_cosmos3),
    "detectron2": Rule(_detectron2),
    "detr": Rule(_detr),
    "down": Rule(_down, "factor"),
    "dpt": Rule(_dpt, "canvases"),
    "gemma4": Rule(_gemma4),
    "glm-image": Rule(_glm_image),
    "glm4v": Rule(_glm4v),
    "glm5": Rule(_glm5),
    "glm5-video": Rule(_glm5_video),
    "granite-docling": Rule(_granite),
    "hunyuan-v4-video": Rule(_hunyuan_v4_video),
    "idefics2": Rule(_idefics2),
    "idefics3": Rule(_idefics3),
    "idefics3-capped": Rule(_idefics3_capped),
    "idefics3-tiles": Rule(_idefics3_tiles, "factor"),
    "internvl": Rule(_internvl),
    "janus": Rule(_janus),
    "kimi": Rule(_kimi),
    "letterbox": Rule(_letterbox, "canvases"),
    "lfm2": Rule(_lfm2),
    "lfm2-tiles": Rule(_lfm2_tiles),
    "llama4": Rule(_llama4),
    "llava-next": Rule(_llava_next, "canvases"),
    "longest": Rule(_longest),
    "longest-cut": Rule(_longest_cut),
    "longest-rounded": Rule(_longest_rounded),
    "maskformer": Rule(_maskformer),
    "minicpm": Rule(_minicpm),
    "minicpm-slices": Rule(_minicpm_slices),
    "mirrored": Rule(_mirrored, "factor"),
    "mllama": Rule(_mllama),
    "molmo2": Rule(_molmo2),
    "muse-glimmer": Rule(_muse),
    "neomme": Rule(_neomme, "factor"),
    "nemotron": Rule(_nemotron),
    "nemotron-video": Rule(_nemotron_video),
    "next": Rule(_next, "factor"),
    "on-canvas": Rule(_to_canvas, "factor"),
    "ovis2": Rule(_ovis2),
    "paddleocr-vl": Rule(_paddleocr_vl),
    "perception-lm": Rule(_perception_lm),
    "perceiver": Rule(_perceiver, "canvases"),
    "phi4": Rule(_phi4),
    "pixtral": Rule(_pixtral),
    "pp-ocr": Rule(_ppocr, "canvases"),
    "qwen2-vl": Rule(_qwen2_vl),
    "qwen2-vl-video": Rule(_qwen2_vl_video),
    "qwen3-vl-video": Rule(_qwen3_vl_video),
    "shortest-rounded": Rule(_shortest_rounded, "least"),
    "shortest-up": Rule(_shortest_up, "least"),
    "siglip2": Rule(_siglip2),
    "step3-whole": Rule(_step3_whole),
    "step3-windows": Rule(_step3_windows),
    "text-line": Rule(_text_line, "canvases"),
    "thumbnail": Rule(_thumbnail, "canvases"),
    "tiles-of-large": Rule(_tiles_of_large),
    "up": Rule(_up, "factor"),
    "vilt": Rule(_vilt),
    "within": Rule(_within, "canvases"),
    "within-or-less": Rule(_within_or_less, "canvases"),
    "within-rounded": Rule(_within_rounded, "canvases"),
    "yolos": Rule(_yolos),
    "zoedepth": Rule(_zoedepth, "canvases"),
}
"""The rules by name."""


def pairs(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return consecutive numbers as pairs (height, width)."""
    return tuple(zip(numbers[::2], numbers[1::2]))
