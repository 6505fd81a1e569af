"""Runs DALI's programs unchanged: ``import nvidia.dali...`` imports Penstock.

Either ``python -m penstock.compat script.py args...``, or, before anything of DALI is imported:

>>> import penstock.compat
>>> penstock.compat.install()
>>> from nvidia.dali import fn, pipeline_def, types

Programs see Penstock's modules, so objects of both spellings are the same. DALI's compiled parts (C++ plugins) have no
counterpart.
"""

from penstock.compat.finder import install, uninstall

__all__ = ["install", "uninstall"]
