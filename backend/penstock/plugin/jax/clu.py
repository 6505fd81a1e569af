"""Iterators that can peek at the next batch, with the interface of Google CLU's ``PeekableDatasetIterator``."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from penstock.plugin.jax.iterators import DALIGenericIterator, data_iterator

try:
    from clu.data.dataset_iterator import ArraySpec
except ImportError:  # without CLU: JAX's own description of an array, which has the same attributes
    from jax import ShapeDtypeStruct as ArraySpec


def get_spec_for_array(jax_array: jax.Array) -> Any:
    """Return the shape and dtype of an array, as CLU's ``ArraySpec``, or JAX's ``ShapeDtypeStruct`` if CLU is not installed."""
    return ArraySpec(shape=jax_array.shape, dtype=jax_array.dtype)


class DALIGenericPeekableIterator(DALIGenericIterator):
    """A :class:`~penstock.plugin.jax.DALIGenericIterator` that can return its next batch without taking it.

    Shapes and types must be the same in all batches; otherwise ``next`` and ``peek`` raise ValueError.

    Args: those of :class:`~penstock.plugin.jax.DALIGenericIterator`.
    """

    _pool: ThreadPoolExecutor | None = None
    _peeked: dict[str, jax.Array] | None = None
    _element_spec: dict[str, object] | None = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._lock = threading.RLock()

    # Copy the signature of the base class's constructor, for tools that inspect it.
    functools.update_wrapper(__init__, DALIGenericIterator.__init__)

    def __next__(self) -> dict[str, jax.Array]:
        with self._lock:
            if self._peeked is not None:
                batch, self._peeked = self._peeked, None
                return batch
            return self._checked(super().__next__())

    def __iter__(self) -> Any:
        return self if self._peeked is not None else super().__iter__()

    def peek(self) -> dict[str, jax.Array]:
        """Return the batch that ``next`` returns next, without taking it."""
        with self._lock:
            if self._peeked is None:
                self._peeked = self._checked(super().__next__())
            return self._peeked

    def peek_async(self) -> Future[dict[str, jax.Array]]:
        """Return a future of :meth:`peek`, which runs on a separate thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=1)
        return self._pool.submit(self.peek)

    def checkpoints(self) -> list[bytes]:
        """See the base class. Raise RuntimeError if :meth:`peek` returned a batch that was not taken yet."""
        if self._peeked is not None:
            raise RuntimeError("A batch was returned by `peek`: take it with `next` before making a checkpoint.")
        return super().checkpoints()

    @property
    def element_spec(self) -> dict[str, object]:
        """The shape and dtype of each output, by name."""
        if self._element_spec is None:
            self.peek()
        assert self._element_spec is not None
        return self._element_spec

    @property
    def is_nonpadding(self) -> Any:
        """Whether each sample of the last batch belongs to the epoch, rather than being padding: an array of bool of shape
        (batch,)."""
        counts = self._epoch.within() or [self.batch_size] * self._num_gpus
        flags = np.concatenate([np.arange(self.batch_size) < count for count in counts])
        return flags if self._sharding is None else jax.device_put(jnp.asarray(flags), self._sharding)

    def _checked(self, batch: dict[str, jax.Array]) -> dict[str, jax.Array]:
        spec = {name: get_spec_for_array(array) for name, array in batch.items()}
        if self._element_spec is None:
            self._element_spec = spec
        if spec != self._element_spec:
            raise ValueError(
                f"The shape or type of the output changed between iterations: {spec} and {self._element_spec}"
            )
        return batch


@functools.wraps(data_iterator)
def peekable_data_iterator(*arguments: Any, **keywords: Any) -> Callable[..., Any]:
    return data_iterator(*arguments, **keywords, _kind=DALIGenericPeekableIterator)


peekable_data_iterator.__doc__ = """:func:`~penstock.plugin.jax.data_iterator` that gives a :class:`DALIGenericPeekableIterator`.

Args: those of :func:`~penstock.plugin.jax.data_iterator`.
"""
