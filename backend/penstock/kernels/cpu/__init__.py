"""Kernels compiled by numba, most of which release the GIL; numba is imported only when one has to be compiled.

Kernels of a single operator are next to it, in `_<name>_cpu.py`.
"""
