"""Installs the import hook of ``loading.py`` in every Python process that tests start, as this folder is on ``PYTHONPATH``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import loading

loading.install()
