"""Memory limits of a model's batches; some limits apply to all models of the process together."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.errors import LimitError, MemoryShortageError
from penstock.machine import machine_memory
from penstock.runtime.memory import (
    DEFAULT_SHARE,
    BatchMemory,
    FixedReservation,
    MemoryBudget,
    Reservation,
)
from penstock.serving.settings import AUTOMATIC, Settings, settings_of
from penstock.tensors import HostPool

R = TypeVar("R")


@functools.cache
def process_budget() -> MemoryBudget:
    """Return the budget that all models of this process share. The server's settings define it; models cannot override them."""
    limit = settings_of({}).memory_budget
    if limit == AUTOMATIC:
        limit = int(DEFAULT_SHARE * machine_memory())
    assert not isinstance(limit, str)
    return MemoryBudget(limit, "memory_budget")


@functools.cache
def _model_budget(model: str, version: str, limit: int | None) -> MemoryBudget:
    """Return the budget that all instances of a model share."""
    return MemoryBudget(limit, "max_model_memory")


class RequestMemory:
    """The memory of one instance of a model.

    Args:
        model, version: the model and version of the instance.
        settings: the model's settings.
        pools: returns the pools of the instance, whose unused memory is released if memory gets scarce.
    """

    def __init__(self, model: str, version: str, settings: Settings, pools: Callable[[], Sequence[HostPool]]) -> None:
        self._limit = settings.max_memory
        self._seconds = math.inf if settings.memory_wait_seconds is None else settings.memory_wait_seconds
        self._budgets = [process_budget(), _model_budget(model, version, settings.max_model_memory)]
        self._pools = pools

    def run(self, shares: Sequence[int], work: Callable[[BatchMemory], R]) -> R:
        """Run a batch; if there is no room for it, wait for memory and run it again. Return what ``work`` returns.

        Args:
            shares: the number of samples of each of the batch's requests.
            work: a function that runs the batch within a memory limit.

        Raises:
            LimitError: the batch needs more than a whole budget.
            MemoryShortageError: other batches held the memory for too long; or there is no room for a batch of several requests,
                which should then be run one by one.
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
                    # The pools retain blocks for the next batch; registered with the budget, they release them if memory gets scarce.
                    for pool in self._pools():
                        self._budgets[0].add_pool(pool)
                if not memory.wanted:
                    return result
            self._check_possible(memory.wanted, len(shares), reservation)
            wanted = memory.wanted

    def fixed_allowance(self, shares: Sequence[int], threads: int) -> BatchMemory:
        """Return the allowance of a batch that takes nothing from the budgets; if the batch needs more, it must be run with :meth:`run`.

        A batch that is begun while another one is in flight must not hold memory for which the other one may have to wait.

        Args:
            shares: the number of samples of each of the batch's requests.
            threads: the number of threads that compute the batch.
        """
        return BatchMemory(self._limit, shares, FixedReservation(threads))

    def reservation(self) -> Reservation:
        """Return an empty reservation: a context manager that releases everything that was reserved when it ends."""
        return Reservation(self._budgets)

    def _wait(self, reservation: Reservation, size: int) -> None:
        if not reservation.wait(size, self._seconds):
            raise MemoryShortageError(
                f"The request takes {size} bytes of memory, which did not become free within {self._seconds:g} s: other requests use "
                "them. Send the request again later"
            )

    def _check_possible(self, wanted: int, requests: int, reservation: Reservation) -> None:
        """Raise LimitError or MemoryShortageError if the batch should not wait for ``wanted`` bytes."""
        exceeded = reservation.exceeded(wanted)
        if exceeded is not None:
            raise LimitError(
                f"The request takes {wanted} bytes, but `{exceeded.setting}` of the server allows {exceeded.limit} for all requests "
                "together"
            )
        if requests > 1:
            raise MemoryShortageError(f"The requests take {wanted} bytes together")

    def allowance(self, count: int, reservation: Reservation) -> BatchMemory:
        """Return the allowance of one of several runs for a request; it never waits. ``count``: the run's number of samples."""
        return BatchMemory(self._limit, [count], reservation)
