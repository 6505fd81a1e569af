"""Colour operations, a small filter and warps with exactly Pillow's results, and convolutions with exactly PyTorch's, on the CPU.

Sources: Pillow's `Convert.c`, `Blend.c`, `Filter.c` and `Geometry.c`. Pillow is compiled without fused multiply-add, so these
kernels do not use it, either. PyTorch's depthwise convolutions add the taps one after the other, row by row, with fused multiply-add.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import fused

NEAREST, BILINEAR, BICUBIC = 0, 2, 3
_ZERO, _MOST = np.float32(0.0), np.float32(255.0)
# The fixed-point warp is used only if all coordinates are below this.
_FIXED = 32768.0


@inner
def _clipped(value: np.float32) -> np.uint8:
    return np.uint8(0) if value <= _ZERO else np.uint8(255) if value >= _MOST else np.uint8(value)


@kernel
def luma(pixels: np.ndarray, result: np.ndarray) -> None:
    """Convert pixels of shape (n, 3) or (n, 4) to mode L, of shape (n,)."""
    for i in range(len(pixels)):
        red, green, blue = np.uint32(pixels[i, 0]), np.uint32(pixels[i, 1]), np.uint32(pixels[i, 2])
        total = red * np.uint32(19595) + green * np.uint32(38470) + blue * np.uint32(7471) + np.uint32(32768)
        result[i] = total >> np.uint32(16)


@kernel
def blend(first: np.ndarray, second: np.ndarray, share: np.float32, result: np.ndarray) -> None:
    """Blend contiguous arrays of the same size: a share of 0 gives ``first``, 1 gives ``second``; shares below 0 or above 1 extrapolate."""
    for i in range(result.size):
        one = np.int32(first[i])
        difference = np.float32(np.int32(second[i]) - one)
        result[i] = _clipped(np.float32(one) + share * difference)


@kernel
def blend_grey(pixels: np.ndarray, share: np.float32, result: np.ndarray) -> None:
    """Blend the grey version of pixels of shape (n, 3) or (n, 4) with the pixels: a share of 0 gives grey, 1 gives the pixels. A fourth
    channel is copied.
    """
    for i in range(len(pixels)):
        red, green, blue = np.uint32(pixels[i, 0]), np.uint32(pixels[i, 1]), np.uint32(pixels[i, 2])
        total = red * np.uint32(19595) + green * np.uint32(38470) + blue * np.uint32(7471) + np.uint32(32768)
        grey = np.int32(total >> np.uint32(16))
        for c in range(3):
            difference = np.float32(np.int32(pixels[i, c]) - grey)
            result[i, c] = _clipped(np.float32(grey) + share * difference)
        for c in range(3, pixels.shape[1]):
            result[i, c] = pixels[i, c]


@kernel
def count_levels(pixels: np.ndarray, counts: np.ndarray) -> None:
    """Count the values of each channel of pixels of shape (n, C), in ``counts`` of shape (C, 256)."""
    flat, channels = pixels.ravel(), pixels.shape[1]
    for c in range(channels):
        row = counts[c]
        for i in range(c, flat.size, channels):
            row[flat[np.uintp(i)]] += 1


@kernel
def look_up_levels(pixels: np.ndarray, tables: np.ndarray, result: np.ndarray) -> None:
    """Look up the values of pixels of shape (n, C) in each channel's table; ``tables`` has the shape (C, 256)."""
    flat, ends, channels = pixels.ravel(), result.ravel(), pixels.shape[1]
    for c in range(channels):
        row = tables[c]
        for i in range(c, flat.size, channels):
            ends[np.uintp(i)] = row[flat[np.uintp(i)]]


