"""The training pipeline of the digits classifier: random augmentation, then the same steps as in serving."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import Pipeline, fn, pipeline_def, types

ROOT = Path(__file__).resolve().parent.parent
SERVED = ROOT / "pipelines" / "digits_preprocess.py"
READER = "digits"
# Sides of the images that clients send, as powers of two.
_SIDES = (3.0, 8.0)


def digits_pipeline(
    files: Sequence[str], labels: Sequence[int], batch_size: int, augmented: bool = True, seed: int = 0
) -> Pipeline:
    """Return a pipeline that gives images as the network takes them, (1, 32, 32), and labels, (1,).

    Args:
        files: encoded images of digits.
        labels: theirs.
        batch_size: the pipeline's batch size.
        augmented: whether images come in random order, each turned, moved, sized, inverted and compressed at random.
        seed: the seed of all random choices.
    """
    network_input = runpy.run_path(str(SERVED))["network_input"]

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, seed=seed)
    def digits() -> Any:
        encoded, numbers = fn.readers.file(
            files=list(files), labels=list(labels), random_shuffle=augmented, name=READER
        )
        images = fn.decoders.image(encoded, output_type=types.GRAY)
        return network_input(_random_looks(images) if augmented else images), numbers

    return digits()


def _random_looks(images: Any) -> Any:
    """Return images of digits as people write and send them."""
    side = 2.0 ** fn.random.uniform(range=_SIDES)
    images = fn.resize(images, resize_x=side, resize_y=side, interp_type=types.INTERP_CUBIC)
    images = fn.warp_affine(images, matrix=_placements(side), inverse_map=False, fill_value=0)
    inverted = fn.random.coin_flip(probability=0.25)
    images = fn.cast_like(255 * inverted + images * (1 - 2 * inverted), images)
    colours = fn.color_space_conversion(images, image_type=types.GRAY, output_type=types.RGB)
    sent = fn.jpeg_compression_distortion(colours, quality=fn.random.uniform(range=(40, 100), dtype=types.INT32))
    return fn.color_space_conversion(sent, image_type=types.RGB, output_type=types.GRAY)


def _placements(side: Any) -> Any:
    """Return affine maps that turn, shrink and move images of these sides about their centres."""
    centre = fn.stack(side / 2, side / 2)
    moved = fn.random.normal(stddev=0.04, shape=(2,)) * side
    zoom = fn.random.uniform(range=(0.85, 1.08))
    turned = fn.transforms.rotation(angle=fn.random.normal(stddev=6.0), center=centre)
    return fn.transforms.translation(
        fn.transforms.scale(turned, scale=fn.stack(zoom, zoom), center=centre), offset=moved
    )
