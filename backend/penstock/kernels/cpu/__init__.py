"""Numba kernels that release the GIL. Imported on first use: importing them imports numba."""
