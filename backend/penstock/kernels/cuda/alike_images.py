"""Images that are all resized, cropped and stored by the same rules: one compiled call computes the GPU's descriptors
from their sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.image_plans import Sizes, image_rules, plan_images
from penstock.kernels.cpu.resampling_plans import PlannedStacks
from penstock.kernels.cuda.launch import is_recorded
from penstock.kernels.cuda.resample import (
    ImageStacks,
    Normalized,
    PlannedResampling,
    blank_descriptors,
    chosen,
    plan_by_tables,
    stack_rules,
)
from penstock.kernels.cuda.resample_launches import launch_resampling
from penstock.kernels.cuda.structs import Records
from penstock.kernels.cuda.taps import FilterTables, blank_tables, known_filters
from penstock.kernels.filters import MAX_SUPPORT

# Alignment assumed for images that are planned before their memory is known, in bytes.
_ALIGNMENT = np.uint64(16)


class AlikeRules(NamedTuple):
    """Settings shared by all images of one type.

    Attributes:
        source, target: types of the elements.
        after: the steps after the resizing, without drawn flags.
        record: the record from which images are planned.
    """

    source: np.dtype
    target: np.dtype
    after: Normalized
    record: np.ndarray

    @classmethod
    def of(cls, types: tuple[np.dtype, np.dtype], channels: int, sizes: Sizes, after: Normalized) -> AlikeRules:
        """Return the rules.

        Args:
            types: the types of the images' elements, and of the results'.
            channels: the images' channels.
            sizes: how images are resized and cropped.
            after: the steps after the resizing, without drawn flags.
        """
        source, target = types
        copied = 0 if after.normalization is None else len(after.normalization)
        rules = image_rules(*sizes, MAX_SUPPORT, copied, stack_rules(after, source, channels))
        return cls(source, target, after, rules)


class AlikeImages(NamedTuple):
    """A batch of images that are resized and stored by the same rules.

    Attributes:
        rules: the rules.
        shapes: the shapes of the images (H, W, C), in rows.
        tables: the filters' tables.
        stacks: the shapes of the images as stacks, or, if only windows are in memory, of these.
        windows: the part of each image that is read and alone is in memory: top, left, height and width. Without rows:
            images are there whole.
        cropped: the sizes of the results.
        descriptors, blocks, stacked: the arguments of the kernels that resample the images, except for addresses.
    """

    rules: AlikeRules
    shapes: np.ndarray
    tables: FilterTables
    stacks: np.ndarray
    windows: np.ndarray
    cropped: np.ndarray
    descriptors: Records
    blocks: np.ndarray
    stacked: PlannedStacks

    @classmethod
    def planned(cls, rules: AlikeRules, shapes: np.ndarray, in_windows: bool = False) -> AlikeImages | None:
        """Return images of these shapes (H, W, C), in rows; None if each has to be planned separately.

        Args:
            in_windows: whether only the windows of images that are read will be in memory.
        """
        count = len(shapes)
        rows, descriptors = blank_tables(count), blank_descriptors(count)
        stacks, cropped, blocks = (
            np.empty((count, 4), np.int64),
            np.empty((count, 2), np.int64),
            np.empty(count, np.int64),
        )
        windows = np.empty((count if in_windows else 0, 4), np.int64)
        filled = rows, stacks, cropped, descriptors.rows, blocks, windows
        found = plan_images(shapes, rules.record, known_filters()[0], *filled)
        down, across, starts, weights, shared, kept, strip, taps, channels = found
        if not down:
            return None
        tables = FilterTables.of_rows(rows, down, across, starts, weights)
        way = shared, kept, strip, taps, channels
        return cls(rules, shapes, tables, stacks, windows, cropped, descriptors, blocks, way)

    def whole(self, rows: np.ndarray) -> AlikeImages:
        """Return some of the images, as they are without windows; ``rows``: their numbers."""
        planned = self.planned(self.rules, self.shapes[rows])
        # A plan for all images is valid for some of them, too.
        assert planned is not None
        return planned

    def launch(self, after: Normalized, targets: np.ndarray, sources: ImageStacks) -> None:
        """Resample the images, which are in memory whole; the arguments are those of :meth:`resampling`."""
        if is_recorded() or (sources.addresses % _ALIGNMENT).any():
            self.resampling(after, targets, sources=sources).launch()
            return
        way = chosen(self.stacked, self.rules.source, after, self.rules.target)
        launch_resampling(self.tables, after, way, self.descriptors.rows, self.blocks, sources.addresses, targets)

    def resampling(
        self, after: Normalized, targets: np.ndarray, owner: object = None, sources: ImageStacks | None = None
    ) -> PlannedResampling:
        """Return the arguments of the kernels that resample them.

        Args:
            after: the steps after the resizing, with drawn flags.
            targets: the addresses of the results, uint64.
            owner: object that keeps their memory alive, if nothing else does.
            sources: the whole images; None: they, or their windows, come later, at addresses that are multiples of 16.
        """
        rules = self.rules
        if sources is not None and (sources.addresses % _ALIGNMENT).any():
            return plan_by_tables(sources, targets, rules.target, self.tables, after, owner)
        starts, weights = self.tables.memory()
        descriptors = self.descriptors
        if sources is not None:
            # The images may be resampled again from another address.
            descriptors = Records(descriptors.struct, descriptors.rows.copy())
            descriptors["source"] = sources.addresses
        descriptors["target"] = targets
        way = chosen(self.stacked, rules.source, after, rules.target)
        return PlannedResampling(
            self.tables, starts, weights, after, *way, descriptors, self.blocks, self.windows, owner
        )
