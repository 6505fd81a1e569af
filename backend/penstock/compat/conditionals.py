"""The parts of DALI's private modules ``_conditionals`` and ``_autograph`` that programs import."""

from __future__ import annotations

import sys

from penstock.graph.autograph import is_converted as is_autograph_artifact
from penstock.pipeline import do_not_convert

__all__ = ["do_not_convert", "is_autograph_artifact"]

# Programs written for DALI access one module through the other.
_autograph = sys.modules[__name__]
