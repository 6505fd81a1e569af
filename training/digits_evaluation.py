"""How well a network recognizes held-out digits, sent in several ways and preprocessed by the served pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from digits_data import Look, encode, load_split
from digits_pipeline import SERVED
from rich.table import Table

from penstock import Pipeline
from penstock.serving.model_files import load_pipeline

HELD_OUT_LOOKS = [
    look for side in (16, 28, 64, 100, 224) for look in (Look(side, "PNG"), Look(side, "JPEG", colour=True))
]


def preprocess(pipeline: Pipeline, encoded: Sequence[bytes], batch_size: int) -> np.ndarray:
    """Return encoded images as the network's input, (n, 1, 32, 32)."""
    batches = []
    for start in range(0, len(encoded), batch_size):
        batch = [np.frombuffer(data, np.uint8) for data in encoded[start : start + batch_size]]
        (images,) = pipeline.run(encoded_image=batch)
        batches.append(images.as_array())
    return np.concatenate(batches)


def accuracies(recognize: Callable[[np.ndarray], np.ndarray], batch_size: int) -> dict[Look, float]:
    """Return the fraction of the held-out digits that is recognized, for each of `HELD_OUT_LOOKS`.

    Args:
        recognize: a function from images, (n, 1, 32, 32), to their digits, (n,).
        batch_size: the served pipeline's batch size.
    """
    split = load_split()
    pipeline = load_pipeline(SERVED, batch_size=batch_size, num_threads=2, prefetch_queue_depth=1)
    found = {}
    for look in HELD_OUT_LOOKS:
        images = preprocess(pipeline, [encode(digit, look) for digit in split.held_out_digits], batch_size)
        found[look] = float((recognize(images) == split.held_out_labels).mean())
    return found


def table(found: dict[Look, float]) -> Table:
    """Return the accuracies for each look, and their mean."""
    shown = Table("encoding", "pixels", "colours", "held-out accuracy")
    for look, accuracy in found.items():
        shown.add_row(look.encoding, str(look.side), "colour" if look.colour else "grey", f"{accuracy:.3f}")
    shown.add_section()
    shown.add_row("mean", "", "", f"{np.mean(list(found.values())):.4f}")
    return shown
