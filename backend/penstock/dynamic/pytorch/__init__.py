"""Dynamic mode in PyTorch's data loading: :mod:`penstock.dynamic.pytorch.nodes`, for TorchData."""
