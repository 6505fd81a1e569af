"""`torch_python_function`: calls a function with PyTorch tensors."""

from __future__ import annotations

from typing import Any

from penstock.operators.python._calling import PythonOperator, python_schema
from penstock.schema import register_operator
from penstock.tensors.cuda import require_cupy
from penstock.tensors.dlpack import from_dlpack, to_capsule


@register_operator
class TorchPythonFunction(PythonOperator):
    """Calls a Python function with PyTorch tensors; on the GPU, the pipeline's stream is PyTorch's current one.

    The function must not modify its arguments. Its results are copied.
    """

    schema = python_schema("TorchPythonFunction", True)

    def given_value(self, sample: object) -> Any:
        import torch

        return torch.utils.dlpack.from_dlpack(to_capsule(sample))

    def taken_value(self, result: object) -> Any:
        import torch

        if not isinstance(result, torch.Tensor):
            raise TypeError(f"The function returns PyTorch tensors, got a {type(result).__name__}")
        if result.is_cuda != (self.device == "gpu"):
            raise ValueError(f"The {self.device} operator's function returned a tensor on {result.device}")
        return from_dlpack(torch.utils.dlpack.to_dlpack(result.detach()), self.device == "gpu")

    def call(self, *values: object) -> Any:
        if self.device == "cpu":
            return super().call(*values)
        import torch

        stream = require_cupy().cuda.get_current_stream()
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr, stream.device_id)):
            return super().call(*values)
