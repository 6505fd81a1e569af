"""Images whose pixels come from elsewhere, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate, packed

# Of a block; as in displacement.cu.
_BLOCK_PIXELS = 1024
_DISPLACEMENT = np.dtype(
    [
        *((name, np.uint64) for name in ("source", "target", "map_x", "map_y")),
        ("pixels", np.int64),
        *((name, np.int32) for name in ("height", "width", "channels", "out_width")),
        *((name, np.int32) for name in ("across", "down", "linear", "displaced")),
        ("shift", np.float32),
        ("fill", np.float32),
    ],
    align=True,
)


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

    source: Any
    target: Any
    fill: float = 0.0
    displaced: bool = True
    maps: tuple[Any, Any] | None = None
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
        maps = (0, 0) if d.maps is None else [locate(one).address for one in d.maps]
        wave = (0, 0) if d.waves is None else (next(waves), next(waves))
        height, width, _ = target.shape
        entries.append(
            (
                source.address,
                target.address,
                *maps,
                height * width,
                *source.shape,
                width,
                *wave,
                linear,
                d.displaced,
                shift,
                d.fill,
            )
        )
    function = kernel("displacement", f"displace<{kind}, {cuda_type(located[0][2].dtype)}>")
    descriptors = np.array(entries, _DISPLACEMENT)
    launch(
        function, descriptors, [blocks_for(pixels, _BLOCK_PIXELS) for pixels in descriptors["pixels"].tolist()], table
    )
