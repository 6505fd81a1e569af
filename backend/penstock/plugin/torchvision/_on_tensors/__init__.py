"""Implementations of the functions for tensors of images (..., C, H, W), in torchvision's order of operations."""

# Each imported module declares its functions.
from penstock.plugin.torchvision._on_tensors import color, degradations, dtypes, geometry, warps

__all__ = ["color", "degradations", "dtypes", "geometry", "warps"]
