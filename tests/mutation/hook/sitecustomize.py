"""Gives every Python that tests start the modules that ``loading.py`` changes: this folder is on ``PYTHONPATH``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import loading

loading.install()
