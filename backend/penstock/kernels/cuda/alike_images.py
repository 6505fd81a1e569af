"""Images that are all resized, cropped and stored by the same rules: one compiled call computes the descriptors that kernels read
from the images' sizes.
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
        source, target: the element types of the images and of the results.
        after: the steps after the resizing, without flags that are drawn at random.
        record: the record from which images are planned.
    """

    source: np.dtype
    target: np.dtype
    after: Normalized
    record: np.ndarray

    @classmethod
    def of(cls, types: tuple[np.dtype, np.dtype], channels: int, sizes: Sizes, after: Normalized) -> AlikeRules:
        """Make the rules for images of one type and number of channels.

        Args:
            types: the element types of the images and of the results.
            channels: the number of channels of the images.
            sizes: how images are resized and cropped.
            after: the steps after the resizing, without flags that are drawn at random.
        """
        source, target = types
        copied = 0 if after.normalization is None else len(after.normalization)
        rules = image_rules(*sizes, MAX_SUPPORT, copied, stack_rules(after, source, channels))
        return cls(source, target, after, rules)


class AlikeImages(NamedTuple):
    """A batch of images that are resized and stored by the same rules.

    Attributes:
        rules: the rules.
        shapes: the shape (H, W, C) of each image, as a row.
        tables: the filters' tables.
        stacks: the shapes of the images, each as a stack of one; if only windows are in memory, the shapes of the windows.
        windows: top, left, height and width of the part of each image that is read, and is the only part in memory. No rows: whole images
            are in memory.
        cropped: the heights and widths of the results.
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
        """Plan the resampling of images; return None if each image has to be planned separately.

        Args:
            shapes: the shape (H, W, C) of each image, as a row.
            in_windows: whether only the part of each image that is read will be in memory.
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
        """Return a plan for some of the images, given their indices, that reads whole images instead of windows."""
        planned = self.planned(self.rules, self.shapes[rows])
        # Rules by which all images can be planned also suit any subset of them.
        assert planned is not None
        return planned

    def launch(self, after: Normalized, targets: np.ndarray, sources: ImageStacks) -> None:
        """Resample images that are whole in memory; the arguments are those of :meth:`resampling`."""
        if is_recorded() or (sources.addresses % _ALIGNMENT).any():
            self.resampling(after, targets, sources=sources).launch()
            return
        way = chosen(self.stacked, self.rules.source, after, self.rules.target)
        launch_resampling(self.tables, after, way, self.descriptors.rows, self.blocks, sources.addresses, targets)

    def resampling(
        self, after: Normalized, targets: np.ndarray, owner: object = None, sources: ImageStacks | None = None
    ) -> PlannedResampling:
        """Return the arguments of the kernels that resample the images.

        Args:
            after: the steps after the resizing, including flags that were drawn at random.
            targets: the addresses of the results, uint64.
            owner: object that keeps the results' memory alive, if nothing else does.
            sources: the whole images; None: the addresses of the images or of their windows are filled in later, and are multiples of 16.
        """
        rules = self.rules
        if sources is not None and (sources.addresses % _ALIGNMENT).any():
            return plan_by_tables(sources, targets, rules.target, self.tables, after, owner)
        starts, weights = self.tables.memory()
        descriptors = self.descriptors
        if sources is not None:
            # The images may be resampled again from another address, so the shared descriptors must not change.
            descriptors = Records(descriptors.struct, descriptors.rows.copy())
            descriptors["source"] = sources.addresses
        descriptors["target"] = targets
        way = chosen(self.stacked, rules.source, after, rules.target)
        return PlannedResampling(
            self.tables, starts, weights, after, *way, descriptors, self.blocks, self.windows, owner
        )
