"""Fixtures for tests that compare CPU and GPU, which need a GPU or a C++ compiler to emulate one."""

from __future__ import annotations

import sys
from pathlib import Path

from emulation import can_emulate

from penstock.tensors.cuda import device_count

collect_ignore_glob = [] if device_count() or can_emulate() else ["*/*_on_both_devices.py"]
sys.path.insert(0, str(Path(__file__).parent))
