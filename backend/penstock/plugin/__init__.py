"""Other frameworks: Triton, PyTorch, JAX and more. Importing a module loads its framework."""
