"""Code shared by two or more operators: plans in numpy here, numba kernels in `cpu`, CUDA kernels in `cuda`."""
