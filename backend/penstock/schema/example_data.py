"""Samples and examples: what an operator's declaration says of the data and the arguments that it takes.

Samples are made up, of different extents, and the same each time.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

Promise = Literal["batch", "devices", "empty batch", "isolation", "sequences", "saving", "tensor arguments"]
"""What holds for every operator, unless its schema says in ``exempt`` why it does not:

- ``batch``: a batch gives what its samples give one by one;
- ``devices``: CPU and GPU agree;
- ``empty batch``: a batch without samples gives one;
- ``isolation``: a sample that fails does so alone;
- ``sequences``: a sequence gives what its frames give;
- ``saving``: a pipeline that was saved and loaded, in either format, gives the same;
- ``tensor arguments``: an argument computed in the graph means what the constant does.
"""

# Extents of the first samples, by the letter of the dimension: different ones, and even, as mosaics are.
_EXTENTS = {"F": (2, 3, 2), "D": (4, 3, 5), "H": (16, 24, 20), "W": (24, 18, 30), "C": (3, 3, 3)}


@dataclass(frozen=True)
class ExampleSamples:
    """What the samples of an input are.

    Attributes:
        make: makes the sample of an index.
        layout: of all samples.
        bad: one that the operator refuses.
    """

    make: Callable[[int], np.ndarray]
    layout: str = ""
    bad: np.ndarray | None = None

    def spoilt(self, index: int) -> ExampleSamples:
        """The same with a bad one among them, if there is such."""
        bad = self.bad
        return self if bad is None else replace(self, make=lambda i: bad if i == index else self.make(i))

    def sequences(self) -> ExampleSamples:
        """Each as the first of two frames, of which the second is the first upside down."""

        def make(index: int) -> np.ndarray:
            first = self.make(index)
            return np.stack([first, first[::-1]])

        return ExampleSamples(make, "F" + (self.layout or "*" * self.make(0).ndim))

    def frame(self, number: int) -> ExampleSamples:
        """Of each sequence the frame of that number."""
        return ExampleSamples(lambda index: self.make(index)[number], self.layout[1:].replace("*", ""))


MakeSamples = Callable[[str], ExampleSamples]
"""Makes the samples of an input in one of its layouts, or of an input of any layout where that is empty."""


def pictures(layout: str = "", **extents: tuple[int, ...]) -> ExampleSamples:
    """Smooth images with some noise, or volumes or sequences of them, of uint8; ``extents`` by the layout's letters."""
    layout = layout.replace("*", "") or "HWC"
    sizes = _EXTENTS | extents

    def make(index: int) -> np.ndarray:
        shape = tuple(sizes[letter][index % len(sizes[letter])] for letter in layout)
        rng = np.random.default_rng([index, *map(ord, layout)])
        waves = sum(np.sin(places / (2 + axis) + index) for axis, places in enumerate(np.indices(shape)))
        return (255 * ((waves / len(shape) + 1) * 0.35 + 0.3 * rng.random(shape))).astype(np.uint8)

    return ExampleSamples(make, layout)


def random_arrays(
    *shapes: tuple[int, ...],
    dtype: type[np.generic] = np.float32,
    low: float = -1,
    high: float = 1,
    layout: str = "",
) -> MakeSamples:
    """Random numbers; the samples take the shapes in turn."""

    def make(index: int) -> np.ndarray:
        shape = shapes[index % len(shapes)]
        return np.random.default_rng([index, *shape]).uniform(low, high, shape).astype(dtype)

    return lambda _: ExampleSamples(make, layout)


def fixed_arrays(*samples: object, dtype: type[np.generic] = np.float32, layout: str = "") -> MakeSamples:
    """These arrays, which the samples take in turn."""
    arrays = [np.array(sample, dtype) for sample in samples]
    return lambda _: ExampleSamples(lambda index: arrays[index % len(arrays)].copy(), layout)


