"""Integration with other frameworks: Triton, PyTorch, JAX and more. Importing a module here imports its framework."""
