"""Data from a callback or an iterable: ``ExternalSource``."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.dynamic._devices import DeviceLike
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._dtypes import DTypeLike
from penstock.dynamic._faculties import Given, Outcome
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._values import Batch, Tensor, as_batch, as_tensor
from penstock.runtime.sources import Source
from penstock.tensors import TensorList


class ExternalSource:
    """Gives the data of a callback or an iterable, one item for each call.

    Args:
        source: a function without parameters, an iterable, or a generator function. An item is an array or numbers (a
            tensor), or a batch; with several outputs, a sequence of them.
        num_outputs: in each item.
        cycle: what to do at the end of an iterable: ``"no"``: StopIteration, from then on; ``"raise"``: StopIteration, and
            then begin again; ``"quiet"``: begin again.
        device: where to put the data.
        layout: of the outputs: one, or one for each.
        dtype: of the outputs: one, or one for each.

    >>> source = ExternalSource([[1, 2], [3, 4]], cycle="quiet")
    >>> [int(source()[0]) for _ in range(3)]
    [1, 3, 1]
    """

    def __init__(
        self,
        source: Given,
        num_outputs: int = 1,
        *,
        cycle: str | bool | None = None,
        device: DeviceLike = "cpu",
        layout: str | Sequence[str | None] | None = None,
        dtype: DTypeLike | Sequence[DTypeLike | None] | None = None,
    ) -> None:
        self._num_outputs = unmarked(num_outputs)
        if self._num_outputs < 1:
            raise ValueError(f"num_outputs must be at least 1, got {num_outputs}")
        self._source = Source(unmarked(source), unmarked(cycle))
        if self._source.takes_info:
            raise ValueError("The source of a dynamic ExternalSource is a function with no parameters, or an iterable")
        self._device = unmarked(device)
        self._layouts = self._for_each(unmarked(layout))
        self._dtypes = self._for_each(unmarked(dtype))

    def _for_each(self, given: Given) -> list[Given]:
        """One value for each output."""
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            return [given] * self._num_outputs
        if len(given) != self._num_outputs:
            raise ValueError(f"Expected a sequence of size {self._num_outputs}, one for each output; got {len(given)}")
        return list(given)

    def __call__(self, *, batch_size: int | None = None) -> Outcome:
        """The next item: a tensor, or a batch if the source gives batches; a tuple if there are several outputs.

        Args:
            batch_size: that of batches, which is checked; tensors are repeated so many times.

        Raises:
            StopIteration: the source is at its end.
            ValueError: it gave another number of outputs or of samples.
        """
        values = self._next(unmarked(batch_size))
        return values[0] if self._num_outputs == 1 else tuple(values)

    def _next(self, batch_size: int | None) -> list[Tensor | Batch]:
        item = self._source.call()
        outputs = [item]
        if self._num_outputs > 1:
            if not isinstance(item, Sequence) or len(item) != self._num_outputs:
                found = f"{len(item)}" if isinstance(item, Sequence) else f"a {type(item).__name__}"
                raise ValueError(
                    f"The source gave too few or too many: expected {self._num_outputs} outputs, got {found}"
                )
            outputs = list(item)
        values = [self._converted(data, batch_size, index) for index, data in enumerate(outputs)]
        if len({type(value) for value in values}) > 1:
            raise TypeError("All outputs of a source must be tensors, or all must be batches")
        return values

    def _converted(self, data: object, batch_size: int | None, index: int) -> Tensor | Batch:
        target = as_device(self._device)
        layout, dtype = self._layouts[index], self._dtypes[index]
        if isinstance(data, (Batch, TensorList)):
            whole = as_batch(data, dtype, target, layout)
            if batch_size not in (None, whole.batch_size):
                raise ValueError(
                    f"The source gave another batch: expected batch size {batch_size}, got {whole.batch_size}"
                )
            return whole
        single = as_tensor(data, dtype, target, layout)
        return single if batch_size is None else Batch.broadcast(single, batch_size)
