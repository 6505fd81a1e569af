"""`_tensor_subscript`: the result of indexing or slicing a node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.schema import Alias, Argument, Input, Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.operator import Shape
from penstock.tensors import TensorListCPU, TensorListGPU
from penstock.tensors.batch import stacked

_MAX_SUBSCRIPTS = 32
# Batches with more elements are sliced sample by sample, which can return views instead of copies.
_MAX_ELEMENTS_TOGETHER = 1 << 13


def _subscript_arguments() -> tuple[Argument, ...]:
    arguments = [Argument("num_subscripts", "int32", 0, "How many dimensions are indexed, full ranges included.")]
    kinds = {
        "at": ("Index in dimension {}, which is removed.", 1),
        "lo": ("Start of the range in dimension {}.", 1),
        "hi": ("End of the range in dimension {}.", 2),
        "step": ("Step of the range in dimension {}.", 2),
    }
    for axis in range(_MAX_SUBSCRIPTS):
        exempt = "as in the first dimensions" if axis > 2 else ""
        arguments += [
            Argument(f"{kind}_{axis}", "int32", None, doc.format(axis), tensor=True, example=example, exempt=exempt)
            for kind, (doc, example) in kinds.items()
        ]
    return tuple(arguments)


@register_operator
class TensorSubscript(Operator):
    """Slices each sample; contiguous slices are returned as views, without a copy."""

    schema = Schema(
        name="_TensorSubscript",
        inputs=(Input("data"),),
        arguments=_subscript_arguments(),
        hidden=True,
        aliases=(Alias("TensorSubscript", fn="_tensor_subscript_1"),),
    )

    def setup(self) -> None:
        self.given_at = [self.given(f"at_{axis}") for axis in range(_MAX_SUBSCRIPTS)]
        self.ranges = [
            any(self.given(f"{bound}_{axis}") for bound in ("lo", "hi", "step")) for axis in range(_MAX_SUBSCRIPTS)
        ]
        for axis in range(_MAX_SUBSCRIPTS):
            if self.args[f"step_{axis}"] == 0:
                raise RuntimeError(f"The step of the range in dimension {axis} is zero")
            if self.given_at[axis]:
                self._check_index(axis)
        self.count = max(
            [
                self.args["num_subscripts"],
                *(a + 1 for a in range(_MAX_SUBSCRIPTS) if self.given_at[a] or self.ranges[a]),
            ]
        )

    def _check_index(self, axis: int) -> None:
        if self.given(f"lo_{axis}") or self.given(f"hi_{axis}"):
            raise RuntimeError(
                f"The subscript for dimension {axis} must not be specified both as an index and as a range"
            )
        if self.given(f"step_{axis}"):
            raise RuntimeError(f"The subscript for dimension {axis} was specified as index: it cannot have a step")

    def run(self, workspace: Workspace) -> None:
        batch = workspace.inputs[0]
        if self.count > batch.ndim() and len(batch):
            raise IndexError(f"Too many indices ({self.count}) for a {batch.ndim()}-D tensor.")
        remaining = [axis for axis in range(batch.ndim()) if not (axis < _MAX_SUBSCRIPTS and self.given_at[axis])]
        layout = "".join(batch.layout()[axis] for axis in remaining) if batch.layout() else ""
        if self._slice_together(workspace, layout, len(remaining)):
            return
        empty: Shape = (0,) * len(remaining) if remaining else ()
        parts: list[Any] = []
        for index, data in enumerate(batch.samples):
            try:
                if index in workspace.failures:
                    raise workspace.failures[index]
                parts.append(self._part(data, Sample(self, workspace, index)))
            except Exception as error:
                workspace.fail(index, error)
                parts.append(data.reshape(-1)[:0].reshape(empty) if empty else data.reshape(-1)[:0])
        make_contiguous = _copied_on_gpu if workspace.device == "gpu" else _copied_on_cpu
        spread = [index for index, part in enumerate(parts) if not part.flags.c_contiguous]
        for index, copy in zip(spread, make_contiguous([parts[index] for index in spread], workspace)):
            parts[index] = copy
        output = type(batch).of_samples(parts, layout, batch.dtype, len(remaining))
        output.source_infos = batch.source_infos
        workspace.outputs = [output]

    def _slice_together(self, workspace: Workspace, layout: str, rank: int) -> bool:
        """Slice the whole batch as one array if it is small, its samples have equal shapes, and all indices are constant. Return whether
        that was possible.
        """
        batch = workspace.inputs[0]
        if workspace.device != "cpu" or workspace.arguments or workspace.failures or not len(batch):
            return False
        shape, count = batch.shapes[0], len(batch)
        whole = stacked(batch) if count * math.prod(shape) <= _MAX_ELEMENTS_TOGETHER else None
        if whole is None:
            return False
        try:
            index = self._index(shape, Sample(self, workspace, 0))
        except (IndexError, RuntimeError, TypeError):
            # Slicing sample by sample, which follows, reports the error for each sample.
            return False
        part = np.ascontiguousarray(whole[(slice(None), *index)])
        output = TensorListCPU.of_elements(part.reshape(-1), [part.shape[1:]] * count, layout, rank, batch.dtype)
        output.source_infos = batch.source_infos
        workspace.outputs = [output]
        return True

    def _part(self, data: Any, sample: Sample) -> object:
        part: object = data[self._index(data.shape, sample)]
        return part

    def _index(self, shape: Shape, sample: Sample) -> tuple[Any, ...]:
        index: list[Any] = []
        for axis in range(self.count):
            if self.given_at[axis]:
                index.append(self._position(self._value(sample, f"at_{axis}"), shape[axis], axis))
            elif self.ranges[axis]:
                index.append(slice(*(self._bound(sample, f"{bound}_{axis}") for bound in ("lo", "hi", "step"))))
            else:
                index.append(slice(None))
        # With the ellipsis, numpy returns an array even if no dimensions are left, not a scalar.
        return *index, Ellipsis

    @staticmethod
    def _position(index: int, extent: int, axis: int) -> int:
        if not -extent <= index < extent:
            raise IndexError(f"Index {index} is out of range for dimension {axis} of extent {extent}")
        return index

    @staticmethod
    def _bound(sample: Sample, name: str) -> int | None:
        return TensorSubscript._value(sample, name) if sample.given(name) else None

    @staticmethod
    def _value(sample: Sample, name: str) -> int:
        """Return an index from an argument, which may be a constant or a scalar of any integer type."""
        computed = sample.tensor_argument(name)
        if computed is None:
            return int(sample[name])
        if computed.ndim:
            raise RuntimeError(f"Array indices must be scalar (0D). Got {computed.ndim}D tensor.")
        if computed.dtype.kind not in "iu":
            raise TypeError(f"An index must be an integer, got {computed.dtype}")
        return int(computed.reshape(-1)[0])


def _copied_on_cpu(parts: Sequence[np.ndarray], workspace: Workspace) -> Sequence[np.ndarray]:
    """Return contiguous copies of slices; the pipeline's threads share the copying."""
    if not parts:
        return []
    copies = TensorListCPU.allocate(
        [part.shape for part in parts], workspace.inputs[0].dtype, "", workspace.pool
    ).samples
    workspace.parallel(
        lambda number: np.copyto(copies[number], parts[number]), len(parts), [part.size for part in parts]
    )
    return copies


def _copied_on_gpu(parts: Sequence[Any], workspace: Workspace) -> Sequence[Any]:
    """Return contiguous copies of slices, made with one kernel launch."""
    from penstock.kernels.cuda.window import copy_views

    if not parts:
        return []
    copies = TensorListGPU.allocate([part.shape for part in parts], workspace.inputs[0].dtype).samples
    copy_views(parts, copies)
    return copies
