"""Other people's frameworks: Triton, PyTorch, JAX and more. Each module loads its framework when it is imported."""
