"""CUDA kernels: one launch processes all samples of a batch, whatever their shapes. CuPy compiles them on first use.

Each `.cu` file holds templates; :mod:`penstock.kernels.cuda.launch` instantiates them for the types needed. The kernels that only one
operator uses are next to that operator, in `_<name>_cuda.py` and `_<name>_cuda.cu`.
"""
