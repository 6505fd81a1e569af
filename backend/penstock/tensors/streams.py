"""CUDA streams, which pass from one user to the next."""

from __future__ import annotations

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
