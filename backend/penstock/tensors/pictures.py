"""Shows samples in notebooks and reports: images as thumbnails, signals as curves, anything else as numbers.

Everything is self-contained HTML. Images need Pillow; without it they are shown as numbers.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np

# The largest number of samples of a batch, and of frames of a sequence, that are shown.
MAX_SHOWN = 16
_MAX_SHOWN_FRAMES = 6
# Signals and pictures smaller than this are shown as numbers, which are then easier to read.
_MIN_SIGNAL_SAMPLES, _MIN_PICTURE_SIDE = 64, 8
_MAX_CURVE_POINTS = 600
# 80 dB below the highest power of a spectrum.
_MIN_RELATIVE_POWER = 1e-8
_STYLE = "display:inline-block;margin:4px;vertical-align:top;font:11px monospace;text-align:center"
# Colour stops of spectrograms, from quiet to loud.
_COLOURS = np.array([[20, 11, 53], [101, 21, 110], [188, 55, 84], [245, 125, 21], [252, 255, 164]], np.float32)


def batch_html(heading: str, samples: Sequence[np.ndarray], layout: str, count: int, edge: int = 160) -> str:
    """Return a batch as HTML, with its first samples side by side.

    Args:
        heading: one line about the batch.
        samples: the first samples of the batch, which are shown as far as there is room.
        layout: the layout of a sample, or empty.
        count: the number of all samples.
        edge: the longest side of a picture, in pixels.
    """
    shown = samples[:MAX_SHOWN]
    figures = "".join(sample_html(sample, layout, edge, f"#{index} ") for index, sample in enumerate(shown))
    more = f"<div>… {count - len(shown)} more</div>" if count > len(shown) else ""
    return f'<div class="penstock-batch"><code>{escape(heading)}</code><div>{figures}</div>{more}</div>'


def sample_html(sample: np.ndarray, layout: str = "", edge: int = 160, label: str = "") -> str:
    """Return a sample as HTML, with a one-line description: a picture if possible, otherwise numbers."""
    body = _picture(sample, layout, edge) or _values(sample)
    shape = "×".join(map(str, sample.shape)) or "scalar"
    what = f"{label}{shape} {sample.dtype}{_range(sample)}"
    return f'<figure style="{_STYLE}">{body}<figcaption>{escape(what)}</figcaption></figure>'


def _picture(sample: np.ndarray, layout: str, edge: int) -> str:
    """Return a picture of the sample; an empty string if it is not an image or signal, or Pillow is not installed."""
    if not sample.size or sample.dtype.kind not in "biuf":
        return ""
    if sample.ndim == 1:
        return _curve(sample, edge) if _is_signal(sample) else ""
    frames = _frames(sample, layout)
    try:
        return "".join(_png(frame, edge) for frame in frames[:_MAX_SHOWN_FRAMES])
    except ImportError:
        return ""


def _values(sample: np.ndarray) -> str:
    if sample.dtype.kind not in "biuf" or not sample.size:
        return "<pre>empty</pre>" if not sample.size else f"<pre>{escape(repr(sample.dtype))}</pre>"
    text = np.array2string(sample, threshold=24, edgeitems=3, precision=5, max_line_width=60)
    return f'<pre style="text-align:left;margin:2px">{escape(text)}</pre>'


def _range(sample: np.ndarray) -> str:
    """Return the lowest and the highest value of a sample that is shown in false colours, as text."""
    if sample.dtype.kind != "f" or sample.size < 2:
        return ""
    low, high = _bounds(sample)
    return f" {low:.4g} … {high:.4g}"


def _bounds(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


# -- images ------------------------------------------------------------------------------------------------------------


def _frames(sample: np.ndarray, layout: str) -> list[np.ndarray]:
    """Return the images in a sample, as bytes in HW or in HWC with three channels; empty if it contains no images."""
    if not layout:
        layout = _likely_layout(sample)
    if "H" in layout and "W" in layout and len(layout) == sample.ndim:
        channels = "C" if "C" in layout else ""
        others = [axis for axis, name in enumerate(layout) if name not in "HWC"]
        order = [*others, *(layout.index(name) for name in f"HW{channels}")]
        images = sample.transpose(order).reshape(-1, *(sample.shape[axis] for axis in order[len(others) :]))
        return [_as_bytes(_in_colour(image) if channels else image) for image in images[:_MAX_SHOWN_FRAMES]]
    if sample.ndim == 2 and min(sample.shape) >= _MIN_PICTURE_SIDE:
        # Time runs to the right, frequency upwards.
        rows = sample.T if layout == "tf" else sample
        return [_heat(_decibels_to_colours(rows) if {*layout} == {*"ft"} else rows)[::-1]]
    return []


def _likely_layout(sample: np.ndarray) -> str:
    """Guess the layout of a sample without a layout from its shape; empty if it is probably not an image."""
    if sample.ndim != 3 or sample.dtype.kind not in "buf":
        return ""
    if sample.shape[2] in (1, 3, 4) and min(sample.shape[:2]) > 1:
        return "HWC"
    return "CHW" if sample.shape[0] in (1, 3) and min(sample.shape[1:]) > 1 else ""


def _in_colour(image: np.ndarray) -> np.ndarray:
    channels = image.shape[2]
    if channels == 1:
        return image[..., 0]
    return np.pad(image, ((0, 0), (0, 0), (0, 1))) if channels == 2 else image[..., :3]


def _as_bytes(image: np.ndarray) -> np.ndarray:
    """Convert an image to bytes: floats from 0 to 1 or from 0 to 255 keep their scale, others are scaled to their range."""
    if image.dtype == np.uint8:
        return image
    low, high = _bounds(image)
    whole = next((white for white in (1.0, 255.0) if low >= 0 and high <= white), None)
    if image.dtype.kind == "f" and whole is not None:
        low, high = 0.0, whole
    return (_unit(image, low, high) * 255).round().astype(np.uint8)


def _unit(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scale values so that ``low`` becomes 0 and ``high`` becomes 1; NaN becomes 0."""
    scaled = (values.astype(np.float32) - low) / ((high - low) or 1.0)
    finite: np.ndarray = np.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=0.0)
    return finite.clip(0.0, 1.0)


