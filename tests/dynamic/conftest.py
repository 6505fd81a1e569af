"""What is about PyTorch is collected where that is installed, and TorchData with it: `penstock[pytorch]`."""

from __future__ import annotations

import importlib.util

_NEEDED = ("torch", "torchdata")
collect_ignore = [] if all(map(importlib.util.find_spec, _NEEDED)) else ["test_pytorch.py"]
