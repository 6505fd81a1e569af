"""Keys that identify the computation of a call in a captured loop, so that the call is recognized in later steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import CallInterface, frozen
from penstock.dynamic._capture_nodes import CapturedBatch, Reference, RunningLoop
from penstock.dynamic._capture_schedules import Schedule
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._invariants import all_unmarked, is_invariant
from penstock.dynamic._tensor import Tensor
from penstock.tensors import TensorCPU, TensorList

# Larger tensors are not compared between steps: calls with them run outside of the captured pipeline.
_MAX_COMPARED_ELEMENTS = 1 << 16


def key_of(
    loop: RunningLoop,
    interface: CallInterface,
    inputs: Sequence[object],
    arguments: Mapping[str, object],
    batch_size: int | None,
    device: object,
    schedule: Schedule | None,
) -> Hashable | None:
    """Return the key that identifies a call's computation; None if the call cannot be captured.

    Args:
        loop: the loop whose body contains the call.
        interface: the operator's function in ``dynamic``.
        inputs, arguments, batch_size, device: the arguments of the call, as passed.
        schedule: the schedule of the generator from which a random operator draws.
    """
    captured = schedule is not None and batch_size is not None
    parts: list[Hashable] = [interface.schema.name]
    try:
        for item in inputs:
            part = _part(loop, item)
            captured = captured or type(part) is Reference
            parts.append(part)
        for name, value in arguments.items():
            if value is not None and name != "rng":
                part = _part(loop, value)
                captured = captured or type(part) is Reference
                parts.append((name, part))
    except TypeError:
        return None
    if not captured:
        return None
    target = as_device(all_unmarked(device))
    parts.append(None if target is None else str(target))
    if schedule is not None:
        parts.append((id(schedule), schedule.offset))
    return tuple(parts)


def _part(loop: RunningLoop, value: object) -> Hashable:
    """Return the key of an input or an argument; raise TypeError if it cannot be the same in the next step."""
    kind = type(value)
    if kind is CapturedBatch:
        assert isinstance(value, CapturedBatch)
        reference = value.reference_in(loop)
        if reference is None:
            raise TypeError("a result of another step")
        return reference
    if is_invariant(value):
        return _Marked()
    if isinstance(value, (Batch, TensorList)):
        raise TypeError("data of this step")
    if isinstance(value, Tensor):
        return _contents(value)
    if kind is np.ndarray and np.asarray(value).nbytes > _MAX_COMPARED_ELEMENTS:
        raise TypeError("too large to compare")
    return frozen(value)


class _Marked:
    """The key that all values that are marked as invariant have."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Marked)

    def __hash__(self) -> int:
        return hash(_Marked)


def _contents(value: Tensor) -> Hashable:
    """Return a key for the contents of a tensor."""
    storage = value.storage
    if not isinstance(storage, TensorCPU) or storage.array.nbytes > _MAX_COMPARED_ELEMENTS:
        raise TypeError("too large to compare")
    return "tensor", storage.dtype, storage.layout(), storage.array.shape, storage.array.tobytes()
