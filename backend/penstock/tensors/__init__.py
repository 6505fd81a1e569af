"""Samples, and batches of samples, on the CPU or GPU: the data that flow through a pipeline."""

from penstock.tensors.batch import TensorList
from penstock.tensors.formatting import format_batch, format_tensor
from penstock.tensors.memory import HostPool
from penstock.tensors.tensor import Tensor, TensorCPU, TensorGPU
from penstock.tensors.tensor_list import TensorListCPU, TensorListGPU

__all__ = [
    "HostPool",
    "Tensor",
    "TensorCPU",
    "TensorGPU",
    "TensorList",
    "TensorListCPU",
    "TensorListGPU",
    "format_batch",
    "format_tensor",
]
