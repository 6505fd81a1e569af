"""Stands in for DALI in processes whose ``PYTHONPATH`` begins with this folder."""

import importlib
import sys

del sys.modules["nvidia.dali"]
importlib.import_module("penstock.compat").install()
importlib.import_module("nvidia.dali")
