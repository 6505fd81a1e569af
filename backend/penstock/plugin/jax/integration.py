"""Tensors of pipelines as JAX arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def to_jax_array(array: Any) -> jax.Array:
    """Return a numpy array's memory as a JAX array, or a copy if it cannot be shared.

    Args:
        array: a numpy array, or a CuPy array with valid contents.
    """
    if isinstance(array, np.ndarray):
        return jax.dlpack.from_dlpack(array) if array.flags.writeable else jnp.array(array)
    # The pipeline reuses its memory when this is dropped, although JAX's queued work may still need it: so it is
    # copied.
    with array.device:
        return jnp.array(jax.dlpack.from_dlpack(array), copy=True).block_until_ready()


def _to_jax_array(dali_tensor: Any, copy: bool) -> jax.Array:
    """Return a tensor of a pipeline as a JAX array; a copy if ``copy``. DALI's name."""
    array = to_jax_array(dali_tensor.array)
    return array.copy() if copy else array


def _jax_device(jax_array: jax.Array) -> object:
    """Return the device that holds the array. DALI's name."""
    return jax_array.device