@kernel
def shift_hue(pixels: np.ndarray, shift: int, result: np.ndarray) -> None:
    """Convert pixels (n, 3) to mode HSV, add ``shift`` to the hue, and convert back."""
    for i in range(len(pixels)):
        red, green, blue = np.int32(pixels[i, 0]), np.int32(pixels[i, 1]), np.int32(pixels[i, 2])
        most, least = max(red, green, blue), min(red, green, blue)
        hue, saturation = 0, 0
        if most != least:
            span = np.float32(most - least)
            r, g, b = np.float32(most - red) / span, np.float32(most - green) / span, np.float32(most - blue) / span
            if red == most:
                turn = np.float32(b - g)
            elif green == most:
                turn = np.float32(2.0 + np.float64(r) - np.float64(b))
            else:
                turn = np.float32(4.0 + np.float64(g) - np.float64(r))
            circles = np.float64(turn) / 6.0 + 1.0
            turn = np.float32(circles - math.floor(circles))
            hue = min(max(int(np.float64(turn) * 255.0), 0), 255)
            saturation = min(max(int(np.float64(span / np.float32(most)) * 255.0), 0), 255)
        hue = (hue + shift) & 255
        if saturation == 0:
            result[i, 0] = result[i, 1] = result[i, 2] = most
            continue
        sector = math.floor(np.float64(np.float32(hue)) * 6.0 / 255.0)
        rest = np.float32(np.float64(np.float32(hue)) * 6.0 / 255.0 - np.float64(np.float32(sector)))
        share, value = np.float32(np.float32(saturation) / 255.0), np.float64(np.float32(most))
        p = _rounded(value * (1.0 - np.float64(share)))
        q = _rounded(value * (1.0 - np.float64(share * rest)))
        t = _rounded(value * (1.0 - np.float64(share) * (1.0 - np.float64(rest))))
        sector = sector % 6
        result[i, 0] = most if sector in (0, 5) else q if sector == 1 else t if sector == 4 else p
        result[i, 1] = most if sector in (1, 2) else t if sector == 0 else q if sector == 3 else p
        result[i, 2] = most if sector in (3, 4) else t if sector == 2 else q if sector == 5 else p


@inner
def _rounded(value: float) -> int:
    """Return a number rounded half up and clipped to [0, 255]."""
    return min(max(math.floor(value + 0.5), 0), 255)


@kernel
def smooth(image: np.ndarray, result: np.ndarray) -> None:
    """Apply `ImageFilter.SMOOTH` to an image (H, W, C) with at least three rows and columns; the border is unchanged."""
    height, width, channels = image.shape
    side, centre = np.float32(1.0) / np.float32(13.0), np.float32(5.0) / np.float32(13.0)
    lines, smoothed = image.reshape((height, width * channels)), result.reshape((height, width * channels))
    smoothed[0], smoothed[height - 1] = lines[0], lines[height - 1]
    inside = (width - 2) * channels
    for y in range(1, height - 1):
        result[y, 0], result[y, width - 1] = image[y, 0], image[y, width - 1]
        _smooth_line(lines[y - 1], lines[y], lines[y + 1], channels, side, centre, smoothed[y, channels:][:inside])


@inner
def _smooth_line(
    above: np.ndarray,
    line: np.ndarray,
    below: np.ndarray,
    channels: int,
    side: np.float32,
    centre: np.float32,
    out: np.ndarray,
) -> None:
    """Compute the pixels between the first and the last one of a line, in a vectorized loop; sums are in Pillow's order."""
    above_middle, middle, below_middle = above[channels:], line[channels:], below[channels:]
    above_right, right, below_right = above[2 * channels :], line[2 * channels :], below[2 * channels :]
    for i in range(out.size):
        total = np.float32(0.5)
        lower = np.float32(below[i]) * side + np.float32(below_middle[i]) * side
        total += lower + np.float32(below_right[i]) * side
        same = np.float32(line[i]) * side + np.float32(middle[i]) * centre
        total += same + np.float32(right[i]) * side
        upper = np.float32(above[i]) * side + np.float32(above_middle[i]) * side
        total += upper + np.float32(above_right[i]) * side
        out[i] = _clipped(total)


@inner
def _cubic(a: float, b: float, c: float, d: float, place: float) -> float:
    third = 2 * (a - b) + c - d
    fourth = -a + b - c + d
    return b + place * (-a + c + place * (third + place * fourth))


