"""Runs DALI's programs unchanged: ``import nvidia.dali...`` imports Penstock.

Run ``python -m penstock.compat script.py args...``, or call this before anything of DALI is imported:

>>> import penstock.compat
>>> penstock.compat.install()
>>> from nvidia.dali import fn, pipeline_def, types

Programs get Penstock's modules, so an object is the same under both names. DALI's compiled parts (C++ plugins) have no
counterpart.
"""

from penstock.compat.finder import install, uninstall

__all__ = ["install", "uninstall"]
