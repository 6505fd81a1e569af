"""Functions of PyTorch tensors as operators."""

from penstock.python_function import torch_python_function

__all__ = ["torch_python_function"]
