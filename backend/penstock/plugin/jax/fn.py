"""Functions of JAX arrays as operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from penstock.plugin.jax.shards import global_array
from penstock.python_function import call_python

__all__ = ["jax_function"]


def jax_function(
    function: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    output_layouts: str | Sequence[str] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Callable[..., Any]:
    """Decorate a function of JAX arrays, so that pipelines can use the function as an operator.

    Args:
        function: takes an array for each input, whose first dimension is the batch (samples must have equal shapes), and
            returns an array, or a tuple of several. It may be compiled with ``jax.jit``.
        num_outputs: the number of arrays that the function returns; 0: it returns None.
        output_layouts: the layout of a sample, for all outputs, or a sequence with the layout of each. By default, an output has
            the layout of the input at the same position, if they have equally many dimensions.
        sharding: if set, the function gets global arrays with this sharding; only for processes with one device each.
        device: ``cpu`` or ``gpu``; by default the device of the inputs.
        preserve: whether to call the function even if no output of the pipeline depends on it.

    Raises:
        NotImplementedError: ``sharding`` is set, and this process has several devices.

    >>> @jax_function  # doctest: +SKIP
    ... @jax.jit
    ... def flipped(images):
    ...     return images[:, :, ::-1]
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        called = function if sharding is None else _on_global_arrays(function, sharding)

        @functools.wraps(function)
        def operator(*inputs: object) -> Any:
            more = {"device": device, "preserve": preserve}
            return call_python(
                "_JaxFunction", inputs, called, num_outputs, output_layouts, more, "penstock.plugin.jax.fn.jax_function"
            )

        return operator

    return decorate if function is None else decorate(function)


def _on_global_arrays(function: Callable[..., Any], sharding: jax.sharding.Sharding) -> Callable[..., object]:
    """Wrap a function so that it gets this process's shards as global arrays, and return this process's shards of the results."""
    if jax.local_device_count() != 1:
        raise NotImplementedError(
            f"`sharding` needs processes with one device each; this one has {jax.local_device_count()}"
        )

    def called(*arrays: object) -> object:
        result = function(*(global_array([array], sharding) for array in arrays))
        if result is None:
            return None
        single = not isinstance(result, (tuple, list))
        shards = tuple(item.addressable_shards[0].data for item in ([result] if single else result))
        return shards[0] if single else shards

    return called
