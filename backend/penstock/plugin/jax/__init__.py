"""JAX: iterators that return JAX arrays, on one device or sharded over several, and functions of JAX arrays as operators."""

from penstock.plugin.epochs import LastBatchPolicy
from penstock.plugin.jax import fn, integration
from penstock.plugin.jax.iterators import DALIGenericIterator, data_iterator

__all__ = ["DALIGenericIterator", "LastBatchPolicy", "data_iterator", "fn", "integration"]


def __getattr__(name: str) -> object:
    if name != "Version":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Programs for DALI compare the version of JAX with this attribute.
    from packaging.version import Version

    return Version
