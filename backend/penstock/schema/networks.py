"""Networks that operators run, on this or another server: the networks' tensors, and how to call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.data_types import DALIDataType, dtype_name

Dim = int | str | None


@dataclass(frozen=True)
class NetworkTensor:
    """An input or output of a network.

    Attributes:
        name: the tensor's name.
        dtype: the dtype of the elements.
        dims: the extents; an extent that varies is a name, or None.
    """

    name: str
    dtype: DALIDataType
    dims: tuple[Dim, ...]

    def __str__(self) -> str:
        dims = ", ".join("?" if dim is None else str(dim) for dim in self.dims)
        return f"`{self.name}`, {dtype_name(self.dtype)} of shape ({dims})"

    def accepts(self, shape: Sequence[int]) -> bool:
        """Return whether an array of this shape is a possible value of the tensor."""
        return len(shape) == len(self.dims) and all(
            dim == extent for dim, extent in zip(self.dims, shape) if isinstance(dim, int)
        )


class Network(Protocol):
    """A network, wherever it runs.

    Attributes:
        title: the network's name in messages.
        max_batch_size: the largest number of samples that the network accepts together.
        inputs, outputs: the network's tensors.
    """

    title: str

    @property
    def max_batch_size(self) -> float: ...
    @property
    def inputs(self) -> Sequence[NetworkTensor]: ...
    @property
    def outputs(self) -> Sequence[NetworkTensor]: ...

    def rows_to_run(self, count: int) -> int:
        """Return the number of samples with which to run ``count`` samples: more, if few different numbers make the network faster."""

    def run(self, arrays: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
        """Run the network once.

        Args:
            arrays: the inputs by name, contiguous, on the operator's device.
            wanted: the names of the outputs.

        Returns:
            The wanted outputs, on the same device. An output whose samples differ in shape is a list of its samples.
        """
