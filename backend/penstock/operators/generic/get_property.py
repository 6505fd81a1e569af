"""`get_property`: a sample's metadata."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.tensors import TensorListCPU, TensorListGPU


@register_operator
class GetProperty(Operator):
    """Returns a property of each sample as a 1-D tensor of UINT8 characters: ``layout``, or ``source_info`` (a file's name)."""

    schema = Schema(
        name="GetProperty",
        moves_elements=True,
        inputs=(Input("input", device="any", doc="Data of any kind, on CPU or GPU."),),
        arguments=(
            Argument(
                "key", "string", doc="`layout` or `source_info`.", required=True, choices=("layout", "source_info")
            ),
        ),
    )

    def setup(self) -> None:
        if self.args["key"] not in ("layout", "source_info"):
            raise RuntimeError(f"Unsupported property key: {self.args['key']}. Use `layout` or `source_info`.")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        key = self.args["key"]
        texts = [batch.layout() if key == "layout" else batch.source_info(i) for i in range(len(batch))]
        samples = [np.frombuffer(text.encode(), np.uint8) for text in texts]
        output = TensorListCPU.of_samples(samples, "", UINT8, 1)
        workspace.outputs = [output if workspace.device == "cpu" else TensorListGPU.upload(output)]
