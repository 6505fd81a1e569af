"""The module ``nvidia.dali.reducers``: the class with which programs send functions to other processes as code."""

from __future__ import annotations

from penstock.pickling import pickler_class

__all__ = ["DaliCallbackPickler"]

DaliCallbackPickler = pickler_class()
