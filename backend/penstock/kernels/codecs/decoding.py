"""How a pipeline decodes what strangers may have encoded: within which limits, and what of it apart from the process."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernels.codecs.limits import UNLIMITED, Limits

ISOLATION_MODES = ("none", "auto", "all")


@dataclass(frozen=True)
class Decoding:
    """The settings of a pipeline that concern decoding.

    Attributes:
        limits: of what one sample may decode to.
        isolate: which formats are decoded in worker processes: ``none``, ``all``, or those whose decoders cannot be
            trusted (``auto``).
    """

    limits: Limits = UNLIMITED
    isolate: str = "none"


FREELY = Decoding()
