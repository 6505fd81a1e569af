"""The module ``nvidia.dali.data_node``."""

from penstock.graph import DataNode, newaxis

__all__ = ["DataNode", "newaxis"]
