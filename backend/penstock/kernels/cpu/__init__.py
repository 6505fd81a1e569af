"""Numba kernels that release the GIL. Imported on first use: importing them imports numba.

Kernels of a single operator are beside it, in `_<name>_cpu.py`.
"""
