"""Example data for operators: the samples and arguments with which sweeps and documentation call operators.

Samples are synthetic, of different extents, and deterministic.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

Promise = Literal["batch", "devices", "empty batch", "isolation", "sequences", "saving", "tensor arguments"]
"""The guarantees that every operator gives, unless its schema's ``exempt`` states a reason why it does not:

- ``batch``: a batch gives the same results as its samples do one by one;
- ``devices``: CPU and GPU agree;
- ``empty batch``: an empty batch gives an empty batch;
- ``isolation``: a failing sample does not affect the others;
- ``sequences``: a sequence gives the same results as its frames do;
- ``saving``: a pipeline gives the same results after saving and loading, in either format;
- ``tensor arguments``: an argument computed in the graph means the same as the constant.
"""

# Extents of the first samples, by the letter of the dimension: all different, and even where Bayer mosaics need that.
_EXTENTS = {"F": (2, 3, 2), "D": (4, 3, 5), "H": (16, 24, 20), "W": (24, 18, 30), "C": (3, 3, 3)}


@dataclass(frozen=True)
class ExampleSamples:
    """Example samples for an input.

    Attributes:
        make: function that makes the sample with a given index.
        layout: the layout of all samples.
        bad: a sample that the operator rejects, or None.
    """

    make: Callable[[int], np.ndarray]
    layout: str = ""
    bad: np.ndarray | None = None

    def with_bad_sample(self, index: int) -> ExampleSamples:
        """Return the same samples with the bad sample at ``index``, if there is one."""
        bad = self.bad
        return self if bad is None else replace(self, make=lambda i: bad if i == index else self.make(i))

    def sequences(self) -> ExampleSamples:
        """Return sequences of two frames: each sample, followed by the same sample upside down."""

        def make(index: int) -> np.ndarray:
            first = self.make(index)
            return np.stack([first, first[::-1]])

        return ExampleSamples(make, "F" + (self.layout or "*" * self.make(0).ndim))

    def frame(self, number: int) -> ExampleSamples:
        """Return frame ``number`` of each sequence."""
        return ExampleSamples(lambda index: self.make(index)[number], self.layout[1:].replace("*", ""))


MakeSamples = Callable[[str], ExampleSamples]
"""A function that makes the samples of an input; its argument is one of the input's layouts, or empty if the input accepts any."""


def pictures(layout: str = "", **extents: tuple[int, ...]) -> ExampleSamples:
    """Make smooth images with some noise, or volumes or sequences of them, uint8; ``extents``: the extents for letters of the layout."""
    layout = layout.replace("*", "") or "HWC"
    sizes = _EXTENTS | extents

    def make(index: int) -> np.ndarray:
        shape = tuple(sizes[letter][index % len(sizes[letter])] for letter in layout)
        rng = np.random.default_rng([index, *map(ord, layout)])
        waves: np.ndarray = sum(
            np.sin(positions / (2 + axis) + index) for axis, positions in enumerate(np.indices(shape))
        )
        return (255 * ((waves / len(shape) + 1) * 0.35 + 0.3 * rng.random(shape))).astype(np.uint8)

    return ExampleSamples(make, layout)


def random_arrays(
    *shapes: tuple[int, ...],
    dtype: type[np.generic] = np.float32,
    low: float = -1,
    high: float = 1,
    layout: str = "",
) -> MakeSamples:
    """Return a function that makes samples of uniform random numbers; samples cycle through the shapes."""

    def make(index: int) -> np.ndarray:
        shape = shapes[index % len(shapes)]
        return np.random.default_rng([index, *shape]).uniform(low, high, shape).astype(dtype)

    return lambda _: ExampleSamples(make, layout)


def fixed_arrays(*samples: object, dtype: type[np.generic] = np.float32, layout: str = "") -> MakeSamples:
    """Return a function that makes samples which cycle through these arrays."""
    arrays = [np.array(sample, dtype) for sample in samples]
    return lambda _: ExampleSamples(lambda index: arrays[index % len(arrays)].copy(), layout)