@inner
def _bilinear(image: np.ndarray, x: int, y: int, dx: float, dy: float, c: int) -> float:
    height, width, _ = image.shape
    left, right = min(max(x, 0), width - 1), min(max(x + 1, 0), width - 1)
    row = min(max(y, 0), height - 1)
    first, second = float(image[row, left, c]), float(image[row, right, c])
    upper = first + (second - first) * dx
    if not 0 <= y + 1 < height:
        return upper
    first, second = float(image[y + 1, left, c]), float(image[y + 1, right, c])
    lower = first + (second - first) * dx
    return upper + (lower - upper) * dy


@inner
def _cubic_line(image: np.ndarray, row: int, x: int, dx: float, c: int) -> float:
    last = image.shape[1] - 1
    a, b = float(image[row, min(max(x - 1, 0), last), c]), float(image[row, min(max(x, 0), last), c])
    d, e = float(image[row, min(max(x + 1, 0), last), c]), float(image[row, min(max(x + 2, 0), last), c])
    return _cubic(a, b, d, e, dx)


@inner
def _bicubic(image: np.ndarray, x: int, y: int, dx: float, dy: float, c: int) -> float:
    """Interpolate channel ``c`` bicubically; rows outside the image repeat the row above them."""
    height = image.shape[0]
    first = _cubic_line(image, min(max(y - 1, 0), height - 1), x, dx, c)
    second = _cubic_line(image, y, x, dx, c) if 0 <= y < height else first
    third = _cubic_line(image, y + 1, x, dx, c) if 0 <= y + 1 < height else second
    fourth = _cubic_line(image, y + 2, x, dx, c) if 0 <= y + 2 < height else third
    return _cubic(first, second, third, fourth, dy)


@inner
def _copy_pixel(flat: np.ndarray, source: int, ends: np.ndarray, target: int, channels: int) -> None:
    # Indices are unsigned, so that numba generates no code for negative ones.
    begin, end = np.uintp(source * channels), np.uintp(target * channels)
    for c in range(np.uintp(channels)):
        ends[end + c] = flat[begin + c]


@kernel
def _warp_general(image: np.ndarray, terms: np.ndarray, perspective: bool, kind: int, result: np.ndarray) -> None:
    height, width, channels = image.shape
    flat, ends = image.ravel(), result.ravel()
    for y in range(result.shape[0]):
        down = y + 0.5
        for x in range(result.shape[1]):
            across = x + 0.5
            u = terms[0] * across + terms[1] * down + terms[2]
            v = terms[3] * across + terms[4] * down + terms[5]
            if perspective:
                scale = terms[6] * across + terms[7] * down + 1
                u, v = u / scale, v / scale
            if not (0.0 <= u < width and 0.0 <= v < height):
                continue
            if kind == NEAREST:
                _copy_pixel(flat, int(v) * width + int(u), ends, y * result.shape[1] + x, channels)
                continue
            u, v = u - 0.5, v - 0.5
            column, row = math.floor(u), math.floor(v)
            for c in range(channels):
                if kind == BILINEAR:
                    result[y, x, c] = np.uint8(_bilinear(image, column, row, u - column, v - row, c))
                else:
                    value = _bicubic(image, column, row, u - column, v - row, c)
                    result[y, x, c] = np.uint8(min(max(value, 0.0), 255.0))


@inner
def _fixed(value: float) -> int:
    return math.floor(value * 65536.0 + 0.5)


@kernel
def _warp_fixed(image: np.ndarray, terms: np.ndarray, result: np.ndarray) -> None:
    """Copy the nearest pixels, with positions in fixed point with 16 fractional bits."""
    height, width, channels = image.shape
    flat, ends = image.ravel(), result.ravel()
    a, b, d, e = _fixed(terms[0]), _fixed(terms[1]), _fixed(terms[3]), _fixed(terms[4])
    left = _fixed(terms[2] + terms[0] * 0.5 + terms[1] * 0.5)
    top = _fixed(terms[5] + terms[3] * 0.5 + terms[4] * 0.5)
    for y in range(result.shape[0]):
        across, down = left, top
        for x in range(result.shape[1]):
            column, row = across >> 16, down >> 16
            if 0 <= column < width and 0 <= row < height:
                _copy_pixel(flat, row * width + column, ends, y * result.shape[1] + x, channels)
            across += a
            down += d
        left += b
        top += e


