"""Base class of operators that run a network: it joins samples to the network's batches, and splits results into samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.data_types import dtype_name
from penstock.errors import CancelledError, did_you_mean
from penstock.schema import Argument, Input, Operator, OutputSpec, Workspace
from penstock.schema.networks import Network, NetworkTensor
from penstock.tensors.cuda import require_cupy
from penstock.tensors.tensor import check_layout

INPUT = Input("input", doc="The network's inputs, in its order, one batch for each.")
ARGUMENTS = (
    Argument("input_names", "string[]", None, "The network's inputs, in the order of the operator's.", example=["x"]),
    Argument(
        "output_names",
        "string[]",
        None,
        "The network's outputs that are returned, in this order; may be omitted if it has only one.",
        example=["y"],
    ),
    Argument("output_layouts", "layout[]", None, "Layouts of the outputs, in order; further outputs have none."),
    Argument("max_batch_size", "int32", 32, "The largest number of samples that run together."),
)


def count_outputs(arguments: dict[str, Any]) -> int:
    """Return the number of the operator's outputs for these arguments."""
    return len(arguments.get("output_names") or [None])


class NetworkOperator(Operator):
    """Base class of operators that run samples through the network that :meth:`network` returns, samples of equal shapes together."""

    def setup(self) -> None:
        if self.args["max_batch_size"] < 1:
            raise ValueError(f"`max_batch_size` must be 1 or more. Got: {self.args['max_batch_size']}")
        for name in ("input_names", "output_names"):
            value = self.args[name]
            if value is not None and (not value or len(set(value)) < len(value)):
                raise ValueError(f"`{name}` must list different names. Got: {value}")
        if len(self.args["output_layouts"] or ()) > count_outputs(self.args):
            raise ValueError(
                f"`output_layouts` must have a layout for each of {count_outputs(self.args)} outputs. "
                f"Got: {len(self.args['output_layouts'])}"
            )

    def network(self) -> Network:
        """Return the network to run the next batch with."""
        raise NotImplementedError(f"{type(self).__name__} must implement `network`")

    def tensors(self, network: Network, num_inputs: int) -> tuple[list[NetworkTensor], list[NetworkTensor]]:
        """Return the network's inputs, in the order of the operator's inputs, and the network's outputs that the operator returns.

        Raises:
            ValueError: the network has no tensor with a name in the arguments, or another number of inputs than the operator; or it has
                several outputs, and the arguments do not name those to return.
        """
        inputs = _named(network.title, "input", network.inputs, self.args["input_names"])
        if num_inputs != len(inputs) or len(inputs) != len(network.inputs):
            raise ValueError(
                f"{network.title} takes {len(network.inputs)} inputs: {_listed(network.inputs)}. The operator has {num_inputs}"
            )
        if self.args["output_names"] is None and len(network.outputs) != 1:
            raise ValueError(
                f"{network.title} has {len(network.outputs)} outputs: {_listed(network.outputs)}. `output_names` lists those to return"
            )
        return inputs, _named(network.title, "output", network.outputs, self.args["output_names"])

    def run(self, workspace: Workspace) -> None:
        network = self.network()
        inputs, outputs = self.tensors(network, len(workspace.inputs))
        layouts = [*(self.args["output_layouts"] or ()), *[""] * len(outputs)]
        if not workspace.batch_size:
            workspace.outputs = [
                workspace.allocate([], OutputSpec(output.dtype, layout, max(len(output.dims) - 1, 0)))
                for output, layout in zip(outputs, layouts)
            ]
            return
        for batch, tensor in zip(workspace.inputs, inputs):
            if batch.dtype != tensor.dtype and len(workspace.failures) < workspace.batch_size:
                raise RuntimeError(
                    f"{network.title} takes {tensor}. Got {dtype_name(batch.dtype)}: use `fn.cast`, or `dtype` of the operator before"
                )
        results: list[tuple[_Group, list[Any]]] = []
        for group in self._groups(workspace, network, inputs, outputs):
            self._run_group(workspace, network, inputs, outputs, group, results)
        workspace.outputs = [
            _batch(workspace, output, layout, [(group, found[number]) for group, found in results])
            for number, (output, layout) in enumerate(zip(outputs, layouts))
        ]
        if self.device == "gpu":
            # The network may write its next results, for another pipeline and thus on another stream, to the memory that is copied here.
            require_cupy("networks on the GPU").cuda.get_current_stream().synchronize()
        if len(workspace.inputs) == 1:
            for batch in workspace.outputs:
                batch.source_infos = workspace.inputs[0].source_infos

    def _groups(
        self, workspace: Workspace, network: Network, inputs: Sequence[NetworkTensor], outputs: Sequence[NetworkTensor]
    ) -> Iterator[_Group]:
        """Yield groups of samples that run together. Samples that do not fit the network's inputs fail, and are in no group."""
        groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        stacked: dict[tuple[tuple[int, ...], ...], bool] = {}
        for index in range(workspace.batch_size):
            if index in workspace.failures:
                continue
            shapes = tuple(batch.shapes[index] for batch in workspace.inputs)
            if shapes not in stacked:
                try:
                    stacked[shapes] = _is_stacked(network.title, inputs, shapes)
                except ValueError as error:
                    workspace.fail(index, error)
                    continue
            groups.setdefault(shapes, []).append(index)
        for shapes, indices in groups.items():
            alone = not stacked[shapes] or any(tensor.dims[:1] == (1,) for tensor in (*inputs, *outputs))
            size = 1 if alone else int(min(self.args["max_batch_size"], network.max_batch_size))
            for start in range(0, len(indices), size):
                yield _Group(indices[start : start + size], stacked[shapes])

    def _run_group(
        self,
        workspace: Workspace,
        network: Network,
        inputs: Sequence[NetworkTensor],
        outputs: Sequence[NetworkTensor],
        group: _Group,
        results: list[tuple[_Group, list[Any]]],
    ) -> None:
        """Run a group of samples and add the group and its outputs to ``results``.

        If the group fails, run its samples one by one, so that only the samples at fault fail. This also gives results from networks whose
        outputs do not have one row per sample.
        """
        count = rows = len(group.indices)
        if group.stacked and count > 1:
            rows = max(min(network.rows_to_run(count), self.args["max_batch_size"]), count)
        arrays = {tensor.name: group.joined(batch, rows) for tensor, batch in zip(inputs, workspace.inputs)}
        try:
            found = network.run(arrays, [output.name for output in outputs])
            if group.stacked:
                _check_rows(network.title, outputs, found, rows)
                found = [own[:count] for own in found]
        except Exception as error:
            # After a timeout or a cancellation, do not retry samples one by one: each would end in the same way.
            if count == 1 or isinstance(error, (TimeoutError, CancelledError)):
                for index in group.indices:
                    workspace.fail(index, error)
                return
            for index in group.indices:
                self._run_group(workspace, network, inputs, outputs, _Group([index], True), results)
            return
        results.append((group, found))


