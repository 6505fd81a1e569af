"""Numba kernels that release the GIL. Imported on first use, as they import numba.

Kernels of a single operator are next to it, in `_<name>_cpu.py`.
"""
