"""`jax_function`: calls a function with JAX arrays that hold whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.operators.python._calling import PythonOperator, python_schema, synchronize_stream
from penstock.schema import Workspace, register_operator
from penstock.tensors import TensorListCPU, TensorListGPU
from penstock.tensors.cuda import require_cupy


@register_operator
class JaxFunction(PythonOperator):
    """Calls a Python function with JAX arrays whose first dimension is the batch; all samples must have the same shape.

    Without layouts, output i has the layout of input i if they have the same number of dimensions.
    """

    schema = replace(python_schema("_JaxFunction", True), hidden=True, no_prune=False)

    takes_first = False

    def setup(self) -> None:
        super().setup()
        layouts, outputs = self.args["output_layouts"], self.args["num_outputs"]
        if layouts and len(layouts) != outputs:
            raise RuntimeError(
                f"The number of `output_layouts` must match the `num_outputs` argument: {len(layouts)} and {outputs}"
            )

    def run(self, workspace: Workspace) -> None:
        if self.device == "gpu":
            synchronize_stream()
        if not all(batch.is_dense_tensor() for batch in workspace.inputs):
            raise RuntimeError(
                "The function takes arrays of whole batches: samples with different shapes cannot form one."
            )
        inputs = [self._to_jax(batch.as_tensor().array) for batch in workspace.inputs]
        outputs = self._outputs(self._called(inputs))
        if self.device == "gpu":
            for output in outputs:
                output.block_until_ready()
        workspace.outputs = [self._to_batch(output, number, workspace) for number, output in enumerate(outputs)] or [
            self._nothing(workspace)
        ]
        infos = [batch.source_infos for batch in workspace.inputs if batch.source_infos]
        for output in workspace.outputs if infos and self.args["num_outputs"] else ():
            output.source_infos = [";".join(of_sample) for of_sample in zip(*infos)]

    def _outputs(self, result: object) -> Sequence[Any]:
        if result is None:
            result = ()
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        expected = self.args["num_outputs"]
        if not expected:
            return ()
        if len(outputs) != expected:
            raise ValueError(
                f"The function was expected to return (a tuple of) `num_outputs={expected}` outputs, but returned {len(outputs)}"
            )
        return outputs

    @staticmethod
    def _to_jax(array: object) -> object:
        import jax

        if isinstance(array, np.ndarray):
            return jax.dlpack.from_dlpack(array if array.flags.writeable else array.copy())
        return jax.dlpack.from_dlpack(array)

    def _to_batch(self, output: object, number: int, workspace: Workspace) -> object:
        import jax

        if not isinstance(output, jax.Array):
            raise TypeError(f"The function returns JAX arrays, got a {type(output).__name__}")
        devices = list(output.devices())
        if len(devices) != 1:
            raise ValueError(
                f"The function returned an array on {len(devices)} devices, expected one on a single device"
            )
        if devices[0].platform != self.device:
            raise ValueError(
                f"The function returned an array residing on the device of kind `{devices[0].platform}`, expected `{self.device}`"
            )
        if not output.ndim or len(output) != workspace.batch_size:
            raise ValueError(
                f"The function must return as many samples as the current batch size of {workspace.batch_size}, but the output at "
                f"index {number} has the shape {' x '.join(map(str, output.shape))}"
            )
        layout = self._layout(number, output.ndim - 1, workspace)
        if self.device == "cpu":
            return TensorListCPU(np.ascontiguousarray(output), layout)
        return TensorListGPU(require_cupy().from_dlpack(output), layout)

    def _layout(self, number: int, ndim: int, workspace: Workspace) -> str:
        layouts = self.args["output_layouts"]
        if layouts is not None:
            return layouts[number] if number < len(layouts) else ""
        if number < len(workspace.inputs) and workspace.inputs[number].ndim() == ndim:
            return workspace.inputs[number].layout()
        return ""