@dataclass(frozen=True)
class _Group:
    """Samples that run together.

    Attributes:
        indices: the samples' indices in the batch.
        stacked: whether samples are stacked along a new first dimension; otherwise there is one sample, which already has all of the
            network's dimensions.
    """

    indices: Sequence[int]
    stacked: bool

    def joined(self, batch: Any, rows: int) -> Any:
        """Return the group's samples of a batch as one contiguous array, without a copy if they are adjacent in memory.

        If there are fewer than ``rows``, the last one is repeated.
        """
        if self.stacked and rows == len(self.indices) == len(batch) and batch.elements is not None:
            return batch.stacked()
        samples = [batch.samples[index] for index in self.indices]
        samples += samples[-1:] * (rows - len(samples))
        numeric = np if batch.device_type == "cpu" else require_cupy("networks on the GPU")
        if not self.stacked:
            return numeric.ascontiguousarray(samples[0])
        return numeric.ascontiguousarray(samples[0][None]) if len(samples) == 1 else numeric.stack(samples)

    def samples(self, found: Any) -> Sequence[Any]:
        """Return the group's samples of one of the network's outputs."""
        if not self.stacked or isinstance(found, list):
            return found if self.stacked else [found]
        # Rows are sliced, because indexing would turn a sample without dimensions into a number.
        return [found[row : row + 1].reshape(found.shape[1:]) for row in range(len(found))]


