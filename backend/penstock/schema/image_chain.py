"""What operators declare to run in one chain with others: sample by sample, and of each sample only what is needed.

An operator that can be part of a chain is a :class:`ChainOperator`. For each sample whose shapes are inferred it gives a
:class:`Stage`, which is of one of four kinds:

- a :class:`Placement` moves elements: crops, slices, flips and pads;
- a :class:`Sampling` makes new pixels from several: resizing, warping;
- a :class:`PointwiseMap` changes values: casts, colours, arithmetic;
- a :class:`Store` ends with another order of dimensions: a transposition, `crop_mirror_normalize`.

A stage tells which part of its input a part of its output depends on, and computes parts. From that alone, one engine composes
any chain: it asks backwards what is needed, and computes forwards only that.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from penstock.kernels.windows import Region
from penstock.schema.operator import Operator, Sample, Shape
from penstock.schema.plans import Plan, Plans, State


class NotFusable(Exception):
    """A sample must be computed step by step; the message says, in few words, which samples those are."""


@dataclass(frozen=True)
class Pixels:
    """A part of an array: ``array[i]`` is its element at ``origin + i``."""

    array: np.ndarray
    origin: tuple[int, ...]

    def part(self, region: Region) -> np.ndarray:
        """A view of a region that lies in this part."""
        pairs = zip(region.anchor, region.extents, self.origin)
        return self.array[tuple(slice(a - o, a - o + e) for a, e, o in pairs)]

    def contiguous(self, region: Region) -> np.ndarray:
        """The same, contiguous."""
        return np.ascontiguousarray(self.part(region))

    def seen_from(self, anchor: tuple[int, ...]) -> Pixels:
        """The same elements, counted from ``anchor``."""
        return Pixels(self.array, tuple(o - a for o, a in zip(self.origin, anchor)))


class Stage:
    """What an operator does to one sample.

    Attributes:
        shape: of the whole output.
    """

    # The targets of `compute` may be views of any strides; else they are contiguous.
    writes_views = False
    # Computing a part of the output costs as much as all of it.
    is_whole = False
    shape: Shape

    def covers(self, window: Region) -> Region:
        """The part of the output that is computed where ``window`` is wanted."""
        return window

    def reads(self, window: Region) -> Region:
        """The part of the input that a part of the output, as :meth:`covers` gives it, depends on."""
        return window

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        """Computes a part of the output on CPU, with the results of the operator's own ``compute``.

        Args:
            sample: in this step; its data may not be there.
            source: at least what :meth:`reads` tells.
            window: the part, as :meth:`covers` gives it.
            target: of the window's extents.
        """
        raise NotImplementedError


class Placement(Stage):
    """``output[i] = input[anchor + i]``, from the window's end backwards along mirrored axes; outside of the input, a fill.

    Attributes:
        anchor: where the output begins in the input.
        shape_in: of the input.
        mirrored: for each axis.
        converts: the output is of another type.
    """

    anchor: tuple[int, ...]
    shape_in: Shape
    mirrored: tuple[bool, ...]
    converts: bool

    @property
    def is_inside(self) -> bool:
        """Whether nothing of it is filled."""
        return Region(self.anchor, self.shape).inside(self.shape_in)

    @property
    def is_view(self) -> bool:
        """Whether the output can be seen in the input's memory."""
        return self.is_inside and not self.converts and not any(self.mirrored)

    def source_region(self, window: Region) -> Region:
        """Where a part of the output lies in the input or beside it."""
        starts = (
            base + (extent - start - size if mirrored else start)
            for base, extent, start, size, mirrored in zip(
                self.anchor, self.shape, window.anchor, window.extents, self.mirrored
            )
        )
        return Region(tuple(starts), window.extents)

    def reads(self, window: Region) -> Region:
        return _clipped(self.source_region(window), self.shape_in)


def _clipped(region: Region, shape: Shape) -> Region:
    inside, _ = region.overlap(shape)
    return Region(tuple(s.start for s in inside), tuple(s.stop - s.start for s in inside))


class Sampling(Stage):
    """Each element of the output is made of some of the input, in the geometry of an image."""

    def narrowed(self, placement: Placement) -> Sampling | None:
        """The sampling that gives what the placement, which lies inside, takes of this one's output; None if there is none."""
        return None

    def stored_by(self, store: Store) -> Stage | None:
        """One stage that does what this one and then the store do, in one pass; None if there is none."""
        return None


class PointwiseMap(Stage):
    """Each element (or pixel) of the output comes from the same one of the input."""


class Store(Stage):
    """The output has its dimensions in an order of its own.

    Attributes:
        permutation: the input's dimension that each of the output is.
    """

    permutation: tuple[int, ...]


class ChainOperator(Operator[State, Plan, Plans]):
    """The base of operators of one output, whose first input is the data, that can be part of a chain."""

    # Its stages are placements.
    takes_windows: bool = False
    # Data that are computed step by step, as users are told.
    step_by_step: tuple[str, ...] = ()

    def joins_chain(self) -> bool:
        """Whether its arguments leave it so."""
        return True

    def stage_key(self, sample: Sample[State, Plan, Plans]) -> Hashable | None:
        """Equal for samples of equal shapes whose stages are equal, as long as their plans live; None where none is known."""
        return id(sample.plan) if self.plans_by_shape or sample.plan is None else None

    def stage(self, sample: Sample[State, Plan, Plans]) -> Stage:
        """What it does to a sample whose shapes are inferred; it must not hold on to the sample.

        Raises:
            NotFusable: the sample is to be computed step by step.
        """
        raise NotImplementedError(f"{type(self).__name__} must say what it does to a sample")


class PixelSource(Operator[State, Plan, Plans]):
    """The base of operators that make images, of H, W and C, and can make a part of one: the decoders."""

    def begins_chain(self) -> bool:
        """Whether its images are worth being made where they are used."""
        return True

    def decode_into(self, sample: Sample[State, Plan, Plans], output: np.ndarray) -> None:
        """Makes a whole image."""
        raise NotImplementedError

    def decode_part(self, sample: Sample[State, Plan, Plans], part: Region) -> np.ndarray | None:
        """A part (in H, W) of what :meth:`decode_into` gives, in memory that this thread's next image is made in.

        None where it must be cut out of the whole, and where that is quicker.
        """
        return None

    def decode_part_into(self, sample: Sample[State, Plan, Plans], part: Region, output: np.ndarray) -> bool:
        """Makes a part (in H, W) of the image right where it belongs; tells whether that can be."""
        return False
