"""The parts of DALI's private modules ``_conditionals`` and ``_autograph`` that programs import."""

from __future__ import annotations

import sys

from penstock.pipeline import do_not_convert

__all__ = ["do_not_convert"]

# Programs access one through the other.
_autograph = sys.modules[__name__]
