"""Fetches the pixels of images from displaced positions, on the GPU."""

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
    """The descriptor of one image.

    Attributes:
        map_x, map_y: the addresses of the maps; used by ``Given``.
        pixels: the number of pixels of the target.
        across, down: used by ``Waves``: the offsets, in the table of displacements, of the displacements of rows and of columns.
        displaced: 0 to copy the image unchanged.
        shift: added to positions to make them relative to the centre of the first pixel.
        fill: the value of pixels outside the source.
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
    """The work for one image (H, W, C).

    Attributes:
        source, target: arrays on the GPU.
        fill: the value of pixels outside the source.
        displaced: False to copy the source unchanged.
        maps: arrays on the GPU with the x and the y of each target pixel in the source; used by ``Given``.
        waves: displacement of each row in x and of each column in y; used by ``Waves``.
    """

    source: OnGpu
    target: OnGpu
    fill: float = 0.0
    displaced: bool = True
    maps: tuple[OnGpu, OnGpu] | None = None
    waves: tuple[np.ndarray, np.ndarray] | None = None


def displace_images(kind: str, displacements: Sequence[Displacement], linear: bool, shift: float) -> None:
    """Fill all targets in one launch.

    Args:
        kind: ``Given`` (by maps), ``Ball`` or ``Waves``.
        displacements: the samples.
        linear: interpolate, rather than take the nearest pixel.
        shift: added to positions to make them relative to the centre of the first pixel.
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