@kernel
def _warp_scaled(image: np.ndarray, terms: np.ndarray, result: np.ndarray) -> None:
    """Copy the nearest pixels, for transforms that only scale and translate."""
    height, width, channels = image.shape
    flat, ends = image.ravel(), result.ravel()
    columns = np.full(result.shape[1], -1, np.int64)
    across = terms[2] + terms[0] * 0.5
    for x in range(columns.size):
        if 0.0 <= across < width:
            columns[x] = int(across)
        across += terms[0]
    down = terms[5] + terms[4] * 0.5
    for y in range(result.shape[0]):
        if 0.0 <= down < height:
            for x in range(columns.size):
                if columns[x] >= 0:
                    source = int(down) * width + columns[x]
                    _copy_pixel(flat, source, ends, y * columns.size + x, channels)
        down += terms[4]


def warp(image: np.ndarray, terms: np.ndarray, kind: int, result: np.ndarray) -> None:
    """Compute `Image.transform`: overwrite the pixels of ``result`` that come from inside the image.

    Args:
        image: (H, W, C) of uint8, contiguous.
        terms: the coefficients of the warp, float64: six numbers for AFFINE, or eight for PERSPECTIVE.
        kind: NEAREST, BILINEAR or BICUBIC.
        result: (h, w, C) of uint8, contiguous.
    """
    perspective = len(terms) > 6
    if perspective or kind != NEAREST:
        _warp_general(image, terms, perspective, kind, result)
    elif terms[1] == 0 and terms[3] == 0:
        _warp_scaled(image, terms, result)
    elif _reaches(terms, *result.shape[:2]):
        _warp_general(image, terms, False, kind, result)
    else:
        _warp_fixed(image, terms, result)


def _reaches(terms: np.ndarray, height: int, width: int) -> bool:
    """Return whether a corner of the result maps to coordinates beyond the range of fixed-point numbers."""
    corners = ((0, 0), (width, height), (0, height), (width, 0))
    return any(
        abs(x * a + y * b + c) >= _FIXED for x, y in corners for a, b, c in (terms[:3].tolist(), terms[3:6].tolist())
    )


@kernel
def convolve(image: np.ndarray, kernel: np.ndarray, result: np.ndarray) -> None:
    """Filter an image in float32, and round the result; at its borders, the image is reflected without repeating the outermost pixels.

    Args:
        image: uint8 of shape (H, W, C), with more than half as many rows and columns as the kernel.
        kernel: float32 of shape (rows, columns), both odd.
        result: an array of the image's shape, contiguous.
    """
    height, width, channels = image.shape
    rows, columns = kernel.shape
    above, before = rows // 2, columns // 2
    wider = np.empty((rows, (width + 2 * before) * channels), np.float32)
    sums, ends = np.empty(width * channels, np.float32), result.reshape(height, width * channels)
    for line in range(-above, height + above):
        # `wider` is a ring buffer of as many rows as the filter covers.
        _mirror_line(image, _mirrored(line, height), before, wider[(line + above) % rows])
        y = line - above
        if y < 0:
            continue
        sums[:] = 0.0
        for row in range(rows):
            source = wider[(y + row) % rows]
            for column in range(columns):
                weight, shift = kernel[row, column], column * channels
                for i in range(sums.size):
                    sums[i] = fused(source[shift + i], weight, sums[i])
        for i in range(sums.size):
            ends[y, i] = np.uint8(np.rint(sums[i]))


@inner
def _mirrored(place: int, size: int) -> int:
    place = abs(place)
    return 2 * (size - 1) - place if place >= size else place


@inner
def _mirror_line(image: np.ndarray, row: int, before: int, line: np.ndarray) -> None:
    width, channels = image.shape[1], image.shape[2]
    for x in range(-before, width + before):
        source = _mirrored(x, width)
        for c in range(channels):
            line[(x + before) * channels + c] = image[row, source, c]
