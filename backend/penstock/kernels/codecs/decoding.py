"""How a pipeline decodes what strangers may have encoded: within which limits, and what of it apart from the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kernels.codecs.limits import UNLIMITED, Limits

if TYPE_CHECKING:
    from penstock.kernels.codecs.worker_pool import DecoderPool

ISOLATION_MODES = ("none", "auto", "all")


@dataclass(frozen=True)
class Decoding:
    """The settings of a pipeline that concern decoding.

    Attributes:
        limits: of what one sample may decode to.
        isolate: which formats are decoded in worker processes: ``none``, ``all``, or those whose decoders cannot be
            trusted (``auto``).
        pool: the worker processes; None where there are none.
    """

    limits: Limits = UNLIMITED
    isolate: str = "none"
    pool: DecoderPool | None = None

    @classmethod
    def by_settings(cls, limits: Limits, isolate: str, num_threads: int) -> Decoding:
        """What the settings of a pipeline ask for, with a worker process for each of its threads."""
        from penstock.kernels.codecs.worker_pool import DecoderPool

        return cls(limits, isolate, DecoderPool(num_threads))

    def pool_for(self, trusted: bool, crash_prone: bool = False) -> DecoderPool | None:
        """The worker processes where data are to be decoded there, else None.

        Args:
            trusted: the decoders of their format are.
            crash_prone: they are of a kind that is known to end the process, so that this is no matter of settings.
        """
        apart = crash_prone or self.isolate == "all" or (self.isolate == "auto" and not trusted)
        return self.pool if apart else None

    def close(self) -> None:
        """Ends the worker processes."""
        if self.pool is not None:
            self.pool.close()


FREELY = Decoding()
