"""Memory limits of batches: one for each request, and budgets that the batches of a process share.

A batch of up to :data:`SMALL_BATCH_BYTES` is only counted. A larger one takes memory from the budgets as it grows, without waiting;
if there is no room, it gives everything back, and runs again once all the memory that it needs is free. So no batch waits while
it holds memory, and no two batches can wait for each other.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import math
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from penstock.data_types import element_size
from penstock.errors import LimitError
from penstock.schema.workspace import OutputSpec, Shape, Workspace
from penstock.tensors import HostPool, TensorList, TensorListGPU

if TYPE_CHECKING:
    from typing import Self

SMALL_BATCH_BYTES = 64 << 20
"""Batches of up to this many bytes do not count in budgets; each instance of a model has at most two batches at a time."""

SCRATCH_BYTES_OF_THREAD = 16 << 20
"""The bytes of scratch memory that each thread may take for a batch that is begun early, enough for a photograph of two megapixels."""

DEFAULT_SHARE = 0.6
"""The share of the machine's or container's memory that batches may take. The rest is for models, libraries, requests
and answers.
"""

_LIGHT_SHARE = 1 / 16
"""A batch reserves an upper bound of its memory if the bound is at most this fraction of the smallest budget; otherwise, it is counted."""

# One lock for all budgets, because a batch takes memory from several budgets at once.
_lock = threading.Lock()
_waiting: list[_Waiting] = []


class MemoryBudget:
    """Bytes of host memory that batches share.

    Args:
        limit: the limit, in bytes; None: no limit.
        setting: the name of the setting that sets the limit, for messages.
    """

    def __init__(self, limit: int | None, setting: str) -> None:
        self.limit = math.inf if limit is None else limit
        self.setting = setting
        self.reserved_bytes = 0
        self._pools: weakref.WeakSet[HostPool] = weakref.WeakSet()

    def add_pool(self, pool: HostPool) -> None:
        """Add a pool whose unused blocks are released when memory gets scarce."""
        self._pools.add(pool)

    def fits(self, size: int) -> bool:
        """Return whether ``size`` more bytes are within the limit."""
        return self.reserved_bytes + size <= self.limit

    def release_unused(self) -> None:
        """Release blocks that pools retain for later batches, if memory is short."""
        if self.reserved_bytes + sum(pool.reserved for pool in list(self._pools)) > self.limit:
            for pool in list(self._pools):
                pool.release()


class _Waiting:
    """A batch that waits for memory; batches are admitted in the order of ``_waiting``."""

    def __init__(self, budgets: Sequence[MemoryBudget], size: int) -> None:
        self.budgets, self.size = budgets, size
        self.admitted = threading.Event()


class Reservation:
    """Memory that one batch has reserved from budgets.

    Args:
        budgets: the budgets from which the memory is taken; all of them must have room for it.
    """

    def __init__(self, budgets: Sequence[MemoryBudget]) -> None:
        self._budgets = budgets
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    @functools.cached_property
    def light_bytes(self) -> float:
        """The largest estimate that a batch may reserve; if its estimate is larger, its memory has to be tracked exactly."""
        return _LIGHT_SHARE * min(budget.limit for budget in self._budgets)

    def exceeded(self, size: int) -> MemoryBudget | None:
        """Return a budget whose limit is below ``size`` bytes; None if there is none."""
        return next((budget for budget in self._budgets if size > budget.limit), None)

    def grow(self, size: int) -> bool:
        """Grow to ``size`` bytes if there is room and no batch is waiting for memory; return whether the reservation grew."""
        more = size - self.size
        with _lock:
            if _waiting or not all(budget.fits(more) for budget in self._budgets):
                return False
            _take(self._budgets, more)
        self.size = size
        self._release_unused()
        return True

    def wait(self, size: int, seconds: float) -> bool:
        """Wait until there is room for ``size`` bytes, and reserve them; return False on a timeout. Call this only if
        nothing is reserved.
        """
        assert not self.size
        waiting = _Waiting(self._budgets, size)
        with _lock:
            _waiting.append(waiting)
            _admit()
        waiting.admitted.wait(min(seconds, threading.TIMEOUT_MAX))
        with _lock:
            if not waiting.admitted.is_set():
                _waiting.remove(waiting)
                _admit()
                return False
        self.size = size
        self._release_unused()
        return True

    def give_back(self) -> None:
        """Release the whole reservation."""
        if self.size:
            with _lock:
                _take(self._budgets, -self.size)
                _admit()
            self.size = 0

    def _release_unused(self) -> None:
        for budget in self._budgets:
            budget.release_unused()


class FixedReservation(Reservation):
    """The memory of a batch that is begun while the previous one is in flight, and that may take nothing from budgets.

    Besides :data:`SMALL_BATCH_BYTES`, each thread may take :data:`SCRATCH_BYTES_OF_THREAD`: without this memory, hardly any batch of
    photographs could begin.

    Args:
        threads: the number of threads that compute the batch.
    """

    def __init__(self, threads: int) -> None:
        super().__init__(())
        self.size = SMALL_BATCH_BYTES + threads * SCRATCH_BYTES_OF_THREAD

    @functools.cached_property
    def light_bytes(self) -> float:
        return 0

    def grow(self, size: int) -> bool:
        return False


def _take(budgets: Sequence[MemoryBudget], size: int) -> None:
    for budget in budgets:
        budget.reserved_bytes += size


def _admit() -> None:
    """Admit waiting batches that fit, in order; no batch overtakes another that waits for the same budget."""
    full: set[MemoryBudget] = set()
    for waiting in list(_waiting):
        lacking = {budget for budget in waiting.budgets if not budget.fits(waiting.size)}
        if not lacking and full.isdisjoint(waiting.budgets):
            _take(waiting.budgets, waiting.size)
            _waiting.remove(waiting)
            waiting.admitted.set()
        full |= lacking


_NO_ROOM = "{} bytes of memory are needed, more than is free now"


class BatchMemory:
    """The memory allowance of one batch; see :class:`penstock.schema.workspace.Allowance`.

    Args:
        limit: the bytes that each request may take on the host, and also on a GPU; None: no limit.
        shares: the number of samples of each request, in order.
        reservation: the batch's reservation.

    Attributes:
        wanted: the bytes that the batch needs, if there was no room for them; if so, its results must be discarded. 0: there was room.
    """

    def __init__(self, limit: int | None, shares: Sequence[int], reservation: Reservation) -> None:
        self.wanted = 0
        self._limit = math.inf if limit is None else limit
        self._shares = shares
        self._reservation = reservation
        self._slots: Sequence[TensorList | None] = ()
        # Both indexed by whether memory is on a GPU: upper bounds of the bytes in use, and the bytes allowed without an exact count.
        self._planned = [0, 0]
        # If all requests together stay within the limit of one request, each does. There is no budget for GPUs.
        self._unconditional_bytes = [min(max(SMALL_BATCH_BYTES, reservation.size), self._limit), self._limit]

    def attach(self, slots: Sequence[TensorList | None]) -> None:
        """Register the slots that will hold the batch's data."""
        self._slots = slots

    def refused(
        self,
        workspace: Workspace,
        shapes: Sequence[Sequence[Shape]],
        specs: Sequence[OutputSpec],
        working: Sequence[int],
    ) -> dict[int, LimitError]:
        """Return an error for each sample whose outputs may not be allocated; see :class:`penstock.schema.workspace.Allowance`."""
        planned = sum(sum(map(math.prod, batch)) * element_size(spec.dtype) for batch, spec in zip(shapes, specs))
        on_gpu = workspace.device != "cpu"
        # Most batches are so small that an upper bound of what they need fits.
        if self._has_room_for_all(workspace, planned, working):
            if not workspace.transient:
                self._planned[on_gpu] += planned
            return {}
        if not on_gpu:
            return self._examined(workspace, _Need(workspace, shapes, specs, working), False)
        # Scratch memory is on the host.
        refused = self._examined(workspace, _Need(workspace, (), (), working), False) if working else {}
        return refused or self._examined(workspace, _Need(workspace, shapes, specs, ()), True)

    def _has_room_for_all(self, workspace: Workspace, planned: int, working: Sequence[int]) -> bool:
        """Return whether planned outputs and scratch memory fit even if nothing that was planned earlier has been released."""
        on_gpu = workspace.device != "cpu"
        if on_gpu and self._planned[True] + planned > self._unconditional_bytes[True]:
            return False
        outputs = self._planned[False] + (0 if on_gpu else planned)
        # Often there is room even if all samples used their scratch memory at the same time.
        if outputs + sum(working) <= self._unconditional_bytes[False]:
            return True
        total = outputs + sum(heapq.nlargest(workspace.num_threads, working))
        if total <= self._unconditional_bytes[False]:
            return True
        if total > min(self._limit, self._reservation.light_bytes) or not self._reservation.grow(total):
            return False
        self._unconditional_bytes[False] = total
        return True

    def claim(self, workspace: Workspace, size: int) -> None:
        """Raise LimitError unless an output of ``size`` bytes may be allocated."""
        on_gpu = workspace.device != "cpu"
        if self._planned[on_gpu] + size <= self._unconditional_bytes[on_gpu]:
            self._planned[on_gpu] += size
            return
        held = sum(self._held_by_request(workspace, on_gpu).values())
        if held + size > self._limit:
            raise LimitError(
                f"Its output takes {size} bytes in addition to {held} bytes in use, but the model's `max_memory` allows a request only "
                f"{self._limit}"
            )
        if not self._has_room(held + size, 0, on_gpu):
            raise LimitError(_NO_ROOM.format(held + size))

    def _examined(self, workspace: Workspace, need: _Need, on_gpu: bool) -> dict[int, LimitError]:
        if self._planned[on_gpu] + need.output_bytes + need.scratch_bytes <= self._unconditional_bytes[on_gpu]:
            self._planned[on_gpu] += need.output_bytes
            return {}
        held = self._held_by_request(workspace, on_gpu)
        over = need.beyond(self._limit) or self._over_together(workspace, need, held)
        if over:
            return over
        output_bytes = sum(held.values()) + need.output_bytes
        if self._has_room(output_bytes, need.scratch_bytes, on_gpu):
            return {}
        error = LimitError(_NO_ROOM.format(output_bytes + need.scratch_bytes))
        return dict.fromkeys(workspace.live_indices, error)

    def _has_room(self, output_bytes: int, scratch_bytes: int, on_gpu: bool) -> bool:
        """Return whether the batch may hold ``output_bytes`` and, temporarily, ``scratch_bytes``; count these bytes as in use, or
        record that they are wanted.
        """
        total = output_bytes + scratch_bytes
        if not on_gpu and total > max(SMALL_BATCH_BYTES, self._reservation.size) and not self._reservation.grow(total):
            self.wanted = max(self.wanted, total)
            return False
        self._planned[on_gpu] = output_bytes
        self._unconditional_bytes[on_gpu] = max(self._unconditional_bytes[on_gpu], min(total, self._limit))
        return True

    def _held_by_request(self, workspace: Workspace, on_gpu: bool) -> Counter[int]:
        """Return the bytes that each request holds on a GPU or on the host while an operator runs."""
        held: Counter[int] = Counter()
        batches = {id(batch): batch for batch in (*self._slots, *workspace.inputs) if batch is not None}
        for batch in batches.values():
            if isinstance(batch, TensorListGPU) == on_gpu and len(batch):
                itemsize = element_size(batch.dtype)
                positions = batch.positions or range(len(batch))
                for position, shape in zip(positions, batch.shapes):
                    held[self._request_of(position)] += math.prod(shape) * itemsize
        return held

    def _request_of(self, position: int) -> int:
        return bisect.bisect_right(self._ends, position)

    @functools.cached_property
    def _ends(self) -> list[int]:
        """The end of each request's range of samples, exclusive."""
        return list(accumulate(self._shares))

    def _over_together(self, workspace: Workspace, need: _Need, held: Counter[int]) -> dict[int, LimitError]:
        """Return an error for each sample of the requests whose samples together exceed the limit."""
        members: dict[int, list[int]] = {}
        for index in workspace.live_indices:
            members.setdefault(self._request_of(workspace.batch_position(index)), []).append(index)
        errors: dict[int, LimitError] = {}
        for request, indices in members.items():
            new = need.of(indices)
            if held[request] + new > self._limit:
                error = LimitError(
                    f"The {len(indices)} samples of the request take {new} bytes here, in addition to {held[request]} in use, but "
                    f"the model's `max_memory` allows only {self._limit}"
                )
                errors.update(dict.fromkeys(indices, error))
        return errors