def _decibels_to_colours(spectrum: np.ndarray) -> np.ndarray:
    """Return the colours of a spectrum's powers in decibels, floored at silence; a spectrum with negative values is already in decibels."""
    low, high = _bounds(spectrum)
    if low < 0 or high <= 0:
        return spectrum
    return 10 * np.log10(np.maximum(spectrum.astype(np.float32), high * _MIN_RELATIVE_POWER))


def _heat(values: np.ndarray) -> np.ndarray:
    position = _unit(values, *_bounds(values)) * (len(_COLOURS) - 1)
    steps = np.arange(len(_COLOURS))
    return np.stack([np.interp(position, steps, _COLOURS[:, channel]) for channel in range(3)], 2).astype(np.uint8)


def _png(image: np.ndarray, edge: int) -> str:
    from PIL import Image

    # If the image is much larger than the picture, Pillow need not process every pixel.
    step = max(1, max(image.shape[:2]) // (4 * edge))
    thumbnail = Image.fromarray(np.ascontiguousarray(image[::step, ::step]))
    thumbnail.thumbnail((edge, edge))
    stream = io.BytesIO()
    thumbnail.save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    scale = max(1, edge // 2 // max(thumbnail.size))
    width, height = (side * scale for side in thumbnail.size)
    return f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" style="image-rendering:pixelated;margin:1px">'


# -- signals -----------------------------------------------------------------------------------------------------------


def _is_signal(sample: np.ndarray) -> bool:
    """Return whether a sample is a signal; bytes are not, as they may be encoded data."""
    return sample.size >= _MIN_SIGNAL_SAMPLES and sample.dtype.kind in "if" and sample.dtype.itemsize > 1


def _curve(signal: np.ndarray, edge: int) -> str:
    """Draw the minimum and maximum of each piece of the signal, as an outline."""
    width, height = 2 * edge, edge / 2
    unit = _unit(signal, *_bounds(signal))
    pieces = np.array_split(unit, min(_MAX_CURVE_POINTS, len(unit)))
    across = np.linspace(0, width, len(pieces))
    top = [f"{x:.1f},{(1 - piece.max()) * height:.1f}" for x, piece in zip(across, pieces)]
    bottom = [f"{x:.1f},{(1 - piece.min()) * height:.1f}" for x, piece in zip(across, pieces)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}">'
        f'<polygon points="{" ".join(top + bottom[::-1])}" fill="#2b6cb0" stroke="#2b6cb0" stroke-width="0.7"/></svg>'
    )
