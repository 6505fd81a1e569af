"""`copy`: copies the data into new memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.schema import Alias, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.operator import OutputSpec
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.cuda import require_cupy

if TYPE_CHECKING:
    from penstock.tensors.cuda import DeviceArray

_MAX_PLAIN_BYTES = 1 << 20


@register_operator
class Copy(Operator):
    """Copies each sample to the operator's device."""

    schema = Schema(
        name="Copy",
        moves_elements=True,
        devices=("cpu", "gpu", "mixed"),
        inputs=(Input("input", device="any", doc="Data of any kind."),),
        aliases=(Alias("MakeContiguous"),),
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        output: TensorList
        if workspace.device == "cpu":
            source = batch.as_cpu()
            spec = OutputSpec(source.dtype, source.layout(), source.ndim())
            copied: TensorListCPU = workspace.allocate(source.shapes, spec, 0)
            _copy_on_cpu(workspace, source, copied)
            output = copied
        elif isinstance(batch, TensorListCPU):
            output = TensorListGPU.upload(batch)
        else:
            output = workspace.allocate(batch.shapes, OutputSpec(batch.dtype, batch.layout(), batch.ndim()))
            _copy_on_gpu(batch.samples, output.samples)
        output.source_infos = batch.source_infos
        workspace.outputs = [output]


def _copy_on_cpu(workspace: Workspace, source: TensorList, output: TensorListCPU) -> None:
    from penstock.kernels.cpu.blocks import copy_samples

    if not len(source):
        return
    # For little data, preparing the descriptors for `copy_samples` takes longer than copying sample by sample.
    is_small = output.elements.nbytes <= _MAX_PLAIN_BYTES
    if is_small or not copy_samples(workspace, source, output):
        for target, sample in zip(output.samples, source.samples):
            np.copyto(target, sample)


def _copy_on_gpu(samples: Sequence[DeviceArray], targets: Sequence[DeviceArray]) -> None:
    from penstock.kernels.cuda.window import copy_views

    if not samples or samples[0].device.id == targets[0].device.id:
        copy_views(samples, targets)
    else:
        _copy_from_another(samples, targets)


def _copy_from_another(samples: Sequence[DeviceArray], targets: Sequence[DeviceArray]) -> None:
    """Copy data from another GPU, whose memory kernels on this GPU may be unable to read. The copy waits for earlier work on the current
    streams of both GPUs, and later work on both waits for the copy.
    """
    cuda = require_cupy().cuda
    here, there = targets[0].device, samples[0].device
    current = cuda.get_current_stream()
    with there:
        other = cuda.get_current_stream()
        contiguous = [require_cupy().ascontiguousarray(sample) for sample in samples]
        written = other.record(cuda.Event(disable_timing=True))
    current.wait_event(written)
    for sample, target in zip(contiguous, targets):
        cuda.runtime.memcpyPeerAsync(target.data.ptr, here.id, sample.data.ptr, there.id, sample.nbytes, current.ptr)
    read = current.record(cuda.Event(disable_timing=True))
    with there:
        other.wait_event(read)