class _Need:
    """The bytes that a run of an operator needs.

    Args:
        workspace, shapes, specs, working: see :class:`penstock.schema.workspace.Allowance`.

    Attributes:
        output_bytes: the outputs' bytes.
        scratch_bytes: the largest number of bytes that are in use at a time while outputs are computed.
    """

    def __init__(
        self,
        workspace: Workspace,
        shapes: Sequence[Sequence[Shape]],
        specs: Sequence[OutputSpec],
        working: Sequence[int],
    ) -> None:
        self._threads, self._transient = workspace.num_threads, workspace.transient
        self._shapes = shapes
        itemsizes = [element_size(spec.dtype) for spec in specs]
        self._outputs = [0] * workspace.batch_size
        for column, itemsize in zip(shapes, itemsizes):
            for index, shape in enumerate(column):
                self._outputs[index] += math.prod(shape) * itemsize
        self._working = working or [0] * len(self._outputs)
        self.output_bytes, self.scratch_bytes = self._split(range(len(self._outputs)))

    def of(self, indices: Sequence[int]) -> int:
        """Return the number of bytes that these samples need together."""
        return sum(self._split(indices))

    def _split(self, indices: Sequence[int]) -> tuple[int, int]:
        outputs = [self._outputs[index] for index in indices]
        working = [self._working[index] for index in indices]
        if self._transient:
            # A thread runs the next steps on a sample immediately, so no more of these outputs exist at a time than there are threads.
            return 0, sum(heapq.nlargest(self._threads, map(sum, zip(outputs, working))))
        return sum(outputs), sum(heapq.nlargest(self._threads, working))

    def beyond(self, limit: float) -> dict[int, LimitError]:
        """Return an error for each sample that exceeds the limit on its own."""
        return {
            index: self._error(index, limit)
            for index, (output, working) in enumerate(zip(self._outputs, self._working))
            if output + working > limit
        }

    def _error(self, index: int, limit: float) -> LimitError:
        parts = []
        if self._outputs[index]:
            shapes = " and ".join("x".join(map(str, lists[index])) or "1" for lists in self._shapes)
            parts.append(f"{self._outputs[index]} bytes for its result of {shapes}")
        if self._working[index]:
            parts.append(f"{self._working[index]} bytes while it is computed")
        return LimitError(f"It takes {' and '.join(parts)}, but the model's `max_memory` allows a request only {limit}")
