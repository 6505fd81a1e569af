"""Tells whether data sets work with the installed TensorFlow; called by programs for DALI."""

from __future__ import annotations

import tensorflow as tf


def _is_at_least(*version: int) -> bool:
    return tuple(map(int, tf.__version__.split(".")[:2])) >= version


def dataset_compatible_tensorflow() -> bool:
    """Return whether data sets work."""
    return _is_at_least(2, 4)


def dataset_inputs_compatible_tensorflow() -> bool:
    """Return whether data sets with inputs work."""
    return dataset_compatible_tensorflow()


def dataset_distributed_compatible_tensorflow() -> bool:
    """Return whether data sets work with ``tf.distribute``."""
    return _is_at_least(2, 5)
