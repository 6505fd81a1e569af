"""The functions for tensors of images (..., C, H, W), with the same order of operations as in torchvision."""

# Importing a module declares its functions.
from penstock.plugin.torchvision._on_tensors import color, degradations, dtypes, geometry, warps

__all__ = ["color", "degradations", "dtypes", "geometry", "warps"]
