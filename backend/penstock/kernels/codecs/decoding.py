"""How a pipeline decodes untrusted data: the limits, the formats that are decoded in worker processes, and threads and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from penstock.kernels.codecs.limits import UNLIMITED, Limits

if TYPE_CHECKING:
    from penstock.kernels.codecs.worker_pool import DecoderPool
    from penstock.tensors import HostPool

ISOLATION_MODES = ("none", "auto", "all")


@dataclass(frozen=True)
class Decoding:
    """A pipeline's settings for decoding.

    Attributes:
        limits: the limits on the decoded size of one sample.
        isolate: which formats are decoded in worker processes: ``none``, ``all``, or ``auto``: those whose decoders are not trusted.
        pool: the worker processes; None if there are none.
    """

    limits: Limits = UNLIMITED
    isolate: str = "none"
    pool: DecoderPool | None = None

    @classmethod
    def by_settings(cls, limits: Limits, isolate: str, num_threads: int) -> Decoding:
        """Make the settings that a pipeline's arguments ask for, with one worker process per thread."""
        from penstock.kernels.codecs.worker_pool import DecoderPool

        return cls(limits, isolate, DecoderPool(num_threads))

    def pool_for(self, trusted: bool, crash_prone: bool = False) -> DecoderPool | None:
        """Return the worker processes if data must be decoded in them, otherwise None.

        Args:
            trusted: whether the format's decoders are trusted.
            crash_prone: whether this kind of file is known to crash decoders; if so, the setting ``isolate`` does not matter.
        """
        apart = crash_prone or self.isolate == "all" or (self.isolate == "auto" and not trusted)
        return self.pool if apart else None

    def close(self) -> None:
        """End the worker processes."""
        if self.pool is not None:
            self.pool.close()


FREELY = Decoding()


class HostResources(NamedTuple):
    """The host's resources for decoding the images of a batch that the GPU does not decode.

    Attributes:
        parallel: runs a function over indices on the pipeline's threads.
        num_threads: the number of the pipeline's threads, including the calling one.
        decoding: the settings: limits, and worker processes for formats that are not trusted.
        pool: the pool from which memory for pixels is taken; None: numpy allocates it.
    """

    parallel: Callable[..., None]
    num_threads: int = 1
    decoding: Decoding = FREELY
    pool: HostPool | None = None
