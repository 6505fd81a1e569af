"""Tensors of pipelines as JAX arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def to_jax_array(array: Any) -> jax.Array:
    """Return an array as a JAX array, which shares the memory if possible; the memory of CuPy arrays is copied.

    Args:
        array: a numpy array, or a CuPy array with valid contents.
    """
    if isinstance(array, np.ndarray):
        return jax.dlpack.from_dlpack(array) if array.flags.writeable else jnp.array(array)
    # Copied: the pipeline reuses the memory when `array` is released, although work that JAX has queued may still need
    # it.
    with array.device:
        return jnp.array(jax.dlpack.from_dlpack(array), copy=True).block_until_ready()


def _to_jax_array(dali_tensor: Any, copy: bool) -> jax.Array:
    """Return a tensor of a pipeline as a JAX array; ``copy``: always copy the memory. The name is DALI's."""
    array = to_jax_array(dali_tensor.array)
    return array.copy() if copy else array


def _jax_device(jax_array: jax.Array) -> object:
    """Return the device that holds the array. The name is DALI's."""
    return jax_array.device
