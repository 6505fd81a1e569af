"""JAX: iterators that return arrays, on one device or sharded over several, and functions of arrays as operators."""

from penstock.plugin.epochs import LastBatchPolicy
from penstock.plugin.jax import fn, integration
from penstock.plugin.jax.iterators import DALIGenericIterator, data_iterator

__all__ = ["DALIGenericIterator", "LastBatchPolicy", "data_iterator", "fn", "integration"]
