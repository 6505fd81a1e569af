"""Base class of operators that split a sample; the output batch records each part's source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import INT32, numpy_dtype
from penstock.kernels.windows import Region, cut_off
from penstock.schema import Argument, OutputSpec, Workspace
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy

COUNTS = Argument(
    "counts",
    "int32",
    None,
    "How many parts each sample has: the last output of the operator that made them.",
    required=True,
    tensor=True,
)


def mark_parts(workspace: Workspace, parts: TensorList, counts: Sequence[int]) -> TensorList:
    """Record in the batch of parts from which sample each part is; return the number of parts of each sample, as a batch of scalars.

    Args:
        workspace: the workspace of the operator that made the parts.
        parts: the parts of all samples, in the order of the samples.
        counts: the number of parts of each sample.
    """
    owners = np.repeat(np.arange(len(counts)), counts).tolist()
    positions = workspace.positions
    parts.positions = owners if positions is None else [positions[owner] for owner in owners]
    infos = workspace.inputs[0].source_infos
    if infos:
        parts.source_infos = [infos[owner] for owner in owners]
    numbers = TensorListCPU.of_samples([np.array(count, np.int32) for count in counts], "", INT32, 0)
    numbers.positions = positions
    return numbers


def counts_of(workspace: Workspace) -> list[int]:
    """Return the number of parts of each sample, from the argument `counts`.

    Raises:
        RuntimeError: `counts` is a constant, or does not have one number for each sample.
    """
    batch = workspace.arguments.get(COUNTS.name)
    if batch is None or batch.ndim() != 0:
        raise RuntimeError(
            "`counts` must be one number per sample: the output `counts` of the operator that split the samples"
        )
    return [int(np.max(count, initial=0)) for count in batch.samples]


def ranges_by_sample(parts: TensorList, counts: Sequence[int]) -> list[range]:
    """Return the indices of each sample's parts in the batch of parts, as ranges.

    Raises:
        RuntimeError: the number of parts differs from the sum of the counts.
    """
    if sum(counts) != len(parts):
        raise RuntimeError(
            f"`counts` adds up to {sum(counts)} parts, but the input has {len(parts)}: were they returned by different operators?"
        )
    ends = np.cumsum(counts).tolist()
    return [range(end - count, end) for end, count in zip(ends, counts)]


# -- cutting -----------------------------------------------------------------------------------------------------------


def cut_regions(
    workspace: Workspace, regions: Sequence[Sequence[Region]], layout: str, fill: Sequence[float] | np.ndarray
) -> TensorList:
    """Return copies of regions of the images, which are the operator's first input, as a batch with one sample for each region.

    Args:
        workspace: the operator's workspace, on either device.
        regions: the regions of each image; they may reach outside of the image.
        layout: the images' layout.
        fill: the value for elements outside of the image: one for each channel, or one for all.
    """
    images = workspace.inputs[0]
    flat = [(owner, region) for owner, own in enumerate(regions) for region in own]
    shapes = [region.extents for _, region in flat]
    parts: TensorList = workspace.allocate(shapes, OutputSpec(images.dtype, layout, images.ndim()))
    # Give the values the extents of the channels along C and 1 along the other dimensions, so that they broadcast.
    values = cut_off(fill, numpy_dtype(images.dtype)).reshape([-1 if axis == "C" else 1 for axis in layout])
    if isinstance(parts, TensorListGPU):
        _cut_on_gpu(images, flat, parts, values)
    else:
        _cut_on_cpu(workspace, flat, parts, values)
    return parts


def _cut_on_cpu(
    workspace: Workspace, flat: Sequence[tuple[int, Region]], parts: TensorList, values: np.ndarray
) -> None:
    images, cut_out = workspace.inputs[0].samples, parts.samples

    def cut(number: int) -> None:
        owner, region = flat[number]
        source, target = region.overlap(images[owner].shape)
        part = cut_out[number]
        if part[target].shape != part.shape:
            part[...] = values
        part[target] = images[owner][source]

    workspace.parallel(cut, len(flat), [part.size for part in cut_out])


def _cut_on_gpu(
    images: TensorListGPU, flat: Sequence[tuple[int, Region]], parts: TensorListGPU, values: np.ndarray
) -> None:
    """Copy all regions in one launch. Before it, another launch fills the outputs of regions that reach outside of their image."""
    from penstock.kernels.cuda.launch import upload
    from penstock.kernels.cuda.window import WindowCopy, copy_grouped

    if not flat:
        return
    sources, targets = as_bits(images), as_bits(parts)
    filled = [target for (owner, region), target in zip(flat, targets) if not region.inside(images.shapes[owner])]
    if filled:
        (colour,) = upload([values.view(targets[0].dtype)])
        # Strides of 0 repeat the values along the dimensions in which they have extent 1.
        strides = [int(extent > 1) for extent in values.shape]
        spread = [replace(colour, shape=target.shape) for target in filled]
        copy_grouped(spread, filled, [strides] * len(filled), lambda steps, s, t: WindowCopy(s, t, strides=steps))
    copy_grouped([sources[owner] for owner, _ in flat], targets, [region for _, region in flat], _copy_inside)


def _copy_inside(region: Region, source: Located, target: Located) -> WindowCopy:
    """Return the description of a copy: of the part of a region that lies inside the image, to its position in the output."""
    from penstock.kernels.cuda.window import WindowCopy

    inside, place = region.overlap(source.shape)
    return WindowCopy(
        source,
        target,
        anchor=[axis.start for axis in inside],
        # If the region lies entirely outside, the copied part is empty and its position does not matter, but must not be negative.
        place=[max(axis.start, 0) for axis in place],
        extents=[axis.stop - axis.start for axis in place],
    )


def as_bits(batch: TensorListGPU) -> list[Located]:
    """Return views of the samples as unsigned integers of the elements' size, so that kernels copy them without conversion."""
    from penstock.kernels.cuda.launch import Located, places_of

    addresses, owner = places_of(batch)
    bits = np.dtype(f"u{numpy_dtype(batch.dtype).itemsize}")
    return [Located(address, shape, bits, owner) for address, shape in zip(addresses.tolist(), batch.shapes)]
