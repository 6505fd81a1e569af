"""The limits on the memory of a model's batches, some of which all models of the process share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.errors import LimitError, MemoryShortageError
from penstock.runtime.memory import (
    DEFAULT_SHARE,
    BatchMemory,
    FixedReservation,
    MemoryBudget,
    Reservation,
    machine_memory,
)
from penstock.serving.settings import AUTOMATIC, Settings, settings_of
from penstock.tensors import HostPool

R = TypeVar("R")


@functools.cache
def process_budget() -> MemoryBudget:
    """Return the budget of all models of this process, according to the server's settings, which models cannot override."""
    limit = settings_of({}).memory_budget
    if limit == AUTOMATIC:
        limit = int(DEFAULT_SHARE * machine_memory())
    assert not isinstance(limit, str)
    return MemoryBudget(limit, "memory_budget")


@functools.cache
def _model_budget(model: str, version: str, limit: int | None) -> MemoryBudget:
    """Return the budget that the instances of a model share."""
    return MemoryBudget(limit, "max_model_memory")


class RequestMemory:
    """The memory of one instance of a model.

    Args:
        model, version: the model and version of the instance.
        settings: the model's settings.
        pools: the instance's pools, whose unused memory is released if memory gets scarce.
    """

    def __init__(self, model: str, version: str, settings: Settings, pools: Callable[[], Sequence[HostPool]]) -> None:
        self._limit = settings.max_memory
        self._seconds = math.inf if settings.memory_wait_seconds is None else settings.memory_wait_seconds
        self._budgets = [process_budget(), _model_budget(model, version, settings.max_model_memory)]
        self._pools = pools

    def run(self, shares: Sequence[int], work: Callable[[BatchMemory], R]) -> R:
        """Run a batch, again if it had to wait for memory; return what ``work`` returns.

        Args:
            shares: the numbers of samples of the batch's requests.
            work: runs the batch.

        Raises:
            LimitError: the batch needs more than the whole budget.
            MemoryShortageError: other batches held the memory for too long; or the batch holds several requests, which
                should be run one by one.
        """
        wanted = 0
        while True:
            with self.reservation() as reservation:
                if wanted:
                    self._wait(reservation, wanted)
                memory = BatchMemory(self._limit, shares, reservation)
                try:
                    result = work(memory)
                except Exception:
                    if not memory.wanted:
                        raise
                if reservation.size:
                    # The next batch reuses its blocks, unless memory gets scarce.
                    for pool in self._pools():
                        self._budgets[0].add_pool(pool)
                if not memory.wanted:
                    return result
            self._check_possible(memory.wanted, len(shares), reservation)
            wanted = memory.wanted

    def fixed_allowance(self, shares: Sequence[int], threads: int) -> BatchMemory:
        """Return the allowance of a batch that takes nothing from the budgets; if it wants more, :meth:`run` has to run it.

        A batch that is begun while another one of the instance is in flight must not hold what that one may have to wait for.

        Args:
            shares: the numbers of samples of the batch's requests.
            threads: the number of threads that compute the batch.
        """
        return BatchMemory(self._limit, shares, FixedReservation(threads))

    def reservation(self) -> Reservation:
        """Return an empty reservation: a context, at whose end everything reserved is released."""
        return Reservation(self._budgets)

    def _wait(self, reservation: Reservation, size: int) -> None:
        if not reservation.wait(size, self._seconds):
            raise MemoryShortageError(
                f"The request takes {size} bytes of memory, which did not become free within {self._seconds:g} s: other requests use "
                "them. Send the request again later"
            )

    def _check_possible(self, wanted: int, requests: int, reservation: Reservation) -> None:
        """Raise LimitError or MemoryShortageError if waiting for this number of bytes is pointless."""
        exceeded = reservation.exceeded(wanted)
        if exceeded is not None:
            raise LimitError(
                f"The request takes {wanted} bytes, and `{exceeded.setting}` of the server allows {exceeded.limit} for all"
            )
        if requests > 1:
            raise MemoryShortageError(f"The requests take {wanted} bytes together")

    def allowance(self, count: int, reservation: Reservation) -> BatchMemory:
        """Return the allowance of one of several runs for a request with ``count`` samples, without waiting."""
        return BatchMemory(self._limit, [count], reservation)
