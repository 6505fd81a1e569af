"""The file that Triton loads for models with ``backend: "penstock"``."""

from penstock.serving.backend import TritonPythonModel

__all__ = ["TritonPythonModel"]
