"""`external_source`: returns data that the program feeds."""

from __future__ import annotations

from collections import deque

from penstock.data_types import NO_TYPE, DALIDataType, dtype_name
from penstock.schema import Alias, Argument, FedBatch, InputOperator, Schema, Workspace, register_operator
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.batch import kind_of


@register_operator
class ExternalSource(InputOperator):
    """Returns, in each run, the oldest batch in the queue."""

    schema = Schema(
        name="ExternalSource",
        inputs=(),
        arguments=(
            Argument("blocking", "bool", False, "Wait for data, instead of failing, if there is none."),
            Argument("dtype", "DALIDataType", None, "The required type of the data."),
            Argument("layout", "layout", None, "The layout of the data, one letter per dimension."),
            Argument("ndim", "int32", None, "The required number of dimensions of each sample."),
            Argument(
                "no_copy", "bool", False, "Use the fed memory in place; it must stay unchanged until the run is over."
            ),
            Argument(
                "repeat_last",
                "bool",
                False,
                "If nothing new was fed, return the last batch again; at first, an empty one.",
            ),
        ),
        stateful=True,
        aliases=(Alias("_ExternalSource", fn="_external_source"),),
    )

    @property
    def is_cheap_on_host(self) -> bool:
        return not self.args["blocking"]

    def setup(self) -> None:
        super().setup()
        ndim, layout = self.args["ndim"], self.args["layout"]
        if ndim is not None and layout and len(layout) != ndim:
            raise RuntimeError(
                "Number of dimensions in the provided layout does not match the ndim argument. The arguments provided:\n "
                f'ndim = {ndim},\n layout: "{layout}".'
            )
        if ndim is not None and ndim < 0:
            raise RuntimeError(
                f"Incorrect number of dimensions ({ndim}). Use positive values for tensors or 0 for scalars."
            )
        self._queue: deque[FedBatch] = deque()
        self._last: FedBatch | None = None
        # Type, number of dimensions and layout of the previous batch that had samples.
        self._previous: tuple[DALIDataType, int, str] | None = None

    def _add(self, fed: FedBatch) -> None:
        self._queue.append(fed)

    def _checked(self, batch: TensorList) -> TensorList:
        """Return the batch with the declared layout, if it has none.

        Raises:
            RuntimeError: type, number of dimensions or layout differ from those that the arguments declare, or from the previous batch's.
        """
        if not len(batch):
            return batch
        layout = self.args["layout"]
        if layout and not batch.layout() and batch.ndim() == len(layout):
            batch = batch.relabelled(layout=layout)
        kind = kind_of(batch)
        if kind != self._previous:
            self._check_type(batch)
            self._check_ndim(batch)
            self._check_layout(batch)
            self._previous = kind
        return batch

    def _check_type(self, batch: TensorList) -> None:
        dtype, name = self.args["dtype"], dtype_name(batch.dtype)
        if dtype not in (None, NO_TYPE) and batch.dtype != dtype:
            raise RuntimeError(f"ExternalSource expected data of type {dtype_name(dtype)} and got: {name}")
        if self._previous is not None and batch.dtype != self._previous[0]:
            raise RuntimeError(
                "Type of the data fed to the external source has changed from the previous iteration. "
                f"Type in the previous iteration was {dtype_name(self._previous[0])} and the current type is {name}."
            )

    def _check_ndim(self, batch: TensorList) -> None:
        ndim, layout = self.args["ndim"], self.args["layout"]
        declared = len(layout) if layout and ndim is None else ndim
        if declared is not None and batch.ndim() != declared:
            raise RuntimeError(
                f"ExternalSource expected data with {declared} dimensions and got {batch.ndim()} dimensions."
            )
        if self._previous is not None and batch.ndim() != self._previous[1]:
            raise RuntimeError(
                "Number of dimensions of the data fed to the external source has changed from previous iteration. "
                f"Dimensionality in the previous iteration was {self._previous[1]} and the current is {batch.ndim()}."
            )

    def _check_layout(self, batch: TensorList) -> None:
        layout = self.args["layout"]
        if layout is not None and batch.layout() != layout:
            raise RuntimeError(f'Expected data with layout: "{layout}" and got: "{batch.layout()}".')
        if self._previous is not None and batch.layout() != self._previous[2] != "":
            raise RuntimeError(
                "Layout of the data fed to the external source has changed from previous iteration. "
                f'Layout in the previous iteration was "{self._previous[2]}" and the current is "{batch.layout()}".'
            )

    def pending_batch_size(self) -> int | None:
        with self._lock:
            fed = self._queue[0] if self._queue else self._last
        if fed is None:
            # With `repeat_last`, batches have no samples until the first one is fed.
            return 0 if self.args["repeat_last"] else None
        return len(fed.batch)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def has_data(self) -> bool:
        return bool(self._queue) or self._last is not None

    def run(self, workspace: Workspace) -> None:
        with self._lock:
            fed = self._queue.popleft() if self._queue else self._last
        if fed is not None:
            batch, ticket = self._checked(fed.batch), fed.ticket
            if self.args["repeat_last"]:
                self._last = FedBatch(batch, ticket)
        elif self.args["repeat_last"]:
            batch, ticket = TensorListCPU.of_samples([]), None
        else:
            raise IndexError(
                "Attempted to peek the data batch that doesn't exist: feed more data to this external source before running."
            )
        self.taken = ticket
        if batch.device_type != workspace.device:
            batch = TensorListGPU.upload(batch) if isinstance(batch, TensorListCPU) else batch.as_cpu()
        workspace.outputs = [batch]

    def reset(self) -> None:
        self._queue.clear()

    def drop(self) -> None:
        with self._lock:
            self._queue.clear()
            self._last = None
