"""Code that two or more operators share: plans on numpy level here, numba kernels in `cpu`, CUDA kernels in `cuda`."""
