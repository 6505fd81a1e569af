"""Streams beside that of a pipeline."""

from __future__ import annotations

import weakref
from typing import Any

from penstock.tensors.cuda import require_cupy

# Never destroyed: memory is given back in their order, also later.
_streams: list[Any] = []
_idle: dict[int, list[Any]] = {}


def borrowed_streams(owner: object, count: int) -> list[Any]:
    """Streams of the current device, which are others' as soon as there is no ``owner`` any more."""
    device = int(require_cupy().cuda.Device().id)
    streams = [_taken(device) for _ in range(count)]
    weakref.finalize(owner, _idle.setdefault(device, []).extend, streams)
    return streams


def _taken(device: int) -> Any:
    try:
        # Another thread may have taken the last one.
        return _idle.get(device, []).pop()
    except IndexError:
        _streams.append(require_cupy().cuda.Stream(non_blocking=True))
        return _streams[-1]


def follow(stream: Any, other: Any, event: Any) -> None:
    """Has a stream wait for what another one was told so far; by an event, which may be one that is waited for already."""
    stream.wait_event(other.record(event))
