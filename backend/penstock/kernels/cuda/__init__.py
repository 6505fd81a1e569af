"""CUDA kernels: one launch for all samples of a batch, whatever their shapes. Compiled by CuPy on first use.

Each `.cu` file holds templates; :mod:`penstock.kernels.cuda.launch` instantiates them for the types at hand. Kernels of a
single operator are beside it, in `_<name>_cuda.py` and `_<name>_cuda.cu`.
"""
