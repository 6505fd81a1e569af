"""CUDA streams, which pass from one user to the next."""

from __future__ import annotations

import weakref
from typing import Any

from penstock.tensors.cuda import require_cupy

# Streams are never destroyed: results outlive what made them, and libraries free memory in the order of its stream.
# Keeping them here matters for a pipeline in a reference cycle, whose stream would be finalized with it.
_streams: list[object] = []
_idle: dict[int, list[object]] = {}


def take_stream(device_id: int) -> Any:
    """A CUDA stream of the current device, whose number this is, that nobody uses."""
    try:
        # Another thread may have taken the last one.
        return _idle.get(device_id, []).pop()
    except IndexError:
        stream = require_cupy().cuda.Stream(non_blocking=True)
        _streams.append(stream)
        return stream


def give_back(device_id: int, *streams: object) -> None:
    """Leaves streams of a device to others."""
    _idle.setdefault(device_id, []).extend(streams)


def borrowed_streams(owner: object, count: int) -> list[Any]:
    """Streams of the current device, which are others' as soon as there is no ``owner`` any more."""
    device = int(require_cupy().cuda.Device().id)
    streams = [take_stream(device) for _ in range(count)]
    weakref.finalize(owner, give_back, device, *streams)
    return streams


def follow(stream: Any, other: Any, event: Any) -> None:
    """Has a stream wait for what another one was told so far; by an event, which may be one that is waited for already."""
    stream.wait_event(other.record(event))
