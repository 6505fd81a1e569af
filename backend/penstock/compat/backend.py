"""The module ``nvidia.dali.backend``: tensors, batches and types."""

from penstock import types
from penstock.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from penstock.tensors.tensor import DLDeviceType

__all__ = ["DLDeviceType", "TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU", "types"]
