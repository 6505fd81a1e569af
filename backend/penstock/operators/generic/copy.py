"""`copy`: copies the data into new memory."""

from __future__ import annotations

import numpy as np

from penstock.schema import Alias, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.operator import OutputSpec
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU


@register_operator
class Copy(Operator):
    """A copy of each sample, on the device where the operator runs."""

    schema = Schema(
        name="Copy",
        devices=("cpu", "gpu", "mixed"),
        inputs=(Input("input", device="any", doc="Data of any kind."),),
        aliases=(Alias("MakeContiguous"),),
    )

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        output: TensorList
        if workspace.device == "cpu":
            source = batch.as_cpu()
            output = workspace.allocate(source.shapes, OutputSpec(source.dtype, source.layout(), source.ndim()), 0)
            for target, sample in zip(output.samples, source.samples):
                np.copyto(target, sample)
        elif isinstance(batch, TensorListCPU):
            output = TensorListGPU.upload(batch)
        else:
            from penstock.kernels.cuda.window import copy_views

            output = workspace.allocate(batch.shapes, OutputSpec(batch.dtype, batch.layout(), batch.ndim()))
            copy_views(batch.samples, output.samples)
        output.source_infos = batch.source_infos
        workspace.outputs = [output]
