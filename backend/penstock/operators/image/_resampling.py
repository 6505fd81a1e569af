"""Resamples arrays and batches by their plans, on the CPU and on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.schema import Workspace

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.resample import ImageStacks, Normalized
    from penstock.tensors import TensorListGPU
from penstock.operators.image._resample_plans import ImagePlans, ResamplePlan, ResamplePlans, Spatial

_MAX_EXTENT = 1 << 31


def image_plans(workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> ImagePlans | None:
    """Return the plans for the kernel that computes filter tables on the GPU; None if that kernel does not support the batch."""
    (first, count), plans, batch = workspace.state, workspace.plans, workspace.inputs[0]
    whole = numpy_dtype(batch.dtype).kind in "iu"
    if count != 2 or not whole or workspace.failures or not len(batch) or plans.size_out.max() >= _MAX_EXTENT:
        return None
    shapes = batch.shape_array()
    return ImagePlans(_stack_shapes(shapes, first), plans.axis(0), plans.axis(1)) if shapes.all() else None


def resample_batch(workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
    """Resample the spatial axes of all samples on the GPU, by their plans."""
    from penstock.kernels.cuda.launch import locate_all, scratch
    from penstock.kernels.cuda.resample import ImageResampling, resample_axes, resample_grouped

    first, count = workspace.state
    images = image_plans(workspace)
    if images is not None:
        resample_images_planned(workspace.inputs[0], workspace.outputs[0], images)
        return
    samples = workspace.live
    plans = [sample.plan for sample in samples]
    sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
    if count == 3:
        shapes = [(*s.shape[:first], p.extents[0], *s.shape[first + 1 :]) for s, p in zip(sources, plans)]
        middles = scratch(shapes, np.float32)
        resample_axes([(s, first, p.gpu_taps_of(0), m) for s, p, m in zip(sources, plans, middles)])
        sources, first = middles, first + 1

    def job_of(plan: ResamplePlan, source: Located, target: Located) -> ImageResampling:
        return ImageResampling(
            source.reshape(*image_stack(source.shape, first)),
            target.reshape(*image_stack(target.shape, first)),
            plan.gpu_taps_of(count - 2),
            plan.gpu_taps_of(count - 1),
        )

    resample_grouped(sources, targets, plans, job_of)


def resample_images_planned(
    sources: TensorListGPU, targets: TensorListGPU, plans: ImagePlans, after: Normalized | None = None
) -> None:
    """Resample all samples of a batch on the GPU; ``after``: how to normalize the results, None: not at all."""
    from penstock.kernels.cuda.resample import resample_planned

    stacks = stacks_of(sources, plans.shapes)
    resample_planned(stacks, targets.pointers(), numpy_dtype(targets.dtype), plans.vertical, plans.horizontal, after)


def stacks_of(batch: TensorListGPU, shapes: np.ndarray) -> ImageStacks:
    """Return the addresses of a batch's samples, together with ``shapes``, the samples' shapes as stacks of images."""
    from penstock.kernels.cuda.launch import places_of
    from penstock.kernels.cuda.resample import ImageStacks

    addresses, owner = places_of(batch)
    return ImageStacks(addresses, shapes, numpy_dtype(batch.dtype), owner)


def _stack_shapes(shapes: np.ndarray, first: int) -> np.ndarray:
    """Return the result of :func:`image_stack` for each row of ``shapes``, as rows."""
    parts = (
        shapes[:, :first].prod(axis=1),
        shapes[:, first],
        shapes[:, first + 1],
        shapes[:, first + 2 :].prod(axis=1),
    )
    return np.stack(parts, axis=1)


def image_stack(shape: Sequence[int], first: int) -> tuple[int, int, int, int]:
    """Return the shape of data whose H and W begin at dimension ``first``, viewed as (images, H, W, channels)."""
    return (math.prod(shape[:first]), shape[first], shape[first + 1], math.prod(shape[first + 2 :]))


def resample(source: np.ndarray, target: np.ndarray, first: int, plan: ResamplePlan) -> None:
    """Resample the spatial axes of a contiguous array, which begin at dimension ``first``."""

    if not target.size:
        return
    if not source.size:
        raise RuntimeError(f"Cannot resize an empty image of shape {list(source.shape)}")
    if len(plan.axes) == 3:
        _resample_volumes(source, target, first, plan)
    else:
        plan.resample_images(source, target, first)


def _resample_volumes(source: np.ndarray, target: np.ndarray, first: int, plan: ResamplePlan) -> None:
    """Resample D, H and W of a contiguous array, one axis after the other; D is dimension ``first``."""
    from penstock.kernels.cpu import resample as kernels

    channels, width = math.prod(source.shape[first + 3 :]), first + 2
    for axis in plan.passes.order:
        table = plan.taps_of(axis)
        shape, is_last = list(source.shape), axis == plan.passes.order[-1]
        shape[first + axis] = target.shape[first + axis]
        result = target if is_last else np.empty(shape, np.float32)
        rests = plan.passes.rests(channels, result.dtype)
        if first + axis == width:
            kernels.resample_width(source, channels, table, rests, result)
        else:
            kernels.resample_axis(source, first + axis, table, rests, result)
        source = result