def _is_stacked(title: str, inputs: Sequence[NetworkTensor], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether samples of these shapes lack the first dimension of the network's inputs, so that they have to be stacked along it.

    Raises:
        ValueError: the samples do not fit the network.
    """
    if all(tensor.accepts(shape) for tensor, shape in zip(inputs, shapes)):
        return False
    for tensor, shape in zip(inputs, shapes):
        if (
            tensor.dims
            and isinstance(tensor.dims[0], int)
            and tensor.dims[0] > 1
            and tensor.accepts((tensor.dims[0], *shape))
        ):
            raise ValueError(
                f"{title} takes {tensor}: always {tensor.dims[0]} samples. Export it with a batch of 1, or of any size"
            )
        if not tensor.accepts((tensor.dims[0] if tensor.dims and isinstance(tensor.dims[0], int) else 1, *shape)):
            raise ValueError(
                f"{title} takes {tensor}. Got a sample of shape {list(shape)}; its first dimension, the batch, may be left out"
            )
    return True


def _check_rows(title: str, outputs: Sequence[NetworkTensor], found: Sequence[Any], count: int) -> None:
    for output, array in zip(outputs, found):
        shape = [len(array)] if isinstance(array, list) else list(array.shape)
        if shape[:1] != [count]:
            raise RuntimeError(
                f"{title} returned `{output.name}` of shape {shape} for {count} samples: its first dimension is not the batch. "
                "Give it samples with all of the network's dimensions (`fn.expand_dims`), which run one by one"
            )


def _named(title: str, kind: str, tensors: Sequence[NetworkTensor], names: Sequence[str] | None) -> list[NetworkTensor]:
    """Return the tensors with these names, in the order of the names; all tensors if ``names`` is None.

    Raises:
        ValueError: there is no tensor with one of the names.
    """
    known = {tensor.name: tensor for tensor in tensors}
    for name in names or ():
        if name not in known:
            raise ValueError(f"{title} has no {kind} `{name}`. It has {_listed(tensors)}.{did_you_mean(name, known)}")
    return list(tensors) if names is None else [known[name] for name in names]


def _listed(tensors: Sequence[NetworkTensor]) -> str:
    return "; ".join(map(str, tensors))


def _batch(workspace: Workspace, output: NetworkTensor, layout: str, results: Sequence[tuple[_Group, Any]]) -> Any:
    """Copy one of the network's outputs, which is given for each group, to one batch; samples in no group are empty."""
    if len(results) == 1:
        group, found = results[0]
        if group.stacked and len(group.indices) == workspace.batch_size and not isinstance(found, list):
            return _copied(workspace, output, layout, found)
    arrays = {index: sample for group, found in results for index, sample in zip(group.indices, group.samples(found))}
    ndim = next((array.ndim for array in arrays.values()), max(len(output.dims) - 1, 0))
    check_layout(layout, ndim)
    shapes = [arrays[index].shape if index in arrays else (0,) * ndim for index in range(workspace.batch_size)]
    batch = workspace.allocate(shapes, OutputSpec(output.dtype, layout, ndim))
    for index, array in arrays.items():
        batch.samples[index][...] = array
    return batch


def _copied(workspace: Workspace, output: NetworkTensor, layout: str, found: Any) -> Any:
    """Copy an output that has a row for each sample to a batch, at once."""
    ndim = found.ndim - 1
    check_layout(layout, ndim)
    batch = workspace.allocate([found.shape[1:]] * len(found), OutputSpec(output.dtype, layout, ndim))
    batch.stacked()[...] = found
    return batch
