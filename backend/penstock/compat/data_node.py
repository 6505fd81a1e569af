"""The module ``nvidia.dali.data_node``."""

from penstock.graph import DataNode

__all__ = ["DataNode"]
