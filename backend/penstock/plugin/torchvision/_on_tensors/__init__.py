"""The functions, for tensors of images (..., C, H, W): PyTorch's arithmetic, in torchvision's order of operations."""

# Each declares its functions when it is imported.
from penstock.plugin.torchvision._on_tensors import color, degradations, dtypes, geometry, warps

__all__ = ["color", "degradations", "dtypes", "geometry", "warps"]
