"""Images whose pixels come from elsewhere, on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate, packed
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, cuda_type, records

_BLOCK_PIXELS = 1024


class _Displacement(NamedTuple):
    """One image.

    Attributes:
        map_x, map_y: of ``Given``.
        pixels: of the target.
        across, down: of ``Waves``: where the table has how far each row and each column is displaced.
        displaced: 0: copied.
        shift: from the positions' origin to the middle of the first pixel.
        fill: what lies outside of the source.
    """

    source: Pointer
    target: Pointer
    map_x: Pointer
    map_y: Pointer
    pixels: Int64
    height: Int32
    width: Int32
    channels: Int32
    out_width: Int32
    across: Int32
    down: Int32
    linear: Int32
    displaced: Int32
    shift: Float
    fill: Float


SOURCE = KernelSource(__file__, _Displacement, BLOCK_PIXELS=_BLOCK_PIXELS)


@dataclass(slots=True)
class Displacement:
    """What happens to one image (H, W, C).

    Attributes:
        source, target: arrays on the GPU.
        fill: what lies outside of the source.
        displaced: False: the source is copied.
        maps: arrays on the GPU with the x and the y of each pixel; of ``Given``.
        waves: how far each row is displaced in x and each column in y; of ``Waves``.
    """

    source: OnGpu
    target: OnGpu
    fill: float = 0.0
    displaced: bool = True
    maps: tuple[OnGpu, OnGpu] | None = None
    waves: tuple[np.ndarray, np.ndarray] | None = None


def displace_images(kind: str, displacements: Sequence[Displacement], linear: bool, shift: float) -> None:
    """Fills all targets in one launch.

    Args:
        kind: ``Given`` (by maps), ``Ball`` or ``Waves``.
        displacements: the samples.
        linear: interpolate; else the nearest pixel is taken.
        shift: added to positions, so that they count from the middle of the first pixel.
    """
    located = [(d, locate(d.source), locate(d.target)) for d in displacements]
    located = [item for item in located if item[2].size]
    if not located:
        return
    table, places = packed([wave for d, _, _ in located for wave in d.waves or ()], np.float32)
    waves = iter(places)
    entries = []
    for d, source, target in located:
        map_x, map_y = (0, 0) if d.maps is None else (locate(one).address for one in d.maps)
        across, down = (0, 0) if d.waves is None else (next(waves), next(waves))
        height, width, channels = source.shape
        entries.append(
            _Displacement(
                source=source.address,
                target=target.address,
                map_x=map_x,
                map_y=map_y,
                pixels=math.prod(target.shape[:2]),
                height=height,
                width=width,
                channels=channels,
                out_width=target.shape[1],
                across=across,
                down=down,
                linear=linear,
                displaced=d.displaced,
                shift=shift,
                fill=d.fill,
            )
        )
    function = SOURCE.kernel(f"displace<{kind}, {cuda_type(located[0][2].dtype)}>")
    counts = [blocks_for(entry.pixels, _BLOCK_PIXELS) for entry in entries]
    launch(function, records(_Displacement, entries), counts, table)
