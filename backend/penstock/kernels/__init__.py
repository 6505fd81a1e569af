"""Code that operators share: computations with NumPy here, numba kernels in `cpu`, CUDA kernels in `cuda`."""
