"""The handwritten digits to train on, and encoded images of them, as clients send them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

HELD_OUT = 200


class Split(NamedTuple):
    """Training and held-out digits.

    Attributes:
        train_digits, held_out_digits: UINT8 (n, 8, 8), ink is bright.
        train_labels, held_out_labels: INT64 (n,), 0 to 9.
    """

    train_digits: np.ndarray
    held_out_digits: np.ndarray
    train_labels: np.ndarray
    held_out_labels: np.ndarray


def load_split() -> Split:
    """Return scikit-learn's bundled digits; the 200 held out are the same every time."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    pixels = np.rint(images.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    return Split(
        *train_test_split(pixels, labels.astype(np.int64), test_size=HELD_OUT, random_state=0, stratify=labels)
    )


def write_digits(folder: Path, digits: np.ndarray) -> list[str]:
    """Write each digit as a PNG of its 8x8 pixels; return the paths."""
    paths = [folder / f"{number:04}.png" for number in range(len(digits))]
    for path, digit in zip(paths, digits):
        Image.fromarray(digit).save(path)
    return list(map(str, paths))


@dataclass(frozen=True)
class Look:
    """How a digit becomes an encoded image.

    Attributes:
        side: the image's side, in pixels.
        encoding: "PNG" or "JPEG".
        colour: three channels instead of one.
        quality: the quality of a JPEG.
        resampling: the filter that enlarges the 8x8 digit.
        angle: degrees by which it is turned.
        shift: (x, y), by which it is moved, as a fraction of the side.
        zoom: its size as a fraction of the image's.
        inverted: dark ink on a bright ground.
    """

    side: int
    encoding: str = "PNG"
    colour: bool = False
    quality: int = 90
    resampling: Image.Resampling = Image.Resampling.BICUBIC
    angle: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)
    zoom: float = 1.0
    inverted: bool = False


def random_look(rng: np.random.Generator) -> Look:
    """Return a look for training: any size from 8 to 256, any encoding, slightly turned, moved and shrunk."""
    return Look(
        side=round(2 ** rng.uniform(3, 8)),
        encoding=str(rng.choice(["PNG", "JPEG"])),
        colour=bool(rng.integers(2)),
        quality=int(rng.integers(40, 96)),
        resampling=rng.choice([Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC]),
        angle=float(rng.normal(0, 6)),
        shift=(float(rng.normal(0, 0.04)), float(rng.normal(0, 0.04))),
        zoom=float(rng.uniform(0.85, 1.08)),
        inverted=bool(rng.random() < 0.25),
    )


def encode(digit: np.ndarray, look: Look) -> bytes:
    """Return a digit, UINT8 (8, 8), as the bytes of an image file."""
    image = Image.fromarray(digit).resize((look.side, look.side), look.resampling)
    if look.angle or look.zoom != 1.0 or look.shift != (0.0, 0.0):
        image = image.transform(image.size, Image.Transform.AFFINE, _placement(look), Image.Resampling.BILINEAR)
    if look.inverted:
        image = image.point(lambda value: 255 - value)
    if look.colour:
        image = image.convert("RGB")
    buffer = io.BytesIO()
    image.save(buffer, look.encoding, **({"quality": look.quality} if look.encoding == "JPEG" else {}))
    return buffer.getvalue()


def _placement(look: Look) -> tuple[float, ...]:
    """Return the affine map from output to input pixels that turns, shrinks and moves about the centre."""
    centre = look.side / 2
    cos, sin = np.cos(np.radians(look.angle)) / look.zoom, np.sin(np.radians(look.angle)) / look.zoom
    x, y = (centre + offset * look.side for offset in look.shift)
    return (cos, sin, centre - cos * x - sin * y, -sin, cos, centre + sin * x - cos * y)
