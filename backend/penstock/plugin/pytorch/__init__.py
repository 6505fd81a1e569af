"""PyTorch: iterators that return PyTorch tensors, and functions of PyTorch tensors as operators."""

from penstock.plugin.epochs import LastBatchPolicy
from penstock.plugin.pytorch import fn
from penstock.plugin.pytorch.iterators import DALIClassificationIterator, DALIGenericIterator, DALIRaggedIterator
from penstock.plugin.pytorch.tensors import feed_ndarray, to_torch_tensor, to_torch_type
from penstock.python_function import TorchPythonFunction

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "TorchPythonFunction",
    "feed_ndarray",
    "fn",
    "to_torch_tensor",
    "to_torch_type",
]