def signals(layout: str = "") -> ExampleSamples:
    """Make sounds of different lengths, with rising pitch and some noise."""

    def make(index: int) -> np.ndarray:
        count = (3000, 1100, 2048)[index % 3]
        times = np.arange(count) / 8000
        noise = np.random.default_rng(index).uniform(-0.1, 0.1, count)
        return (0.5 * np.sin(2 * math.pi * (300 + 100 * index + 2000 * times) * times) + noise).astype(np.float32)

    return ExampleSamples(make)


def boxes(layout: str = "") -> ExampleSamples:
    """Make boxes in fractions of an image, float of shape (n, 4): left, top, right, bottom."""

    def make(index: int) -> np.ndarray:
        rng = np.random.default_rng(index)
        count = (3, 1, 5)[index % 3]
        return np.hstack([rng.uniform(0, 0.4, (count, 2)), rng.uniform(0.5, 0.9, (count, 2))]).astype(np.float32)

    return ExampleSamples(make)


def photos(layout: str = "") -> ExampleSamples:
    """Make RGB pictures of 160x240 pixels; the documentation shows real photographs in place of them."""
    return ExampleSamples(_photo, "HWC")


def _photo(index: int) -> np.ndarray:
    return pictures("HWC", H=(160,), W=(240,)).make(index)


def photo_files(layout: str = "") -> ExampleSamples:
    """Make encoded files of the same pictures as :func:`photos`."""
    return ExampleSamples(_photo_file)


def _photo_file(index: int) -> np.ndarray:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(_photo(index)).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def mosaics(layout: str = "") -> ExampleSamples:
    """Make Bayer mosaics of the same pictures as :func:`photos`: red, green or blue for each pixel, in the pattern RGGB."""
    return ExampleSamples(_mosaic, "HW")


def _mosaic(index: int) -> np.ndarray:
    return mosaic_of(_photo(index))


def mosaic_of(photo: np.ndarray) -> np.ndarray:
    """Return the Bayer mosaic of a photo, in the pattern RGGB."""
    mosaic = photo[..., 1].copy()
    mosaic[::2, ::2] = photo[::2, ::2, 0]
    mosaic[1::2, 1::2] = photo[1::2, 1::2, 2]
    return mosaic


def sounds(layout: str = "") -> ExampleSamples:
    """Make half a second of sound at 16 kHz: two notes with overtones, each of which fades out."""

    def make(index: int) -> np.ndarray:
        times = np.arange(8000) / 16000
        notes = []
        for pitch in (330.0, 440.0):
            overtones = sum(np.sin(2 * math.pi * pitch * k * times) / k for k in range(1, 8))
            notes.append(overtones * np.exp(-12 * times) * np.minimum(times * 200, 1))
        return (0.3 * np.concatenate(notes)).astype(np.float32)

    return ExampleSamples(make)


def spectrograms(layout: str = "") -> ExampleSamples:
    """Make power spectrograms of the same sounds as :func:`sounds`, with 257 frequencies."""

    def make(index: int) -> np.ndarray:
        frames = np.lib.stride_tricks.sliding_window_view(sounds().make(index), 512)[::128]
        return (np.abs(np.fft.rfft(frames * np.hanning(512))) ** 2).T.astype(np.float32, order="C")

    return ExampleSamples(make, "ft")


def decibels(layout: str = "") -> ExampleSamples:
    """Make the same spectrograms as :func:`spectrograms`, in decibels."""

    def make(index: int) -> np.ndarray:
        levels: np.ndarray = 10 * np.log10(np.maximum(spectrograms().make(index), 1e-8))
        return levels.astype(np.float32)

    return ExampleSamples(make, "ft")


@dataclass(frozen=True)
class Example:
    """A valid call of an operator.

    Args:
        arguments: the constant arguments; required arguments that are missing get the example of their declaration.
        inputs: functions that make the samples of the first inputs; further inputs get the example of their declaration.
        layout: the layout of the first input; by default, the first layout that the input declares.
        title: a title that says what the call shows.
    """

    arguments: Mapping[str, object] = field(default_factory=dict)
    inputs: tuple[MakeSamples, ...] = ()
    layout: str = ""
    title: str = ""


def on_photo(title: str = "", /, **arguments: object) -> Example:
    """Make an example that is called on a photograph, for the documentation."""
    return Example(arguments, (photos,), title=title)
