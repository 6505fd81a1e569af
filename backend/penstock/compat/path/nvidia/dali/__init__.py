"""Found before DALI by processes whose ``PYTHONPATH`` begins here: puts Penstock in its place."""

import importlib
import sys

del sys.modules["nvidia.dali"]
importlib.import_module("penstock.compat").install()
importlib.import_module("nvidia.dali")