def signals(layout: str = "") -> ExampleSamples:
    """Sounds of different lengths that rise in pitch, with some noise."""

    def make(index: int) -> np.ndarray:
        count = (3000, 1100, 2048)[index % 3]
        times = np.arange(count) / 8000
        noise = np.random.default_rng(index).uniform(-0.1, 0.1, count)
        return (0.5 * np.sin(2 * math.pi * (300 + 100 * index + 2000 * times) * times) + noise).astype(np.float32)

    return ExampleSamples(make)


def boxes(layout: str = "") -> ExampleSamples:
    """Boxes in fractions of an image, float of shape (n, 4): left, top, right, bottom."""

    def make(index: int) -> np.ndarray:
        rng = np.random.default_rng(index)
        count = (3, 1, 5)[index % 3]
        return np.hstack([rng.uniform(0, 0.4, (count, 2)), rng.uniform(0.5, 0.9, (count, 2))]).astype(np.float32)

    return ExampleSamples(make)


def photos(layout: str = "") -> ExampleSamples:
    """RGB pictures of the size of a small photograph, 160x240: the reference puts photographs in their place."""
    return ExampleSamples(_photo, "HWC")


def _photo(index: int) -> np.ndarray:
    return pictures("HWC", H=(160,), W=(240,)).make(index)


def photo_files(layout: str = "") -> ExampleSamples:
    """Such pictures as files."""
    return ExampleSamples(_photo_file)


def _photo_file(index: int) -> np.ndarray:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(_photo(index)).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def mosaics(layout: str = "") -> ExampleSamples:
    """Such pictures as a camera's sensor sees them: red, green or blue at each pixel, in the pattern RGGB."""
    return ExampleSamples(_mosaic, "HW")


def _mosaic(index: int) -> np.ndarray:
    return mosaic_of(_photo(index))


def mosaic_of(photo: np.ndarray) -> np.ndarray:
    """One colour of each pixel, in the pattern RGGB."""
    mosaic = photo[..., 1].copy()
    mosaic[::2, ::2] = photo[::2, ::2, 0]
    mosaic[1::2, 1::2] = photo[1::2, 1::2, 2]
    return mosaic


def sounds(layout: str = "") -> ExampleSamples:
    """A second at 16 kHz: two notes with overtones, each fading out, and silence between them."""

    def make(index: int) -> np.ndarray:
        times = np.arange(8000) / 16000
        notes = []
        for pitch in (330.0, 440.0):
            overtones = sum(np.sin(2 * math.pi * pitch * k * times) / k for k in range(1, 8))
            notes.append(overtones * np.exp(-12 * times) * np.minimum(times * 200, 1))
        return (0.3 * np.concatenate(notes)).astype(np.float32)

    return ExampleSamples(make)


def spectrograms(layout: str = "") -> ExampleSamples:
    """Of these sounds: powers of 257 frequencies."""

    def make(index: int) -> np.ndarray:
        frames = np.lib.stride_tricks.sliding_window_view(sounds().make(index), 512)[::128]
        return (np.abs(np.fft.rfft(frames * np.hanning(512))) ** 2).T.astype(np.float32)

    return ExampleSamples(make, "ft")


def decibels(layout: str = "") -> ExampleSamples:
    """The same in decibels."""

    def make(index: int) -> np.ndarray:
        return (10 * np.log10(np.maximum(spectrograms().make(index), 1e-8))).astype(np.float32)

    return ExampleSamples(make, "ft")


@dataclass(frozen=True)
class Example:
    """A call that works.

    Args:
        arguments: the constant arguments; required ones that are not among them have the example of their declaration.
        inputs: what makes the samples of the first inputs; the others have the example of their declaration.
        layout: of the first input; by default the first that it declares.
        title: what it shows.
    """

    arguments: Mapping[str, object] = field(default_factory=dict)
    inputs: tuple[MakeSamples, ...] = ()
    layout: str = ""
    title: str = ""


def on_photo(title: str = "", /, **arguments: object) -> Example:
    """A call on a photograph, for the reference."""
    return Example(arguments, (photos,), title=title)
