"""The module ``nvidia.dali.data_node``."""

from penstock.compat.private.hacks import not_iterable
from penstock.graph import DataNode, newaxis

__all__ = ["DataNode", "newaxis", "not_iterable"]
