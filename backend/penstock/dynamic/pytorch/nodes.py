"""Nodes for TorchData: readers, functions on batches, and conversion to PyTorch. Requires ``torchdata``.

node = Reader(dynamic.readers.File, batch_size=32, file_root="images")
node = DictMapper(node, lambda encoded: dynamic.resize(dynamic.decoders.image(encoded), size=[224, 224]))
loader = torchdata.nodes.Loader(ToTorch(node))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torchdata.nodes

from penstock.dynamic import _readers
from penstock.dynamic._batch import Batch
from penstock.dynamic._streams import stream
from penstock.dynamic._tensor import Tensor

__all__ = ["DictMapper", "Reader", "ToTorch"]

Values = Mapping[str, Tensor | Batch]


class Reader(torchdata.nodes.BaseNode):  # type: ignore[misc]  # it has no types
    """A node that reads a data set and returns dictionaries.

    Args:
        reader_type: a class of ``dynamic.readers``.
        batch_size: the batch size; None: single samples.
        output_names: the keys of the dictionaries; by default ``data`` and ``label``, for readers with two outputs.
        arguments: the reader's arguments.

    Raises:
        ValueError: the number of names differs from the reader's number of outputs.
    """

    def __init__(
        self,
        reader_type: type[_readers.Reader],
        *,
        batch_size: int | None,
        output_names: Iterable[str] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self._reader = reader_type(**arguments)
        self._batch_size = batch_size
        self._names = ("data", "label") if output_names is None else tuple(output_names)
        count = _readers.count_outputs(self._reader)
        if count != len(self._names):
            raise ValueError(
                f"The reader has {count} outputs, but there are names for {len(self._names)}: {self._names}"
            )
        self._epoch: Iterator[tuple[Tensor | Batch, ...]] | None = None

    def next(self) -> dict[str, Tensor | Batch]:
        """Return the next step; raise RuntimeError if :meth:`reset` was not called."""
        if self._epoch is None:
            raise RuntimeError("Call `reset` before the first `next`")
        return dict(zip(self._names, next(self._epoch)))

    def reset(self, initial_state: dict[str, object] | None = None) -> None:
        """Begin the next epoch."""
        if initial_state:
            raise NotImplementedError("Nodes have no state; `dynamic.checkpoint` saves the state of readers")
        super().reset(None)
        self._epoch = self._reader.next_epoch(self._batch_size)

    def get_state(self) -> dict[str, object]:
        """Return an empty dictionary, as nodes have no state."""
        return {}

    def get_metadata(self) -> _readers.ReaderMeta:
        """Return how the reader's samples are divided among shards."""
        return self._reader.get_metadata()


class _Following(torchdata.nodes.BaseNode):  # type: ignore[misc]
    """Base class of nodes that follow another node."""

    def __init__(self, source: torchdata.nodes.BaseNode) -> None:
        super().__init__()
        self._source = source

    def reset(self, initial_state: dict[str, object] | None = None) -> None:
        """Begin the next epoch."""
        super().reset(initial_state)
        self._source.reset(initial_state)

    def get_state(self) -> dict[str, object]:
        """Return an empty dictionary, as nodes have no state."""
        return {}


class DictMapper(_Following):
    """Applies a function to one value of each dictionary.

    Args:
        source: a node that returns dictionaries.
        map_fn: a function that takes a tensor or batch, and returns another one.
        key: the key of the value in the dictionaries.
    """

    def __init__(
        self, source: torchdata.nodes.BaseNode, map_fn: Callable[[Any], Tensor | Batch], key: str = "data"
    ) -> None:
        super().__init__(source)
        self._function, self._key = map_fn, key

    def next(self) -> dict[str, Tensor | Batch]:
        """Return the next dictionary."""
        values = dict(self._source.next())
        values[self._key] = self._function(values[self._key])
        return values


class ToTorch(_Following):
    """Converts dictionaries to tuples of PyTorch tensors. If some values are on a GPU, the others are copied there.

    Args:
        source: a node that returns dictionaries.
        output_stream: the CUDA stream on which the tensors will be used; by default the current one.
    """

    def __init__(self, source: torchdata.nodes.BaseNode, output_stream: object = None) -> None:
        super().__init__(source)
        self._on_stream: AbstractContextManager[object] = nullcontext()
        if output_stream is None and torch.cuda.is_available():
            output_stream = torch.cuda.current_stream()
        if output_stream is not None and not isinstance(output_stream, torch.cuda.Stream):
            node_stream = stream(stream=output_stream)
            output_stream = torch.cuda.ExternalStream(node_stream.handle, node_stream.device_id)
        if output_stream is not None:
            self._on_stream = torch.cuda.stream(output_stream)

    def next(self) -> tuple[torch.Tensor, ...]:
        """Return the next tuple; raise ValueError if its values are on several GPUs."""
        values: Values = self._source.next()
        devices = {value.device for value in values.values() if value.device.device_type == "gpu"}
        if len(devices) > 1:
            raise ValueError(f"All values must be on one GPU, but they are on {sorted(map(str, devices))}")
        moved = [value.to_device(device) for value in values.values() for device in (devices or {value.device})]
        with self._on_stream:
            return tuple(value.torch() for value in moved)
